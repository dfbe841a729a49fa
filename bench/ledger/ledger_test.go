// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/bidemq/bide/bench/ledger"
	"github.com/bidemq/bide/internal/assert"
)

func TestABodyHasItsSizeAndIsReadBack(t *testing.T) {
	late := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, size := range []int{ledger.Least, 31, 32, ledger.Size, 64 << 10} {
		l := ledger.New(1000, size)
		l.Reserve(1000)
		body := l.Body(999, late)
		assert.Equal(t, len(body), size)
		l.Deliver(body, late.Add(time.Second))
		assert.Equal(t, l.Lags(), []time.Duration{time.Second}, size)
		l.Deliver(body[1:], late)
		assert.Equal(t, l.Faults(), ledger.Faults{Lost: 999, Foreign: 1}, size)
	}
}

func TestWhatIsReturnedWasNeverSent(t *testing.T) {
	l := ledger.New(10, ledger.Size)
	l.Reserve(10)
	l.Return(4)
	assert.Equal(t, l.Sent(), 6)
	assert.Equal(t, l.Free(), 4)
	l.Enter(6, 0)
	assert.Equal(t, l.Faults(), ledger.Faults{Lost: 6, Foreign: 1})
}

func TestFaultsAreCounted(t *testing.T) {
	l := ledger.New(5, ledger.Size)
	first, ok := l.Reserve(5)
	assert.True(t, ok)
	assert.Equal(t, first, 0)

	due := time.Unix(100, 0)
	l.Deliver(l.Body(0, due), due.Add(time.Millisecond))
	l.Deliver(l.Body(1, due), due)
	l.Deliver(l.Body(1, due), due.Add(time.Second)) // again
	l.Deliver(l.Body(2, due), due.Add(-time.Nanosecond))
	l.Deliver(l.Body(5, due), due) // never sent
	l.Deliver([]byte("nonsense"), due)
	bad := l.Body(3, due)
	bad[0] = 'z'
	l.Deliver(bad, due)

	assert.Equal(t, l.Came(), 3)
	assert.Equal(t, l.Faults(), ledger.Faults{Lost: 2, Doubled: 1, Early: 1, Foreign: 3})
	assert.Equal(t, l.Lags(), []time.Duration{-1, 0, time.Millisecond})
}

func TestAMessageWithoutDueTimeIsNeverEarly(t *testing.T) {
	l := ledger.New(1, ledger.Size)
	l.Reserve(1)
	l.Deliver(l.Body(0, time.Time{}), time.Unix(1, 0))
	assert.Equal(t, l.Faults(), ledger.Faults{})
}

func TestReserveRefusesWhatHasNoRoom(t *testing.T) {
	l := ledger.New(3, ledger.Size)
	_, ok := l.Reserve(2)
	assert.True(t, ok)
	_, ok = l.Reserve(2)
	assert.True(t, !ok)
	first, ok := l.Reserve(1)
	assert.True(t, ok)
	assert.Equal(t, first, 2)
	assert.Equal(t, l.Sent(), 3)
}

func TestManyGoroutinesLoseNothing(t *testing.T) {
	const producers, each = 8, 500
	l := ledger.New(producers*each, ledger.Size)
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for range each {
				i, ok := l.Reserve(1)
				if !ok {
					t.Error("no room")
					return
				}
				l.Deliver(l.Body(i, time.Time{}), time.Now())
				l.Deliver(l.Body(i, time.Time{}), time.Now())
			}
		})
	}
	wg.Wait()
	assert.Equal(t, l.Faults(), ledger.Faults{Doubled: producers * each})
	assert.Equal(t, len(l.Lags()), producers*each)
}
