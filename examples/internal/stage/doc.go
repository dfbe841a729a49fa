// SPDX-License-Identifier: Apache-2.0

// Package stage is what the examples have in common and a reader may skip: the flag that names the
// store, consumers that are started and stopped, and a ledger of what was done.
package stage
