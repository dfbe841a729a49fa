// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"math"
	"time"

	"github.com/bidemq/bide/storage"
)

// next finds out when to come back.
func (k *claim) next() error {
	next, err := k.soonest()
	if err != nil {
		return err
	}
	k.out.Next = storage.Forever
	if next != math.MaxInt64 {
		k.out.Next = time.Duration(max(0, next-k.now)) * time.Millisecond
	}
	return nil
}

// soonest is when something of the scope becomes claimable by time alone, math.MaxInt64 if nothing
// will.
func (k *claim) soonest() (int64, error) {
	least := int64(math.MaxInt64)
	if k.scope.Has("") {
		for p := range k.waiting {
			if _, err := k.upcoming(p); err == nil {
				continue
			}
			if err := k.headAlone(p); err != nil { // the next claim meets what cannot be read
				return 0, err
			}
		}
		at, err := k.keylessAt()
		if err != nil {
			return 0, err
		}
		least = at
	}
	if k.keys > 0 {
		for p := range k.turns {
			t, found, err := k.turnAt(p)
			if err != nil {
				return 0, err
			}
			if found {
				least = min(least, t.at)
			}
		}
	}
	if r := k.leases.first(); r != nil {
		least = min(least, r.until)
	}
	return least, nil
}
