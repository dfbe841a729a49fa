// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

// Claim implements [storage.Engine]. It is sent once. R2 R3 R4
func (s *Store) Claim(ctx context.Context, now time.Time, c storage.Claim) (storage.Claimed, error) {
	if err := cmp.Or(c.Check(), storage.CheckNow(now)); err != nil {
		return storage.Claimed{}, err
	}
	if s.spreadOf(c.Queue) == nil {
		claimed, err := s.claimAt(ctx, now, shard{name: c.Queue}, c)
		other, ok := errors.AsType[*layoutError](err)
		if !ok {
			return claimed, err
		}
		if err := s.learn(ctx, c.Queue, other); err != nil {
			return storage.Claimed{}, err
		}
	}
	return s.claimSpread(ctx, now, c)
}

// claimAt leases what is due in one shard.
func (s *Store) claimAt(ctx context.Context, now time.Time, at shard, c storage.Claim) (storage.Claimed, error) {
	scope := c.Scope()
	scope.Queue = at.name
	claim := s.watches.begin(s.watches.name(&scope))
	part, keys := partArgs(&scope)
	if part != "" {
		s.whole.Store(at.name, struct{}{})
	}
	m, err := s.run(ctx, claimScript, at, milli(now), decimal(int64(c.Limit)), decimal(int64(c.MaxBytes)),
		decimal(length(c.Lease)), c.By, claim.self, decimal(pollEvery.Milliseconds()), flag(c.Group), part, keys)
	if err != nil {
		return storage.Claimed{}, err
	}
	claimed := storage.Claimed{Next: storage.Forever}
	reply, err := m.ToArray()
	if err == nil && len(reply) < claimHead {
		err = fmt.Errorf("got %d fields", len(reply))
	}
	var head []int64
	if err == nil {
		head, err = ints(reply[:claimHead])
	}
	if err != nil {
		return storage.Claimed{}, fmt.Errorf("redisstore: queue %q: %w", c.Queue, &ScriptError{"claim", err})
	}
	claimed.Now = instant(head[0])
	if head[1] >= 0 {
		claimed.Next = time.Duration(head[1]) * time.Millisecond
	}
	s.watches.expect(claim, claimed.Next)
	s.watches.entered(claim, head[2])
	claimed.Records, err = decodeClaimed(reply[claimHead:], head[3], claimed.Now, storage.Millis(c.Lease), c.By)
	if err != nil {
		return storage.Claimed{}, fmt.Errorf("redisstore: queue %q: %w", c.Queue, &ScriptError{"claim", err})
	}
	return claimed, nil
}

// decodeClaimed reads the records of a claim. What the first number says is in claim_fast.lua.
func decodeClaimed(row []rueidis.RedisMessage, first int64, now time.Time, lease time.Duration, by string) ([]storage.Record, error) {
	each, token := 3, max(first, -first)
	if first > 0 {
		each = 2
	}
	records := make([]storage.Record, 0, len(row)/each)
	for ; len(row) >= each; row = row[each:] {
		own := each == 3
		if own && first < 0 {
			progress, err := row[2].ToString()
			if err != nil {
				return nil, err
			}
			own = progress != ""
		}
		var r storage.Record
		var err error
		if own {
			r, err = decodeTexts(row, -1, now)
		} else {
			r, err = decodeFirst(row, now, storage.Lease{Token: token, Until: now.Add(lease), By: by})
		}
		token++
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

// claimHead is how many numbers claim.lua returns before the records.
const claimHead = 4

// decodeFirst reads id and record of the first delivery of a message.
func decodeFirst(row []rueidis.RedisMessage, now time.Time, lease storage.Lease) (storage.Record, error) {
	id, err := row[0].ToString()
	blob, err2 := row[1].AsBytes()
	if err := cmp.Or(err, err2); err != nil {
		return storage.Record{}, err
	}
	r, err := decode(id, blob, "", -1, now)
	r.State, r.Attempts, r.Deliveries, r.Lease = storage.Leased, 1, 1, lease
	return r, err
}

// partArgs say which keys a claim asks for, see claim.lua.
func partArgs(s *storage.Scope) (part, keys string) {
	named := s.Keys
	switch {
	case len(s.Keys) > 0:
		part = "+"
	case len(s.Except) > 0:
		part, named = "-", s.Except
	}
	var b []byte
	for _, k := range named {
		b = append(appendUint(b, int64(len(k)), 2), k...)
	}
	return part, string(b)
}
