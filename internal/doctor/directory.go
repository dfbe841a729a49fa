// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	mark    = "BIDE"       // file that every directory of a store has
	scratch = "doctor.tmp" // file that the disk is tried with
	syncs   = 20           // of it
	block   = 4096         // bytes of each
)

// Directory looks at a store in a directory, whether a process holds it or not.
type Directory struct {
	Path   string
	Limits Limits
}

// Look tries the disk.
func (d *Directory) Look() []Finding {
	if _, err := os.Stat(filepath.Join(d.Path, mark)); err != nil {
		if _, err := os.Stat(d.Path); errors.Is(err, fs.ErrNotExist) {
			return d.find("directory", Note, Fine, "there is no store yet", "it is made when something is enqueued")
		}
		return d.find("directory", Problem, Stop, "it is no directory of bide", "bide does not write into the directories of others", "give another to --store")
	}
	found := d.space()
	return append(found, d.syncing()...)
}

func (d *Directory) find(check string, severity Severity, harm Harm, what, why string, mend ...string) []Finding {
	return []Finding{{Check: check, Severity: severity, Harm: harm, Where: d.Path, What: what, Why: why, Mend: mend}}
}

func (d *Directory) space() []Finding {
	free, total, err := freeSpace(d.Path)
	if err != nil || total == 0 {
		return nil // where it is not known
	}
	percent := 100 * float64(free) / float64(total)
	if free >= d.Limits.FreeBytes && percent >= d.Limits.FreePercent {
		return nil
	}
	severity := Warning
	if free < d.Limits.FreeBytes/10 {
		severity = Problem
	}
	return d.find("disk space", severity, Stop, fmt.Sprintf("%s of the disk are free, %.1f%%", size(float64(free)), percent),
		"when a write fails every call fails, until there is room and the process is started again; what was answered is kept",
		"make room, or move the directory to a larger disk while no process holds it")
}

// syncing writes a scratch file as the store writes its log.
func (d *Directory) syncing() []Finding {
	times, err := trySync(filepath.Join(d.Path, scratch))
	if err != nil {
		return d.find("write", Problem, Stop, fmt.Sprintf("the directory cannot be written to: %v", err),
			"every call that stores something fails; a process that met a failed write answers nothing until it is started again",
			"mend the disk or its permissions, then start the process again")
	}
	slices.Sort(times)
	if p90 := times[len(times)*9/10]; p90 > d.Limits.Sync {
		return d.find("sync", Warning, Delay, fmt.Sprintf("the disk takes %s (median), %s (9 in 10) to sync", times[len(times)/2].Round(time.Microsecond), p90.Round(time.Microsecond)),
			"every call waits for a sync, so that what is answered survives a crash", "use a faster disk; with ?relaxed=true nobody waits and a crash loses the last moments")
	}
	return nil
}

func trySync(name string) (times []time.Duration, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(name)) }()
	data := make([]byte, block)
	for range syncs {
		began := time.Now()
		if _, err := f.Write(data); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// Held is the finding about a directory that cannot be opened because a process holds it.
func (d *Directory) Held(err error) Finding {
	return Finding{
		Check: "holder", Severity: Note, Harm: Unseen, Where: d.Path,
		What: "its queues were not looked at", Why: err.Error(),
		Mend: []string{"stop that process to look at the queues, or ask it"},
	}
}

// Room returns the bytes free on the disk and those that the directory takes.
func (d *Directory) Room() (free, used int64) {
	free, _, err := freeSpace(d.Path)
	if err != nil {
		return 0, 0
	}
	_ = filepath.WalkDir(d.Path, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil { // files come and go
				used += info.Size()
			}
		}
		return nil
	})
	return free, used
}
