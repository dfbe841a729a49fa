// SPDX-License-Identifier: Apache-2.0

package bide

import "fmt"

// misuse ends the program over a programming error that shows at start-up: a queue name that is not
// legal, a queue with two handlers, a configuration out of its bounds.
func misuse(format string, args ...any) {
	panic("bide: " + fmt.Sprintf(format, args...))
}
