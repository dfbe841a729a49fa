// SPDX-License-Identifier: Apache-2.0

// Package storage is the contract between bide and the engines that keep its messages.
//
// An engine is a state machine over records. It holds no policy and needs no goroutine for
// correctness: nothing is promoted, reaped or polled by anybody. Time is an argument: a zero now
// means the engine's own clock, a given one lets a test drive every engine through the same second.
// Instants are whole milliseconds: a given now and the engine's clock are rounded down, due times
// and durations are rounded up, so that no rounding makes anything early.
//
// # Words
//
// A record is a stored message of a queue. It is delayed until its due time, then ready; a claim
// leases it to a consumer under a receipt; settling the receipt ends the lease with an outcome:
// ack (done with), retry (an attempt was spent), release (none was), bury (give up), expire (it was
// too late to begin), return (it was not begun). A record that was buried, or that spent its last attempt, is dead until it is
// redriven or purged. Delayed and ready records are waiting; delayed, ready and leased ones are
// live; dead and done ones are finished.
//
// # Rules
//
// Every engine keeps these rules. Package storagetest has a test for each, named after it.
//
//   - R1 Enqueue answers per record: stored, duplicate, replaced, rerun, or refused with the reason.
//     Each record is stored whole or not at all, and one bad record does not fail the others.
//     Repeating the call while the id is live or in its dedup window stores nothing twice.
//
//   - R2 A record is claimable from its due time on, by the engine's clock, never before. The
//     engine's own clock never runs backwards for a queue: an answer of the clock below the last
//     one is taken as the last one while the step is within [MaxClockStep]; a larger step is
//     followed and counted in [Counters.ClockSteps]. Explicit instants do not move that clock.
//
//   - R3 Claim order is priority (9 first), then due time, then arrival. Each record without a key
//     stands in it for itself, and each key stands in it with its head: the first of its waiting
//     records by due time, then arrival, whatever the priority of those behind. Keys take turns: a
//     head counts as due no earlier than its key was served last, or began; among those that count
//     as due at the same instant, the smaller number is first: the sequence of a record without a
//     key, the token that a key was served with last, or the sequence that it began with, and then
//     a record without a key before a key, and keys by name. A key begins with the first live record
//     that it has and ends with the last. So a key waits for every other key and for every record
//     without a key at most once, unless their priority is higher.
//
//     A claim may name the keys that it asks for ([Claim.Keys], [Claim.Except]). A claim with
//     [Claim.Group] gets a run: as many records as are due, in order, of the first key in the claim
//     order; or of all records without a key, if one of those is first. [QueueConfig.KeyLimit] bounds
//     the records of a key that are leased at a time.
//
//   - R4 A claimed record is invisible to Claim until its lease ends; at any instant it has at most
//     one lease.
//
//   - R5 A lease is lost at its end, by the engine's clock, even if nobody has claimed the record
//     again. Settling or extending with a lost or outdated receipt changes nothing and says so.
//     Tokens only grow within a queue, across restarts and failovers too: a token is the larger of
//     the last one plus one and the claim's instant in microseconds, and stays below 2^53. A
//     failover to a copy that lags keeps this while the clocks of the two servers differ by less
//     than the lag of the copy and a queue hands out fewer than a million records a second.
//
//   - R6 A lease that has ended makes its record claimable without help from any other process, due
//     at the end of the lease. Get, Cancel, Edit and Stats treat it as ready from that instant.
//
//   - R7 A record whose last allowed attempt ends in retry, or in the end of its lease, is dead.
//     Deliveries are counted apart from attempts: a release gives its attempt back and keeps its
//     delivery; a return, of what no handler has seen, gives both back. A record whose delivery ends in retry, release or the end of its lease is dead when
//     [QueueConfig.MaxDeliveries] are spent, for [ReasonMaxDeliveries] unless its attempts were
//     spent too. A lease that ends gives [ReasonLeaseEnded], to the dead and to the living.
//
//   - R8 Wait returns within 10 ms of something becoming claimable, also if that happened between
//     Claim and Wait; within 15 s after a connection was lost; within 2 min if a notice is lost on a
//     live one. Waking for nothing is allowed, sleeping through work is not.
//
//   - R9 What a call reported as done survives a crash as far as the engine's stated durability
//     goes. Claims count: an attempt is recorded before the record is handed over.
//
//   - R10 Cancel and Edit by id are atomic while no live lease exists. A leased record refuses with
//     [ErrConflict], unless Cancel says running: then the lease is revoked and the next Extend or
//     Settle tells its holder.
//
//   - R11 In an ordered queue ([QueueConfig.Ordered]) a key's order is that of [Record.FirstDue], then
//     arrival: a retry or release keeps its place and holds the key back until it is due again, and
//     what is not due yet holds nobody back. While a record of a key is leased, the key is not
//     claimable; one claim with Group may lease a run of it, which ends before the first record that is
//     not due. A record of a run that waits again (by retry, release, return or the end of its lease) takes
//     those behind it along: their leases end, their attempts are given back, they are counted as
//     released. Finished records hold nobody back; a redriven one comes last. Priority is refused, by
//     Enqueue and Edit, as ErrInvalid. Records without a key have no order.
//
//   - R12 A bounded queue accepts no more waiting records than [QueueConfig.MaxLen] in all and
//     [QueueConfig.MaxPerKey] for each key. The bounds are checked when Enqueue stores a record that
//     is to wait: it is refused with ErrFull, or ([DropOldest]) the oldest waiting records are dropped
//     before it, at most [Sweep] of them: first of its key, in the order of the key; then of the
//     queue, in the order of lowest priority, due time, arrival. The result names them. A dropped
//     record takes its successor along and frees its id. A successor, a retry, a release, the end of
//     a lease, a redrive and an edit always fit; later Enqueues work off the excess.
//
//   - R13 A record past its expiry is never delivered; it is dropped and counted as expired. So are
//     the waiting records of a key that no record has joined for [QueueConfig.KeyIdle]: a record
//     joins when it comes into being or is redriven.
//
//   - R14 Counts add up: delayed + ready + leased + dead + done = records stored =
//     Enqueued − Replaced − Acked − Expired − Canceled − Purged − Dropped + Retained − Trimmed of
//     [Counters], and no structure holds an id without a record or the reverse. Whatever but the records themselves is lost,
//     Repair rebuilds it from them and says what it did.
//
//   - R15 A paused queue accepts and does not deliver: Claim on it answers with no record and
//     [Forever], and resuming it wakes who waits.
//
//   - R16 A lock has at most one holder at any instant of the engine's clock. It is lost at its end,
//     even if nobody has taken it again: renewing or releasing it then, or as anybody but its
//     holder, changes nothing and says so. Tokens of locks only grow, over all locks of the engine
//     and across release, expiry, restart and failover, under the assumptions of R5: a token is the
//     larger of the last one plus one and the instant in microseconds, below 2^53. The clock of locks
//     is kept like that of a queue (R2). Who waits for a lock is served within 10 ms of its release or
//     its end, by himself or by somebody faster; within 20 s after a connection or a notice was lost.
//     A lock that was released leaves nothing behind but the last token; of those that ended, every
//     call on the engine's own clock removes up to [Sweep], and every call the one that it names.
//
//   - R17 The bindings of a topic change in one step. A topic exists exactly while it has one, and
//     has [MaxBindings] at most.
//
//   - R18 Where [QueueConfig.MinBatch] is above 1, the records of a key, and likewise all records
//     without a key, are held back until MinBatch of them are due, or the first of them has been due
//     for [QueueConfig.Linger]. For a key that is when its head is due and the MinBatch-th in its
//     order is too (by FirstDue where ordered), or the head has been for Linger. A turn of a key is a
//     run then, also for claims without Group, unless the queue is ordered.
//
//   - R19 An acknowledged record is kept as done where the configuration retains any; done and dead
//     records beyond its limits are removed, longest finished first, and counted as trimmed. A
//     record that dies while [QueueConfig.TellDead] is set is untold until [Admin.Told] names it.
//
//   - R20 [QueueConfig.Shards] may change while the queue is in use. An engine over several servers may
//     spread a queue of more than one shard over them; every other keeps the number and does nothing with it. A
//     spread queue keeps all rules, and all that concerns one key or one id exactly, but for these: an id
//     names a message together with its key, and whoever enqueues it again gives the same; the claim order,
//     the turns of keys, the sequences and what a call works off are those of each shard; MaxLen, RetainCount,
//     RetainBytes and DeadCount are divided over the shards, rounded up; one Settle ends leases shard by shard;
//     instants are those of the shard, and Claimed.Now is the latest of those asked; Ordered changes only in one shard; and Redrive is refused with ErrConflict while records move.
//
// # Identity
//
// A record is (id, sequence); sequences grow with arrival in their queue. At most one record of an
// id is live. Calls by id mean the live record, else the finished one with the highest sequence.
// Finished records never block an id.
//
//	enqueue of an id that is …   Keep        Replace    Rerun
//	delayed or ready             duplicate   replaced   duplicate
//	leased                       duplicate   rerun      rerun
//	in its dedup window          duplicate   stored     stored
//	dead, done, unknown          stored      stored     stored
//
// Replaced means that the old record is gone and the new one stands in its place, with a sequence
// of its own and no attempts spent. Rerun means that the new record is kept as the successor of the
// running one: the latest successor wins, it starts (becomes a record of the queue, is counted and
// becomes claimable at its due time) when the running one is finished by ack, bury, expire or its
// last attempt, and it goes with the running one when that is canceled, purged, dropped or replaced. A retry or
// the end of a lease leaves it attached. It has its sequence from its own Enqueue.
//
// The dedup window of an id begins with the ack of a record that has [Record.DedupFor] and is ended
// by whatever stores the id again. Cancel, expiry and death leave none.
//
// # What time does
//
// Leases end and records expire by themselves. Calls by id see that at once. Every other call on a
// queue first works off, up to [Sweep] of each, so that no call is unbounded: ended leases (earliest
// end first, then sequence); waiting records of idle keys (longest idle first, then by name; in the
// key's order); expiries (earliest first, then sequence); dedup windows; done and then dead records
// beyond the limits. What is left over is still shown in the state that it had, and Claim answers
// Next 0 for leases and expiries among it. A change of KeyLimit, MinBatch or Linger reaches the first
// Sweep keys, by name, at once, and Sweep more with every call.
package storage
