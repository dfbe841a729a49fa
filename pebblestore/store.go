// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/storage"
)

// Options of a Store; the zero value is usable.
type Options struct {
	// Relaxed answers before the disk has synced. A crash of the machine then loses what was
	// answered in the moments before it, and a killed process what it had not yet handed to the
	// system, both milliseconds as a rule and without a bound; what is left is the state at an
	// earlier instant, whole.
	Relaxed bool

	MaxBody int              // bytes of body and headers, 0 is storage.DefaultBody
	Logger  *slog.Logger     // nil is slog.Default
	Clock   func() time.Time // the engine's own clock, nil is time.Now
}

// Store is an engine in a directory. Its methods may be called from many goroutines.
type Store struct {
	relaxed   bool
	maxBody   int
	clock     func() time.Time
	guard     *guard
	lock      io.Closer // of the directory
	db        *pebble.DB
	notices   notices
	lockWaits lockWaits

	inbox   inbox
	groups  chan group    // applied and not yet answered
	closed  chan struct{} // closed when Close begins
	stopped chan struct{} // closed when nobody writes any more
	once    sync.Once
	lost    error // of Close

	dir       string
	newestLog atomic.Uint64 // of Pebble

	queues map[string]*queue // those that exist and were used; belongs to the writer
	sight  sight
	ahead  int64  // bytes in memory of what is ahead in all queues; belongs to the writer
	locks  *locks // nil until the first use; belongs to the writer
}

var _ storage.Engine = (*Store)(nil)

// Open opens a directory, which is made if it does not exist. The error is storage.ErrInvalid for
// a directory that holds something else, storage.ErrFormat for one of another version or damaged,
// and storage.ErrUnavailable for one that another process holds or that cannot be read.
func Open(dir string, o Options) (*Store, error) {
	if dir == "" {
		return nil, fmt.Errorf("pebblestore: open: %w: directory name is empty", storage.ErrInvalid)
	}
	full, err := filepath.Abs(dir) // one directory has one name, so that a process cannot hold it twice
	if err != nil {
		return nil, fmt.Errorf("pebblestore: open %q: %w: %w", dir, storage.ErrInvalid, err)
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	}
	return open(full, o, vfs.Default)
}

func open(dir string, o Options, disk vfs.FS) (*Store, error) {
	if o.MaxBody == 0 {
		o.MaxBody = storage.DefaultBody
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	s := &Store{
		dir:       dir,
		relaxed:   o.Relaxed,
		maxBody:   o.MaxBody,
		clock:     o.Clock,
		guard:     newGuard(disk),
		notices:   newNotices(),
		lockWaits: lockWaits{byName: map[string][]*lockWaiter{}},
		inbox:     newInbox(),
		groups:    make(chan group, 1),
		closed:    make(chan struct{}),
		stopped:   make(chan struct{}),
		queues:    map[string]*queue{},
		sight:     sight{aheadRecords, aheadLater},
	}
	var err error
	if s.lock, err = claimDirectory(disk, dir); err != nil {
		return nil, wrap("open", "", err)
	}
	if s.db, err = openPebble(dir, s.guard, o.Logger, &s.newestLog); err != nil {
		return nil, wrap("open", "", errors.Join(diskError(err), s.lock.Close()))
	}
	go s.write()
	return s, nil
}

// Memory that Pebble may use. The cache has to be larger than all memtables, which count as part of
// it: with what is left it keeps the filters that tell Enqueue that an id is unknown.
const (
	cacheBytes    = 256 << 20
	memTableBytes = 32 << 20
)

// openPebble opens the database. It gives up on one that hangs because the disk is frozen.
func openPebble(dir string, disk *guard, log *slog.Logger, newest *atomic.Uint64) (*pebble.DB, error) {
	type opened struct {
		db  *pebble.DB
		err error
	}
	done := make(chan opened, 1)
	go func() {
		db, err := startPebble(dir, disk, log, newest)
		done <- opened{db, err}
	}()
	var o opened
	select {
	case o = <-done:
	case <-disk.frozen:
	}
	if err := disk.failure(); err != nil {
		return nil, err
	}
	return o.db, o.err
}

// startPebble opens the database with settings for a queue: much is written, little lives long.
func startPebble(dir string, disk *guard, log *slog.Logger, newest *atomic.Uint64) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil { // what it cannot replay makes Pebble panic
			err = fmt.Errorf("%w: %v", storage.ErrFormat, r)
		}
	}()
	cache := pebble.NewCache(cacheBytes)
	defer cache.Unref()
	o := &pebble.Options{
		FS:                          disk,
		Cache:                       cache,
		Logger:                      logger{log, disk},
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       32,
		LBaseMaxBytes:               256 << 20,
		EventListener: &pebble.EventListener{
			WALCreated: func(i pebble.WALCreateInfo) { newest.Store(uint64(i.FileNum)) },
			DataCorruption: func(i pebble.DataCorruptionInfo) {
				log.Error("pebblestore: damaged file", "path", i.Path, "error", i.Details)
			},
		},
	}
	o.Experimental.CompactionScheduler = newScheduler()
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return pebble.Open(dir, o)
}

// Close implements [storage.Engine].
func (s *Store) Close() error {
	s.once.Do(func() {
		close(s.closed)
		flushed := false
		select {
		case <-s.stopped:
			flushed = s.flush()
			s.lost = s.guard.failure()
		case <-s.guard.frozen:
		}
		close(s.guard.left)
		if s.guard.failure() == nil {
			if s.lost = closePebble(s.db); s.lost == nil && flushed {
				s.removeLogs()
			}
		} else { // the writer may hang in Pebble for good; it cannot change the disk
			go func() { _ = closePebble(s.db) }()
		}
		s.lost = wrap("close", "", diskError(errors.Join(s.lost, s.lock.Close())))
	})
	return s.lost
}

// closePebble closes the database. A frozen one may fail in any way.
func closePebble(db *pebble.DB) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", storage.ErrUnavailable, r)
		}
	}()
	return db.Close()
}
