// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// R14: whatever but the records themselves is lost, Repair rebuilds it, and a dry run only says so.
func TestRepairRebuilds(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, kind := range []byte{
		kindWaiting, kindExpiry, kindDead, kindID, kindFinished, kindWindow, kindEnding, kindDone, kindUntold,
		kindKeyed, kindMember, kindKey, kindTurn, kindSize, kindHead, kindIdle, kindQueue,
	} {
		for i := range uint64(programs(t)) {
			context := fmt.Sprintf("kind %c, program %d", kind, seed+i)
			program := storagetest.Generate(seed+i, crashSteps)
			disk := vfs.NewMem()
			store, err := open("dir", Options{Logger: quiet}, disk)
			assert.NoError(t, err)
			model := storagetest.NewMachine(memstore.New(memstore.Options{}), "crash")
			engine := storagetest.NewMachine(store, "crash")
			for _, op := range program {
				model.Do(t.Context(), op)
				engine.Do(t.Context(), op)
			}
			if kind == kindQueue { // the configuration is lost with it
				forgetConfig(t, model)
			}
			want := look(t, model)
			if kind != kindQueue {
				assert.Equal(t, look(t, engine), want, context)
			}

			assert.NoError(t, store.Close()) // which writes what is known of the queue
			store, err = open("dir", Options{Logger: quiet}, disk)
			assert.NoError(t, err)
			assert.NoError(t, store.db.DeleteRange([]byte{kind}, []byte{kind + 1}, pebble.Sync))
			assert.NoError(t, store.Close())
			store, err = open("dir", Options{Logger: quiet}, disk)
			assert.NoError(t, err)
			engine.Engine = store
			reported := sums(storagetest.RepairAll(t, store, engine.Now, "crash", 5, true))
			assert.Equal(t, sums(storagetest.RepairAll(t, store, engine.Now, "crash", 5, false)), reported, context)
			assert.Equal(t, storagetest.RepairAll(t, store, engine.Now, "crash", 5, true), nil, context)
			got := look(t, engine)
			if kind == kindQueue { // the counters and the configuration are lost with it
				got.Stats.Total, want.Stats.Total = storage.Counters{}, storage.Counters{}
				got.Stats.Config, want.Stats.Config = storage.QueueConfig{}, storage.QueueConfig{}
				got.Keys, want.Keys = heads(got.Keys), heads(want.Keys)
			}
			assert.Equal(t, got, want, context)
			assert.NoError(t, store.Close())
		}
	}
}

// sums adds up what the steps of a repair found.
func sums(fixes []storage.Fix) map[string]int {
	found := map[string]int{}
	for _, f := range fixes {
		found[f.What] += f.Count
	}
	return found
}

// forgetConfig sets the configuration to its default.
func forgetConfig(t *testing.T, m *storagetest.Machine) {
	t.Helper()
	none := new(time.Duration(0))
	_, err := m.Engine.Configure(t.Context(), m.Queue, storage.ConfigEdit{
		Paused: new(false), ExpireIn: none, MaxDeliveries: new(0),
		KeyLimit: new(0), MinBatch: new(0), Linger: none, KeyIdle: none, MaxLen: new(0), MaxPerKey: new(0),
		RetainFor: none, RetainCount: new(0), RetainBytes: new(int64(0)), DeadFor: none, DeadCount: new(0), TellDead: new(false),
	})
	assert.NoError(t, err)
}

// heads are the keys without when their heads are due, which depends on whether they are ordered.
func heads(keys []storage.KeyStats) []storage.KeyStats {
	for i := range keys {
		keys[i].Head = time.Time{}
	}
	return keys
}

// R14: places that lead nowhere are removed.
func TestRepairRemovesOrphans(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	store := openTest(t, Options{Logger: quiet}, vfs.NewMem())
	_, err := store.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "a", ExpireIn: time.Hour}, {ID: "b", MaxAttempts: 1}, {ID: "c", Key: "k"}})
	assert.NoError(t, err)
	p := place{now.UnixMilli() + 5, 77}
	for _, key := range [][]byte{
		waitingKey("q", 3, p), placeKey(kindExpiry, "q", p), placeKey(kindDead, "q", p),
		finishedKey("q", "ghost", 77), seqKey(kindState, "q", 77), seqKey(kindSuccessor, "q", 1),
		keyedKey("q", 3, p), memberKey("q", "k", p), placeKey(kindDone, "q", p), placeKey(kindUntold, "q", p),
		turnKey("q", "k", turn{p, 3}), turnKey("q", "nobody", turn{p, 3}), sizeKey("q", "k", 5), headKey("q", "nobody", 5), idleKey("q", "k", 5),
	} {
		assert.NoError(t, store.db.Set(key, encodeState(&record{state: storage.Ready}), pebble.Sync))
	}
	assert.NoError(t, store.db.Set(idKey(kindID, "q", "ghost"), appendNumber(nil, 77), pebble.Sync))
	ghost := groupState{waiting: 1, number: 1, headed: true, head: member{place: p}}
	assert.NoError(t, store.db.Set(idKey(kindKey, "q", "nobody"), encodeGroup(ghost), pebble.Sync))
	fixes := storagetest.RepairAll(t, store, now, "q", 100, false)
	total := 0
	for _, f := range fixes {
		total += f.Count
	}
	assert.Equal(t, total, 17, fixes)
	assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 100, true), nil)
	_, err = store.Get(t.Context(), now, "q", "ghost")
	assert.ErrorIs(t, err, storage.ErrNotFound)
	got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 9, Lease: time.Second})
	assert.NoError(t, err)
	assert.Equal(t, len(got.Records), 3)
}

