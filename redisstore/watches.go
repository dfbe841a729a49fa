// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

const (
	// pollEvery is how long a process waits for a queue at most before it claims again, should a
	// notice be lost. Less than the two minutes of R8.
	pollEvery = 115 * time.Second
	// followWithin is how long a process that got a notice has to claim before another one is sent.
	followWithin = 300 * time.Millisecond
	// deafEvery is how often a process claims that cannot hear notices.
	deafEvery = 5 * time.Second
	// grace is what a process that is told when to come waits beyond that: its caller comes by itself.
	grace = 50 * time.Millisecond
)

// watch is what this process knows about one queue that it waits for, or a part of one. It is entered
// in waiters until the instant until, unless a notice came since.
type watch struct {
	notices  int       // that came so far
	word     string    // the last one, which a Cluster may bring several times
	ready    bool      // a notice came since the last claim began
	until    time.Time // entered in Redis until then, zero if not
	comeback time.Time // when the queue is to be claimed without a notice, zero if never
	used     time.Time // latest Wait
	expected time.Time // when the latest claim said that there will be more, zero if it did not
	forever  bool      // it said that time alone brings nothing
}

// watches keeps them, and the calls that wait.
type watches struct {
	channel string
	pass    func(queue string) // sends another process instead of this one
	rehear  func()             // called when notices were lost, or are heard from here on or no more

	mu     sync.Mutex
	queues map[string]*watch          // by name: that of the queue, with a number behind it for a part
	parts  map[string]string          // names by scope
	count  int                        // parts named so far
	calls  map[chan struct{}]struct{} // each of capacity one, told of every change
	up     bool                       // notices are heard
	whole  bool                       // they are heard at every server, which then knows that they are
}

func newWatches(channel string) *watches {
	return &watches{channel: channel, queues: map[string]*watch{}, parts: map[string]string{}, calls: map[chan struct{}]struct{}{}}
}

// name returns the name of what a scope asks for. It holds as long as the process.
func (w *watches) name(s *storage.Scope) string {
	if s.All() {
		return s.Queue
	}
	scope := s.String()
	w.mu.Lock()
	defer w.mu.Unlock()
	name := w.parts[scope]
	if name == "" {
		if len(w.parts) >= maxParts {
			clear(w.parts) // the names of before stay unused
		}
		w.count++
		name = s.Queue + " " + strconv.Itoa(w.count)
		w.parts[scope] = name
	}
	return name
}

// maxParts bounds the scopes that are remembered.
const maxParts = 10_000

// cutPart returns the queue of a name, and whether it is that of a part.
func cutPart(name string) (queue string, part bool) {
	queue, _, part = strings.Cut(name, " ")
	return queue, part
}

// begun is a claim under way.
type begun struct {
	queue   string // or the name of a part
	self    string // for the script, "" if this process does not wait for the queue
	notices int
}

// begin forgets the notices that came before a claim.
func (w *watches) begin(queue string) begun {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.get(queue)
	q.ready, q.comeback = false, time.Time{}
	if !w.up || time.Since(q.used) > 2*pollEvery {
		return begun{queue: queue}
	}
	self := w.channel + " " + queue
	if _, part := cutPart(queue); part {
		self = "*" + self
	}
	return begun{queue: queue, self: self, notices: q.notices}
}

// get returns what is known about a queue.
func (w *watches) get(queue string) *watch {
	q := w.queues[queue]
	if q == nil {
		w.prune()
		q = &watch{}
		w.queues[queue] = q
	}
	return q
}

// expect notes what a claim said is next.
func (w *watches) expect(b begun, next time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[b.queue]; q != nil {
		q.expected, q.forever = time.Now().Add(min(next, time.Hour)), next == storage.Forever
	}
}

// may says whether a queue may have something: nobody has claimed from it, a notice came since, or the
// instant has come that the latest claim said.
func (w *watches) may(queue string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q, now := w.queues[queue], time.Now()
	return q == nil || q.ready || !q.expected.After(now) || !q.comeback.IsZero() && !q.comeback.After(now)
}

// expects returns how long the latest claim of a queue said that it has nothing.
func (w *watches) expects(queue string) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[queue]
	if q == nil {
		return 0
	}
	if q.forever {
		return storage.Forever
	}
	return max(0, time.Until(q.expected))
}

// sooner reports whether a queue has something earlier than its latest claim said.
func (w *watches) sooner(queue string, told time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[queue]
	return q != nil && told < pollEvery && time.Now().Add(told+grace).Before(q.expected)
}

