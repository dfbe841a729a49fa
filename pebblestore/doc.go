// SPDX-License-Identifier: Apache-2.0

// Package pebblestore keeps messages in a directory of the local disk, without a server. One
// process at a time owns the directory.
//
// # Durability
//
// A call is answered once what it did is on disk, claims included, so that nothing answered is lost
// by a crash of the process or of the machine. Calls that arrive while the disk is busy are written
// together with one sync; an idle store adds no delay. [Options.Relaxed] answers before the sync.
//
// # Failure
//
// After the first write that the disk refuses, the store changes nothing more on the disk and every
// call fails with storage.ErrUnavailable, or storage.ErrFull if the disk has no room, until the
// directory is opened again. What was answered before is there then.
//
// # Layout
//
// Every key is a kind, the name of the queue, a zero byte, and numbers in big endian or an id:
//
//	Q                       the queue: configuration, counters, counts, latest sequence and token
//	R seq                   a record as it was enqueued or edited, with its payload
//	S seq                   what became of a record that waits again or is dead
//	L seq                   the same of a leased record, with its lease
//	U seq                   the successor of the record
//	W 9-priority due seq    place of a waiting record
//	X expiry seq            place of a waiting record that expires
//	D finished seq          place of a dead record
//	I id                    sequence of the live record
//	F id 0 seq              the dead records of an id
//	V id                    end of the dedup window of an id
//	E end id                the same by end
//
// Locks and topics are apart from the queues:
//
//	l name                  a lock that somebody holds: end, token and owner
//	m                       the last token of all locks, and the clock
//	t topic 0 queue         a binding
//
// R, S, L and U are the records; W, X, D, I and F follow from them, E and V from each other, and
// can be rebuilt. Places W below the queue's lower bound for their priority are void: claims raise
// the bound instead of deleting each place, and a range delete clears them now and then.
package pebblestore
