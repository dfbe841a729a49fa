// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bidemq/bide/storage"
)

// claimSpread leases what is due in some shards. It asks those first that may have something as far as this
// process knows: a notice came, or the latest claim said so. It begins with another one each time, asks that
// alone, as it mostly has enough, and the others at once. If they have nothing it asks the rest: a claim finds
// what is there. Order and turns of keys are kept within a shard. R3
func (s *Store) claimSpread(ctx context.Context, now time.Time, c storage.Claim) (storage.Claimed, error) {
	var got storage.Claimed
	err := s.over(ctx, c.Queue, func(l *layout) error {
		g := &gathering{store: s, spread: s.spreadFor(c.Queue), ctx: ctx, now: now, claim: c, layout: l}
		g.got.Next = storage.Forever
		g.gather()
		got = g.got
		if other, ok := errors.AsType[*layoutError](g.err); ok && len(got.Records) > 0 {
			got.Next = 0
			if err := s.learn(ctx, c.Queue, other); err != nil {
				s.options.Logger.WarnContext(ctx, "could not bring a shard up to date", "queue", other.at.name, "error", err)
			}
		}
		if len(got.Records) > 0 {
			return nil // a shard that cannot be reached does not stop the others
		}
		return g.err
	})
	if err != nil {
		return storage.Claimed{}, err
	}
	return got, nil
}

// gathering is a claim under way. Calls to several shards run at once, and meet in take.
type gathering struct {
	store  *Store
	spread *spread
	ctx    context.Context
	now    time.Time
	claim  storage.Claim
	layout *layout

	mu     sync.Mutex
	got    storage.Claimed
	leased time.Time // when the claim was sent that brought the first records, zero without any
	more   []int     // shards that have more than they were asked for
	missed bool      // a shard was left alone, or has failed
	err    error     // of a shard
}

func (g *gathering) gather() {
	likely, others := g.split()
	if len(likely) > 0 {
		g.ask(likely[:1])
		likely = likely[1:]
	}
	for len(likely) > 0 && g.wants() {
		n := g.atOnce(len(likely))
		g.ask(likely[:n])
		likely = likely[n:]
	}
	for len(g.got.Records) == 0 && len(others) > 0 {
		n := g.atOnce(len(others))
		g.ask(others[:n])
		others = others[n:]
	}
	for len(g.more) > 0 && g.wants() { // each has given its part, and has more
		more := g.more[:g.atOnce(len(g.more))]
		g.more = g.more[len(more):]
		g.ask(more)
	}
	if len(likely)+len(g.more) > 0 {
		g.got.Next = 0 // nobody has asked for what they have
	}
	for _, i := range others {
		g.got.Next = min(g.got.Next, g.store.watches.expects(g.name(i)))
	}
	if g.missed {
		g.got.Next = min(g.got.Next, longPause)
	}
}

// split returns the shards that may have something, and the rest of those that can be reached.
func (g *gathering) split() (likely, others []int) {
	scope := g.claim.Scope()
	all := g.layout.shardsOf(&scope)
	first := int(g.spread.turn.Add(1) % uint64(len(all)))
	for k := range all {
		i := all[(first+k)%len(all)]
		switch {
		case g.spread.isDown(i):
			g.missed = true
		case !g.now.IsZero() || g.store.watches.may(g.name(i)):
			likely = append(likely, i)
		default:
			others = append(others, i)
		}
	}
	if len(likely)+len(others) == 0 {
		return all, nil
	}
	return likely, others
}

func (g *gathering) name(i int) string {
	scope := g.claim.Scope()
	scope.Queue = g.layout.shards[i].name
	return g.store.watches.name(&scope)
}

// wants says whether more may be asked for. A shard gives its first record however large that is, so there
// has to be room for the largest.
func (g *gathering) wants() bool {
	if len(g.got.Records) == 0 {
		return true
	}
	return len(g.got.Records) < g.claim.Limit && !g.claim.Group && g.patience() > 0 &&
		(g.claim.MaxBytes == 0 || g.room() >= g.store.options.MaxBody)
}

// room is how many bytes are left.
func (g *gathering) room() int {
	room := g.claim.MaxBytes
	for i := range g.got.Records {
		r := &g.got.Records[i]
		room -= len(r.Body)
		for name, value := range r.Headers {
			room -= len(name) + len(value)
		}
	}
	return room
}

