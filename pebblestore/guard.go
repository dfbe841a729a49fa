// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"fmt"
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard is a file system that freezes at the first write that fails: from then on nothing changes on
// the disk, as if the process had been killed there. Pebble survives a kill at any point, but it
// does not promise to survive going on after an error, and would end the process instead, or try
// again without a pause.
type guard struct {
	vfs.FS
	once   sync.Once
	frozen chan struct{} // closed by the first failure
	err    error         // the first failure, set before frozen is closed
	left   chan struct{} // closed when nobody waits for Pebble any more; until then changes to a frozen disk hang
}

func newGuard(fs vfs.FS) *guard {
	return &guard{FS: fs, frozen: make(chan struct{}), left: make(chan struct{})}
}

// fail freezes the file system because of err; a later failure changes nothing.
func (g *guard) fail(err error) {
	g.once.Do(func() {
		g.err = err
		close(g.frozen)
	})
}

// failure returns what froze the file system, nil while it works.
func (g *guard) failure() error {
	select {
	case <-g.frozen:
		return fmt.Errorf("frozen after a failed write: %w", g.err)
	default:
		return nil
	}
}

// change runs a writing operation unless the file system is frozen, and freezes it if that fails.
func (g *guard) change(do func() error) error {
	if err := g.failure(); err != nil {
		<-g.left
		return err
	}
	err := do()
	if err != nil {
		g.fail(err)
	}
	return err
}

func (g *guard) create(do func() (vfs.File, error)) (vfs.File, error) {
	var f vfs.File
	err := g.change(func() (err error) {
		f, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &guardedFile{f, g}, nil
}

// Create implements [vfs.FS].
func (g *guard) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.Create(name, c) })
}

// OpenReadWrite implements [vfs.FS].
func (g *guard) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.OpenReadWrite(name, c, o...) })
}

// ReuseForWrite implements [vfs.FS].
func (g *guard) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, c) })
}

// OpenDir implements [vfs.FS]. Directories are opened to be synced.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	return g.create(func() (vfs.File, error) { return g.FS.OpenDir(name) })
}

// Link implements [vfs.FS].
func (g *guard) Link(oldname, newname string) error {
	return g.change(func() error { return g.FS.Link(oldname, newname) })
}

// Rename implements [vfs.FS].
func (g *guard) Rename(oldname, newname string) error {
	return g.change(func() error { return g.FS.Rename(oldname, newname) })
}

// Remove implements [vfs.FS]. A file that cannot be removed takes room and does no other harm.
func (g *guard) Remove(name string) error {
	if err := g.failure(); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

// RemoveAll implements [vfs.FS].
func (g *guard) RemoveAll(name string) error {
	if err := g.failure(); err != nil {
		return err
	}
	return g.FS.RemoveAll(name)
}

// Lock implements [vfs.FS]. The directory is locked outside of Pebble, so that a frozen one can be
// left to the next.
func (g *guard) Lock(string) (io.Closer, error) { return nothing{}, nil }

type nothing struct{}

// Close implements [io.Closer].
func (nothing) Close() error { return nil }

// Unwrap implements [vfs.FS].
func (g *guard) Unwrap() vfs.FS { return g.FS }

type guardedFile struct {
	vfs.File
	g *guard
}

// Write implements [vfs.File].
func (f *guardedFile) Write(p []byte) (n int, err error) {
	err = f.g.change(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

// WriteAt implements [vfs.File].
func (f *guardedFile) WriteAt(p []byte, off int64) (n int, err error) {
	err = f.g.change(func() (err error) {
		n, err = f.File.WriteAt(p, off)
		return err
	})
	return n, err
}

// Sync implements [vfs.File].
func (f *guardedFile) Sync() error { return f.g.change(f.File.Sync) }

// SyncData implements [vfs.File].
func (f *guardedFile) SyncData() error { return f.g.change(f.File.SyncData) }

// SyncTo implements [vfs.File].
func (f *guardedFile) SyncTo(length int64) (full bool, err error) {
	err = f.g.change(func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}

// Preallocate implements [vfs.File]. Room that is reserved for a log makes no sync faster, and an idle
// store would hold many times the room that it needs.
func (*guardedFile) Preallocate(int64, int64) error { return nil }
