// SPDX-License-Identifier: Apache-2.0

package report

import "github.com/bidemq/bide/bench/result"

// growing is the part of the page that has how costs grow.
func growing(f *result.File) string { return measured(f) }