// atOnce is how many shards may be asked at a time, so that all that they may give is not too much.
func (g *gathering) atOnce(of int) int {
	if g.claim.Group || !g.now.IsZero() {
		return 1
	}
	n := min(of, g.claim.Limit-len(g.got.Records))
	if g.claim.MaxBytes > 0 {
		n = min(n, g.room()/g.store.options.MaxBody)
	}
	return max(n, 1)
}

// ask claims from some shards at once, from each its part of what is left.
func (g *gathering) ask(which []int) {
	left, room := g.claim.Limit-len(g.got.Records), g.claim.MaxBytes
	if room > 0 {
		room = g.room() / len(which)
	}
	patience := g.patience()
	var others sync.WaitGroup
	for k, i := range which {
		c := g.claim
		c.MaxBytes, c.Limit = room, left/len(which)
		if k < left%len(which) {
			c.Limit++
		}
		if k == len(which)-1 {
			g.one(i, c, patience)
		} else {
			others.Go(func() { g.one(i, c, patience) })
		}
	}
	others.Wait()
}

// How long a claim waits for one shard: a third of the lease, within these bounds.
const (
	leastPatience = 500 * time.Millisecond // servers and networks pause that long at times
	mostPatience  = time.Second
)

// patience is how long the next shards are waited for. What others have given is leased meanwhile, and has to be
// handed over while most of that is left.
func (g *gathering) patience() time.Duration {
	most := max(leastPatience, min(mostPatience, g.claim.Lease/3))
	if g.leased.IsZero() {
		return most
	}
	return most - time.Since(g.leased)
}

// one claims from one shard.
func (g *gathering) one(i int, c storage.Claim, patience time.Duration) {
	at, name := g.layout.shards[i], g.name(i)
	ctx, several := g.ctx, len(g.layout.shards) > 1
	if at.brief = several; several {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	began := time.Now()
	claimed, err := g.store.claimAt(ctx, g.now, at, c)
	if err != nil && ctx.Err() != nil && g.ctx.Err() == nil {
		err = fmt.Errorf("redisstore: claim %q: %w: no answer within %s", at.name, storage.ErrUnavailable, patience)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		if _, ok := errors.AsType[*layoutError](g.err); !ok {
			g.err = err
		}
		g.missed = true
		if errors.Is(err, storage.ErrUnavailable) {
			g.spread.leave(i, max(longPause, 6*time.Since(began))) // not to wait for it most of the time
			g.store.watches.postpone(name)
		}
		return
	}
	g.spread.claimed.add(i, claimed.Records, began.Add(c.Lease))
	for k := range claimed.Records {
		claimed.Records[k].Seq = g.layout.spreadSeq(claimed.Records[k].Seq, i)
	}
	if len(claimed.Records) > 0 && g.leased.IsZero() {
		g.leased = began
	}
	g.got.Records = append(g.got.Records, claimed.Records...)
	if len(claimed.Records) == c.Limit && claimed.Next == 0 {
		g.more = append(g.more, i)
		claimed.Next = storage.Forever // until it is known how much more
	}
	if ahead := claimed.Now.Sub(g.got.Now); ahead > 0 || g.got.Now.IsZero() { // the shards' clocks differ
		g.got.Next, g.got.Now = later(g.got.Next, -max(ahead, 0)), claimed.Now
		g.got.Next = min(g.got.Next, claimed.Next)
	} else {
		g.got.Next = min(g.got.Next, later(claimed.Next, ahead))
	}
}

// later is a wait seen from another instant.
func later(wait, by time.Duration) time.Duration {
	if wait == 0 || wait == storage.Forever {
		return wait
	}
	return max(0, wait+by)
}

// isDown says whether a shard could not be reached a moment ago.
func (sp *spread) isDown(i int) bool {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	return len(sp.down) > 0 && time.Now().Before(sp.down[i])
}

// leave leaves a shard alone for a while.
func (sp *spread) leave(i int, d time.Duration) {
	sp.mu.Lock()
	defer sp.mu.Unlock()
	sp.down[i] = time.Now().Add(d)
}
