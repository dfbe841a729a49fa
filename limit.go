// SPDX-License-Identifier: Apache-2.0

package bide

// limit counts down what a caller asked for, 0 is without end.
type limit int

const page = 200 // records asked for at once

func (l *limit) step() int {
	switch {
	case *l == 0:
		return page
	case *l < 0:
		return int(*l) // refused by the engine
	}
	return min(page, int(*l))
}

// spend says whether nothing is left.
func (l *limit) spend(n int) bool {
	if *l == 0 {
		return false
	}
	*l -= limit(n)
	return *l <= 0
}
