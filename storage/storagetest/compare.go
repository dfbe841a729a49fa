// SPDX-License-Identifier: Apache-2.0

package storagetest

import "github.com/bidemq/bide/storage"

// Comparable returns the stats without what depends on the engine and the moment.
func Comparable(st storage.Stats) storage.Stats {
	st.Total.Wakeups, st.Total.EmptyClaims, st.Total.ClockSteps = 0, 0, 0
	return st
}
