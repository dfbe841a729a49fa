// SPDX-License-Identifier: Apache-2.0

package torture

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// soakDirectory closes the store under those who use it, every few seconds, and opens it again.
func soakDirectory(t *testing.T, seed uint64, long time.Duration) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 5))
	dir := filepath.Join(t.TempDir(), "store")
	openAgain := func() storage.Engine {
		store, err := openStore(t.Context(), inDirectory+dir)
		assert.NoError(t, err)
		return store
	}
	store := openAgain()
	soaked(t, store, rnd)
	l := live(t.Context(), store, seed)
	var samples []sample
	opened := 1
	sampled := time.Now()
	for end := time.Now().Add(long); time.Now().Before(end); {
		pause(t.Context(), min(time.Second+time.Duration(rnd.IntN(3000))*time.Millisecond, sampleEvery(long)))
		if time.Since(sampled) >= sampleEvery(long) {
			samples = append(samples, take(t, directorySize(t, dir)))
			sampled = time.Now()
		}
		assert.NoError(t, store.Close())
		l.stop()
		l.producers.Wait()
		l.consumers.Wait()
		store = openAgain()
		opened++
		l = live(t.Context(), store, seed+uint64(opened))
	}
	t.Logf("opened %d times", opened)
	l.end(t, store)
	flat(t, samples)
	st, err := store.Stats(t.Context(), time.Time{}, queue)
	assert.NoError(t, err)
	assert.Equal(t, st.Keys, int64(0))
	for step := (storage.Repair{DryRun: true, Limit: storage.MaxBatch}); ; {
		done, err := store.Repair(t.Context(), time.Time{}, queue, step)
		assert.NoError(t, err)
		assert.Equal(t, len(done.Fixes), 0, done.Fixes)
		if step.After = done.Next; step.After == "" {
			break
		}
	}
	assert.NoError(t, store.Close())
}

// directorySize is the bytes of all files below a directory, which may go while they are counted.
func directorySize(t *testing.T, dir string) int64 {
	t.Helper()
	var bytes int64
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return ignoreGone(err)
	})
	assert.NoError(t, err)
	return bytes
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