// entered notes how long the process may wait after a claim; negative if it was not entered.
func (w *watches) entered(b begun, told int64) {
	if b.self == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.queues[b.queue]
	if q == nil {
		return
	}
	if told < 0 || q.notices != b.notices {
		q.until = time.Time{} // a notice on the way may have taken the process out again
		return
	}
	q.until = time.Now().Add(time.Duration(told) * time.Millisecond)
	q.sooner(q.until.Add(grace))
	w.changed()
}

// something says that a queue has something to claim.
func (w *watches) something(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[queue]; q != nil {
		q.ready = true
		w.changed()
	}
}

// postpone leaves a queue alone for a while, after its server could not be reached.
func (w *watches) postpone(queue string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if q := w.queues[queue]; q != nil {
		q.until = time.Now().Add(longPause)
		q.sooner(q.until)
	}
}

func (q *watch) sooner(at time.Time) {
	if q.comeback.IsZero() || at.Before(q.comeback) {
		q.comeback = at
	}
}

// changed tells the calls that wait to look again.
func (w *watches) changed() {
	for c := range w.calls {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// notice takes a word of wake.lua: "ready n queue" or "later ms queue", with a star behind the queue
// for all its parts.
func (w *watches) notice(text string) {
	kind, rest, _ := strings.Cut(text, " ")
	word, name, ok := strings.Cut(rest, " ")
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if queue, part := cutPart(name); part {
		for name := range w.queues {
			if of, part := cutPart(name); part && of == queue {
				w.tell(name, kind, word, text)
			}
		}
		return
	}
	w.tell(name, kind, word, text)
}

// tell brings a notice to one queue, or a part of it.
func (w *watches) tell(queue, kind, word, text string) {
	q := w.queues[queue]
	if q == nil {
		return
	}
	if kind == "later" && w.whole {
		if ms, err := strconv.ParseInt(word, 10, 64); err == nil {
			at := time.Now().Add(time.Duration(ms) * time.Millisecond)
			q.sooner(at)
			if !q.until.IsZero() && at.Before(q.until) {
				q.until = at
			}
			w.changed()
			return
		}
	}
	if text == q.word {
		return
	}
	q.word = text
	q.notices++
	q.ready, q.until = true, time.Time{}
	w.changed()
	if _, part := cutPart(queue); part {
		return // everybody is told
	}
	n := q.notices
	time.AfterFunc(followWithin, func() {
		w.mu.Lock()
		idle := w.queues[queue] == q && q.ready && q.notices == n
		w.mu.Unlock()
		if idle {
			w.pass(queue)
		}
	})
}

// hears says where notices are heard from here on. If some may have been lost, every queue is
// reported ready.
func (w *watches) hears(up, whole, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.up == up && w.whole == whole && !missed {
		return
	}
	w.up, w.whole = up, whole
	w.rehear()
	for _, q := range w.queues {
		if missed {
			q.notices++
			q.ready, q.until = true, time.Time{}
		}
	}
	w.changed()
}

// join registers a call that waits for queues.
func (w *watches) join(queues []string) chan struct{} {
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c] = struct{}{}
	for _, queue := range queues {
		w.get(queue).used = time.Now()
	}
	return c
}

// prune forgets queues that nobody has waited for in a long time.
func (w *watches) prune() {
	if len(w.queues) < 1000 {
		return
	}
	for name, q := range w.queues {
		if time.Since(q.used) > 2*pollEvery {
			delete(w.queues, name)
		}
	}
}

func (w *watches) leave(c chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, c)
}

// look returns the queues that are ready, those that the process has yet to be entered for, and
// when the first of the others is to be claimed without a notice. Queues that cannot be heard of
// are claimed every few seconds.
func (w *watches) look(queues []string) (ready, absent []string, comeback time.Time) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range queues {
		q := w.queues[name]
		switch {
		case q == nil:
		case q.ready || !q.comeback.IsZero() && !q.comeback.After(now):
			ready = append(ready, name)
		case !w.up:
			q.sooner(now.Add(deafEvery))
		case !q.until.After(now):
			absent = append(absent, name)
		}
		if q != nil && !q.comeback.IsZero() && (comeback.IsZero() || q.comeback.Before(comeback)) {
			comeback = q.comeback
		}
	}
	return ready, absent, comeback
}

// noticed returns those of the queues that a notice came for.
func (w *watches) noticed(queues []string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ready []string
	for _, name := range queues {
		if q := w.queues[name]; q != nil && q.ready {
			ready = append(ready, name)
		}
	}
	return ready
}
