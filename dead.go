// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// Dead is a message that has died, as [ConsumerConfig.OnDead] gets it: with its Reason, and the
// attempts that failed in History. [Queue.Decode] reads its body.
type Dead struct {
	Queue string
	storage.Record
}

// tellers are those of a running consumer, one for each of its queues. They are none if it has no
// OnDead.
type tellers struct {
	byQueue map[string]*teller
	cancel  context.CancelCauseFunc // of the calls of OnDead
	drained chan struct{}           // closed when nothing dies any more by this consumer
	running sync.WaitGroup
}

// teller tells OnDead of the messages of one queue that have died. Of the tellers of a queue the one
// that holds its lock is at work, so that normally a death is told once.
type teller struct {
	*run
	queue string
	wake  chan struct{} // something may have died
}

// tell starts the tellers. What they are given outlives the run's context until the drain is over.
func (r *run) tell() {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.ctx))
	r.tellers = &tellers{byQueue: map[string]*teller{}, cancel: cancel, drained: make(chan struct{})}
	if r.config.OnDead == nil {
		return
	}
	for _, s := range r.sources {
		queue := s.scope.Queue
		if r.tellers.byQueue[queue] == nil {
			t := &teller{run: r, queue: queue, wake: make(chan struct{}, 1)}
			r.tellers.byQueue[queue] = t
			r.tellers.running.Go(func() { t.work(ctx) })
		}
	}
}

// mayBeDead wakes the teller of a message for what is known of its end.
func (ts *tellers) mayBeDead(h *hold) {
	if t := ts.byQueue[h.Queue]; t != nil && (h.done.Verdict == storage.Bury || h.done.Verdict != storage.Ack && h.Last()) {
		poke(t.wake)
	}
}

// finish lets the tellers tell what died in the drain, for as long as grace, and ends them.
func (ts *tellers) finish(grace time.Duration) error {
	defer ts.cancel(ErrShutdown)
	close(ts.drained)
	ended := make(chan struct{})
	go func() {
		ts.running.Wait()
		close(ended)
	}()
	for range 2 {
		select {
		case <-ended:
			return nil
		case <-time.After(grace):
			ts.cancel(ErrShutdown)
		}
	}
	return errors.New("bide: drained with OnDead still running")
}

// work tells deaths as they are found, until the consumer is drained.
func (t *teller) work(ctx context.Context) {
	failures := 0
	for configured := false; ; {
		var err error
		if !configured {
			err = bounded(ctx, callPatience, func(ctx context.Context) error {
				_, err := t.client.engine.Configure(ctx, t.queue, storage.ConfigEdit{TellDead: new(true)})
				return err
			})
			configured = err == nil
		}
		if err == nil {
			err = t.look(ctx)
		}
		if err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			failures++
			t.log.WarnContext(ctx, "not every dead message was told, trying again", "queue", t.queue, "error", err)
			if sleep(ctx, repeatAfter(failures)) != nil {
				return
			}
		}
		if !t.rest(ctx) {
			return
		}
	}
}

// rest returns when it is time to look again, or says that it never is.
func (t *teller) rest(ctx context.Context) bool {
	every := time.NewTimer(t.config.OnDeadEvery)
	defer every.Stop()
	select {
	case <-t.wake:
		return true
	case <-every.C:
		return true
	case <-ctx.Done():
		return false
	case <-t.tellers.drained:
	}
	select {
	case <-t.wake: // something died in the drain
		return true
	default:
		return false
	}
}

// look tells all deaths that are untold, unless somebody else is at it. Looking costs one call where
// there are none.
func (t *teller) look(ctx context.Context) error {
	p, err := t.untold(ctx, storage.Position{}, 1)
	if err != nil || len(p.Records) == 0 && !p.More {
		return err
	}
	l, err := t.client.TryLock(ctx, "bide/on-dead/"+t.queue, LockConfig{TTL: min(t.config.Lease, defaultTTL)})
	if errors.Is(err, ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	err = t.tellAll(l.Context())
	if bad := l.Unlock(ctx); err == nil {
		err = bad
	}
	return err
}

func (t *teller) untold(ctx context.Context, after storage.Position, limit int) (p storage.Page, err error) {
	f := storage.Filter{State: storage.Dead, Untold: true, After: after, Limit: limit}
	err = bounded(ctx, callPatience, func(ctx context.Context) (err error) {
		p, err = t.client.engine.List(ctx, time.Time{}, t.queue, f)
		return err
	})
	return p, err
}

// tellAll goes on after a message that OnDead failed for, slower with each, so that one does not keep
// the others from being told. It returns the first failure.
func (t *teller) tellAll(ctx context.Context) error {
	var first error
	var after storage.Position
	for failures := 0; ; {
		p, err := t.untold(ctx, after, page)
		if err != nil {
			return err
		}
		for _, r := range p.Records {
			if ctx.Err() != nil { // somebody else may tell now
				return context.Cause(ctx)
			}
			err := t.call(ctx, Dead{Queue: t.queue, Record: r})
			if err == nil {
				if err := t.told(ctx, r); err != nil {
					return err
				}
				failures = 0
				continue
			}
			failures++
			if first == nil {
				first = fmt.Errorf("OnDead for %q: %w", r.ID, err)
			}
			if sleep(ctx, repeatAfter(failures)) != nil {
				return context.Cause(ctx)
			}
		}
		if !p.More {
			return first
		}
		after = p.Last
	}
}

// told notes that a death was told. Until that is heard it is told again, so it goes on when ctx has
// ended.
func (t *teller) told(ctx context.Context, r storage.Record) error {
	dead := []storage.DeadID{{ID: r.ID, Seq: r.Seq}}
	return bounded(context.WithoutCancel(ctx), callPatience, func(ctx context.Context) error {
		return t.client.engine.Told(ctx, t.queue, dead)
	})
}

// call calls OnDead, whose panic and whose runtime.Goexit are failures.
func (t *teller) call(ctx context.Context, dead Dead) error {
	ended := make(chan error, 1)
	go func() {
		err := ErrGoexit
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: v, Stack: debug.Stack()}
			}
			ended <- err
		}()
		err = t.config.OnDead(ctx, dead)
	}()
	return <-ended
}