// R14: a key of which something wrong is stored is put right, and claimed as if nothing had been.
func TestRepairOfKeys(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	for name, damage := range map[string]func(*groupState){
		"count":    func(s *groupState) { s.waiting = 7 },
		"none":     func(s *groupState) { s.waiting = 0 },
		"head":     func(s *groupState) { s.head.seq, s.head.due = 77, 5 },
		"no turn":  func(s *groupState) { s.placed = false },
		"turn":     func(s *groupState) { s.turn.at += 1 << 40 },
		"priority": func(s *groupState) { s.turn.priority = 3 },
		"idle":     func(s *groupState) { s.idle = 9 },
		"unread":   func(s *groupState) { s.headed, s.head = false, member{} },
	} {
		disk := vfs.NewMem()
		store, err := open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		_, err = store.Enqueue(t.Context(), now, "q", []storage.Record{{ID: "a", Key: "k"}, {ID: "b", Key: "k"}, {ID: "c", Key: "other"}})
		assert.NoError(t, err)
		assert.NoError(t, store.Close())
		store, err = open("dir", Options{Logger: quiet}, disk)
		assert.NoError(t, err)
		value, closer, err := store.db.Get(idKey(kindKey, "q", "k"))
		assert.NoError(t, err)
		s, err := decodeGroup(value)
		assert.NoError(t, err)
		assert.NoError(t, closer.Close())
		damage(&s)
		assert.NoError(t, store.db.Set(idKey(kindKey, "q", "k"), encodeGroup(s), pebble.Sync))

		fixes := storagetest.RepairAll(t, store, now, "q", 3, false)
		assert.True(t, len(fixes) > 0, name)
		assert.Equal(t, storagetest.RepairAll(t, store, now, "q", 3, true), nil, name)
		keys, err := store.Keys(t.Context(), now, "q", storage.KeyFilter{By: storage.Largest, Limit: 9})
		assert.NoError(t, err)
		assert.Equal(t, keys, []storage.KeyStats{{Key: "k", Waiting: 2, Head: now.UTC()}, {Key: "other", Waiting: 1, Head: now.UTC()}}, name)
		got, err := store.Claim(t.Context(), now, storage.Claim{Queue: "q", Limit: 9, Lease: time.Second})
		assert.NoError(t, err)
		assert.Equal(t, len(got.Records), 3, name)
		assert.NoError(t, store.Close())
	}
}

// R14: Repair runs beside traffic, and finds nothing wrong with what is changing.
func TestRepairBesideTraffic(t *testing.T) {
	store := openTest(t, Options{Logger: quiet, Relaxed: true}, vfs.NewMem())
	_, err := store.Configure(t.Context(), "q", storage.ConfigEdit{KeyLimit: new(2), RetainCount: new(50), TellDead: new(true), DeadCount: new(100)})
	assert.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for lane := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(lane)))
			for n := 0; ctx.Err() == nil; n++ {
				id := fmt.Sprintf("%d-%d", lane, rng.IntN(200))
				_, _ = store.Enqueue(ctx, time.Time{}, "q", []storage.Record{{ID: id, Key: []string{"", "k", "l", id}[rng.IntN(4)], Priority: rng.IntN(10), Delay: time.Duration(rng.IntN(3)) * time.Millisecond, MaxAttempts: 2}})
				got, err := store.Claim(ctx, time.Time{}, storage.Claim{Queue: "q", Limit: 2, Lease: time.Second})
				if err != nil {
					return
				}
				for _, r := range got.Records {
					v := storage.Verdict(1 + rng.IntN(5))
					_, _ = store.Settle(ctx, time.Time{}, []storage.Settlement{{Receipt: r.Receipt("q"), Verdict: v}})
				}
				if n%50 == 49 {
					_, _ = store.Redrive(ctx, time.Time{}, "q", storage.Filter{State: storage.Dead, Limit: 20})
				}
			}
		})
	}
	for range 20 {
		assert.Equal(t, storagetest.RepairAll(t, store, time.Time{}, "q", 20, false), nil)
	}
}
