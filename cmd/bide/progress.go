// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far something is: as a bar to a person, as a line a second to a log.
type progress struct {
	app   *app
	what  string
	total int
	bar   *progressbar.ProgressBar // nil when nobody watches
	told  time.Time
	done  int
}

func (a *app) newProgress(what string, total int) *progress {
	p := &progress{app: a, what: what, total: total, told: time.Now()}
	if isTerminal(a.err) {
		p.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(a.err), progressbar.OptionSetDescription(what),
			progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(40))
	}
	return p
}

func (p *progress) set(done int) {
	p.done = done
	if p.bar != nil {
		_ = p.bar.Set(done)
		return
	}
	if time.Since(p.told) >= time.Second {
		p.told = time.Now()
		fmt.Fprintf(p.app.err, "%d of %d %s\n", done, p.total, p.what)
	}
}

func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Finish()
		return
	}
	fmt.Fprintf(p.app.err, "%d of %d %s\n", p.done, p.total, p.what)
}
