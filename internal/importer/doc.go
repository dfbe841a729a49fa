// SPDX-License-Identifier: Apache-2.0

// Package importer brings the messages of other queues in Redis into a queue of bide: sorted sets and
// lists that were written by hand, and asynq's tasks. Each comes over exactly once, however often an
// import is interrupted and begun again.
//
// # Why exactly once
//
// An entry has an id that is the same whenever it is read: its own, or a digest of its content. The
// notes of an import are a hash beside the source, in the slot of its key. For every entry they hold
// a print of its content (due time, body, headers), and whether it is about to be enqueued or was.
// The order of steps for an entry is: note the intent; enqueue it; note that it was done; remove it
// from the source, and its note with it, if that was asked for. The next run reads the note:
//
//   - None: it was never sent. It is enqueued with Replace, since a second push of an id overwrites
//     in the queues that are imported; with Keep if what others have enqueued under its id is newer.
//   - Done, with this print: it came over. Nothing is sent, whatever has become of the message:
//     handled, dead, canceled or still waiting.
//   - Done, with another print: the source was changed since. It is enqueued with Replace, which
//     changes the waiting message, follows a running one, and stores a handled one again.
//   - Intended, with this print: an earlier run ended between its intent and its answer; only the
//     entries of one batch can be in this state. The target knows: a message with this content,
//     live or dead, is the one. If there is none it was never stored, or was handled: it is enqueued
//     with Keep, and the dedup window that imported messages have answers for those handled.
//   - Intended, with another print: both may be true of the former content; the new one has not been
//     sent, so it is enqueued with Replace.
//
// What that leaves: if a run dies between the enqueue of an entry and its note, and the message is
// handled and its dedup window ends, or it is canceled or expires, before the next run, then that
// one message comes again. If it dies in the same place while it updates a message that came over
// earlier, and the message is handled before the next run, the update comes again, since nobody can
// tell whose dedup window it is; losing it would be worse.
//
// Two imports of one source into one queue at once would send twice; a lock that ends seconds after
// its holder keeps them apart. A process that stands still for longer than that between an intent
// and its enqueue, and goes on after another has taken over, sends the entries of one batch again.
//
// An entry is removed in the same step that compares it with what was read, so that a due time or a
// body that somebody has set meanwhile is not lost: it stays, and the next run brings it.
package importer
