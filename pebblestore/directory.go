// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bidemq/bide/storage"
)

// Files beside Pebble's.
const (
	formatFile = "BIDE"     // says that the directory is ours, and its format
	formatTemp = "BIDE.tmp" // the same while it is being written
	holderFile = "HOLDER"   // who holds the directory, for people
	lockFile   = "LOCK"     // the name is Pebble's
)

// diskFormat is the layout of the directory and its keys. A change of the package comment's layout
// raises it. Directories of earlier formats are read, and become ones of this format.
const (
	diskFormat      = 2
	firstDiskFormat = 1
)

const formatText = "bide pebblestore format "

// claimDirectory makes a directory ours and locks it. It writes nothing into one that is not ours.
func claimDirectory(disk vfs.FS, dir string) (io.Closer, error) {
	fresh, err := inspect(disk, dir)
	if err != nil {
		return nil, err
	}
	if fresh {
		if err := makeDirectory(disk, dir); err != nil {
			return nil, diskError(err)
		}
	}
	lock, err := disk.Lock(disk.PathJoin(dir, lockFile))
	if err != nil {
		return nil, held(disk, dir, err)
	}
	if fresh, err = inspect(disk, dir); err == nil && fresh { // somebody may have been faster
		err = writeFile(disk, dir, formatFile, formatTemp, formatText+strconv.Itoa(diskFormat)+"\n")
	}
	if err == nil {
		err = writeFile(disk, dir, holderFile, holderFile+".tmp", holder())
	}
	if err != nil {
		return nil, errors.Join(diskError(err), lock.Close())
	}
	return lock, nil
}

// inspect says whether a directory waits to be made ours, or one of this format; an error if it belongs
// to somebody else or to a later version.
func inspect(disk vfs.FS, dir string) (fresh bool, err error) {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, diskError(err)
	}
	if slices.Contains(names, formatFile) {
		return checkFormat(disk, dir)
	}
	for _, name := range names {
		if name != formatTemp && name != lockFile { // left by a crash before the directory was ours
			return false, fmt.Errorf("%w: %q is not a bide directory: it holds %q; give an empty directory or a new name", storage.ErrInvalid, dir, name)
		}
	}
	return true, nil
}

func checkFormat(disk vfs.FS, dir string) (early bool, err error) {
	text, err := readFile(disk, disk.PathJoin(dir, formatFile))
	if err != nil {
		return false, diskError(err)
	}
	version, ok := strings.CutPrefix(strings.TrimSuffix(text, "\n"), formatText)
	n, err := strconv.Atoi(version)
	if !ok || err != nil || n < firstDiskFormat || n > diskFormat {
		return false, fmt.Errorf("%w: %q has %q, this version of bide knows up to %q", storage.ErrFormat, dir, strings.TrimSpace(text), formatText+strconv.Itoa(diskFormat))
	}
	return n < diskFormat, nil
}

// held explains why a directory could not be locked.
func held(disk vfs.FS, dir string, cause error) error {
	who, err := readFile(disk, disk.PathJoin(dir, holderFile))
	if err != nil || who == "" {
		who = "another process"
	}
	return fmt.Errorf("%w: %q is held by %s (%w): stop it, or use Redis, which many processes can share", storage.ErrUnavailable, dir, strings.TrimSpace(who), cause)
}

func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown host"
	}
	return fmt.Sprintf("process %d on %s\n", os.Getpid(), host)
}

func readFile(disk vfs.FS, name string) (string, error) {
	f, err := disk.Open(name)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	return string(text), errors.Join(err, f.Close())
}

// writeFile replaces a file so that after a crash it is whole or as it was.
func writeFile(disk vfs.FS, dir, name, temp, text string) error {
	f, err := disk.Create(disk.PathJoin(dir, temp), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := disk.Rename(disk.PathJoin(dir, temp), disk.PathJoin(dir, name)); err != nil {
		return err
	}
	return syncDirectory(disk, dir)
}

func makeDirectory(disk vfs.FS, dir string) error {
	if err := disk.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return syncDirectory(disk, disk.PathDir(dir))
}

func syncDirectory(disk vfs.FS, dir string) error {
	d, err := disk.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
