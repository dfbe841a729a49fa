// SPDX-License-Identifier: Apache-2.0

package pebblestore

import "github.com/bidemq/bide/storage"

// audit counts the records of a queue anew while traffic runs: Repair walks them by sequence, and
// the changes behind it are noted as they happen.
type audit struct {
	seq   int64 // of the last record counted
	count [storage.Done + 1]int64
}

func (a *audit) note(seq int64, s storage.State, by int64) {
	if seq <= a.seq {
		a.count[s] += by
	}
}

// see counts the next record in the order of sequences.
func (a *audit) see(seq int64, s storage.State) {
	a.seq = seq
	a.count[s]++
}
