// SPDX-License-Identifier: Apache-2.0

package storage

import "errors"

// The categories of failure. Engines wrap them with the operation and the cause; callers decide
// with errors.Is. Context errors pass through untouched.
var (
	// ErrInvalid: the arguments can never work. Nothing was changed.
	ErrInvalid = errors.New("invalid argument")
	// ErrTooLarge: a body is over the engine's limit.
	ErrTooLarge = errors.New("message too large")
	// ErrExpired: the message is past its expiry already.
	ErrExpired = errors.New("message expired")
	// ErrNotFound: there is no such message.
	ErrNotFound = errors.New("message not found")
	// ErrConflict: the record is in a state that refuses this, leased or dead say.
	ErrConflict = errors.New("conflicting state")
	// ErrLeaseLost: the receipt is outdated, somebody else may have the message.
	ErrLeaseLost = errors.New("lease lost")
	// ErrFull: there is no room for the message; later there may be.
	ErrFull = errors.New("no room")
	// ErrUnavailable: the engine cannot be reached, or is failing over. Enqueue may be repeated
	// under the same ids, Settle too (it may then report as lost what it settled), Claim is not
	// repeated blindly.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrFormat: what is stored was written by another version, or is damaged.
	ErrFormat = errors.New("unknown storage format")
	// ErrClosed: used after Close.
	ErrClosed = errors.New("closed")
)
