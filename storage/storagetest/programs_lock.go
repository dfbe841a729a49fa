// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
)

// lockSteps is the length of a random program about locks.
const lockSteps = 40

// LockPrograms runs random programs about a few locks and owners on an engine and on package
// memstore, at the same instants, and compares what they answer. R16
func LockPrograms(t *testing.T, open Open) {
	seed := setting(t, "BIDE_SEED", rand.Uint64())
	count := setting(t, "BIDE_PROGRAMS", 2000) / 10
	t.Logf("%d programs of %d steps from BIDE_SEED=%d", count, lockSteps, seed)
	engine := open(t)
	for i := range count {
		random := rand.New(rand.NewPCG(seed, i))
		prefix := NewQueueName()
		model := &lockMachine{engine: memstore.New(memstore.Options{}), prefix: prefix}
		tried := &lockMachine{engine: engine, prefix: prefix}
		now := epoch.AddDate(70, 0, 0) // as in the rules
		var told []string
		for range lockSteps {
			now = now.Add(time.Duration(random.IntN(3)*random.IntN(60)) * time.Millisecond)
			op := newLockOp(random)
			want, got := model.do(t.Context(), now, op), tried.do(t.Context(), now, op)
			told = append(told, fmt.Sprintf("%s %+v: %s", now.Format("05.000"), op, want))
			if diff := assert.Diff(got, want); diff != "" {
				t.Fatalf("BIDE_SEED=%d, program %d, the last step of\n%q\nanswers (-model +engine):\n%s", seed, i, told, diff)
			}
		}
	}
}

// lockOp is one step.
type lockOp struct {
	does  int // 0 acquire, 1 renew, 2 release
	name  string
	owner string
	back  int // the receipt is the one that was got so many steps before
	ttl   time.Duration
}

func newLockOp(r *rand.Rand) lockOp {
	return lockOp{
		does:  max(0, r.IntN(5)-2),
		name:  string("ab"[r.IntN(2)]),
		owner: string("xyz"[r.IntN(3)]),
		back:  r.IntN(3),
		ttl:   time.Duration(1+r.IntN(150)) * time.Millisecond,
	}
}

// lockMachine runs steps and translates tokens, which engines number as they like, into the order
// in which they came.
type lockMachine struct {
	engine   storage.Engine
	prefix   string // of names, so that programs do not meet
	tokens   []int64
	receipts []storage.LockReceipt
}

// do runs a step and describes its answer.
func (m *lockMachine) do(ctx context.Context, now time.Time, op lockOp) string {
	var l storage.Lock
	var err error
	switch op.does {
	case 0:
		r := storage.LockRequest{Name: m.prefix + op.name, Owner: op.owner, TTL: op.ttl}
		if l, err = m.engine.Acquire(ctx, now, r); err == nil {
			m.receipts = append(m.receipts, l.Receipt())
		}
	case 1:
		l, err = m.engine.Renew(ctx, now, m.receipt(op), op.ttl)
	case 2:
		l = storage.Lock{Name: m.prefix}
		err = m.engine.Release(ctx, now, m.receipt(op))
	}
	if e, ok := errors.AsType[*storage.LockedError](err); ok {
		return fmt.Sprint("locked by ", e.Owner, " for ", e.Left(), " at ", e.Now)
	}
	for _, kind := range []error{storage.ErrLockLost, storage.ErrLocked} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(l.Name[len(m.prefix):], " of ", l.Owner, ", token ", m.order(l.Token), ", at ", l.Now, " until ", l.Until)
}

func (m *lockMachine) receipt(op lockOp) storage.LockReceipt {
	if i := len(m.receipts) - 1 - op.back; i >= 0 {
		return m.receipts[i]
	}
	return storage.LockReceipt{Name: m.prefix + op.name, Owner: op.owner, Token: 1}
}

// order is the number of a token: it is larger than all before it, or one of them.
func (m *lockMachine) order(token int64) int {
	if token == 0 {
		return 0
	}
	if len(m.tokens) == 0 || token > m.tokens[len(m.tokens)-1] {
		m.tokens = append(m.tokens, token)
	}
	return 1 + slices.Index(m.tokens, token) // 0 if it is below the last one and none of them
}
