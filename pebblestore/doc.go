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
//	S seq                   what became of a record that waits again, is dead or done, with its history
//	C number                a grant: the leases of one claim, or those that one call has extended
//	U seq                   the successor of the record
//	W 9-priority due seq    place of a waiting record without a key
//	X expiry seq            place of a waiting record that expires
//	D finished seq          place of a dead record
//	P finished seq          place of a dead record that nobody has told
//	O finished seq          place of a done record
//	I id                    sequence of the live record
//	F id 0 seq              the dead and done records of an id
//	V id                    end of the dedup window of an id
//	E end id                the same by end
//
// What has a key stands elsewhere:
//
//	Y 9-priority due seq    place of a waiting record with a key
//	G key 0 at seq          place of the record in its key
//	K key                   the key: its counts, when it was served and joined, its head and its turn
//	T 9-priority at number key   the key's place in the claim order
//	N 2^63-1-waiting key    the key by size
//	H due key               the key by when its head is due
//	J joined key            the key by when it was joined last, or before
//
// K, T, N, H and J are written at the end of a transaction: once for a busy key, whatever happened to
// it. Until then what changed is in memory, and what did not is read around the batch. Where a key
// stands in J is brought up to date when a sweep meets it there.
//
// Locks and topics are apart from the queues:
//
//	l name                  a lock that somebody holds: end, token and owner
//	m                       the last token of all locks, and the clock
//	t topic 0 queue         a binding
//
// R, S, C and U are the records; W, X, D, P, O, I, F, Y, G and K follow from them, T, N, H and J from
// K, E and V from each other, and can be rebuilt. What keys remember of being served and joined is
// lost with K. Places W below the queue's lower bound for their priority are void: claims raise
// the bound instead of deleting each place, and a range delete clears them now and then. A record in
// a grant is leased under it unless it is gone, has an S, or stands in a grant with a higher number.
//
// In memory are the leased records, and of each queue a bounded number of waiting ones, keys and ids:
// claims take what waits first from there, and an id above all live ones needs no look at the disk.
package pebblestore
