// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// overflows are the names of what a bounded queue does.
var overflows = map[storage.Overflow]string{storage.Refuse: "refuse", storage.DropOldest: "drop-oldest"}

// overflow is a flag that names one.
type overflow storage.Overflow

func (o *overflow) String() string { return overflows[storage.Overflow(*o)] }
func (o *overflow) Type() string   { return "string" }

func (o *overflow) Set(name string) error {
	for of, known := range overflows {
		if name == known {
			*o = overflow(of)
			return nil
		}
	}
	return fmt.Errorf("%q is not refuse or drop-oldest", name)
}

// settings are flags that change the configuration of a queue. Those that are not given change
// nothing.
type settings struct {
	flags *pflag.FlagSet
	edit  storage.ConfigEdit
	given []func() // puts a flag that was given into edit
}

func setting[T any](s *settings, name, usage string, field **T, define func(p *T, name string, value T, usage string)) {
	v := new(T)
	define(v, name, *v, usage)
	s.given = append(s.given, func() {
		if s.flags.Changed(name) {
			*field = v
		}
	})
}

func (s *settings) define(f *pflag.FlagSet) {
	s.flags = f
	e := &s.edit
	setting(s, "expire-in", "given to messages enqueued from then on without one, 0 is none", &e.ExpireIn, f.DurationVar)
	setting(s, "max-deliveries", "deliveries before a message is dead, released ones included; 0 is no limit", &e.MaxDeliveries, f.IntVar)
	setting(s, "ordered", "work off each key in order; a message of it that fails holds the others back", &e.Ordered, f.BoolVar)
	setting(s, "key-limit", "messages of a key that run at once, 0 is no limit", &e.KeyLimit, f.IntVar)
	setting(s, "min-batch", "messages of a key that must be due before any is handed out; needs --linger", &e.MinBatch, f.IntVar)
	setting(s, "linger", "how long the first of too few is held back", &e.Linger, f.DurationVar)
	setting(s, "key-idle", "what waits of a key expires when nothing joins it for so long, 0 is never", &e.KeyIdle, f.DurationVar)
	setting(s, "max-len", "messages that may wait, 0 is no bound", &e.MaxLen, f.IntVar)
	setting(s, "max-per-key", "messages of each key that may wait, 0 is no bound", &e.MaxPerKey, f.IntVar)
	setting(s, "retain-for", "keep what was acknowledged as done for so long, 0 is no bound", &e.RetainFor, f.DurationVar)
	setting(s, "retain-count", "keep so many of them, 0 is no bound", &e.RetainCount, f.IntVar)
	setting(s, "retain-bytes", "keep so many bytes of them, 0 is no bound; where all three are 0 none is kept", &e.RetainBytes, f.Int64Var)
	setting(s, "dead-for", "keep dead messages for so long, 0 is for ever", &e.DeadFor, f.DurationVar)
	setting(s, "dead-count", "keep so many of them, 0 is no bound", &e.DeadCount, f.IntVar)
	setting(s, "shards", "parts that Redis spreads the queue over, see docs/scale.md; 0 and 1 are one", &e.Shards, f.IntVar)
	setting(s, "tell-dead", "note which deaths nobody was told; consumers with OnDead switch it on", &e.TellDead, f.BoolVar)
	setting(s, "overflow", "what happens at a bound: refuse, or drop-oldest to make room", &e.Overflow,
		func(p *storage.Overflow, name string, _ storage.Overflow, usage string) {
			f.Var((*overflow)(p), name, usage)
		})
}

func (a *app) configure() *cobra.Command {
	var s settings
	c := &cobra.Command{
		Use:   "configure QUEUE",
		Short: "Change the configuration of a queue, or show it",
		Long: `Change what the flags say of a queue's configuration, for everybody at once, and show the whole of
it. Without flags nothing is changed. What contradicts itself is refused, and changes nothing.`,
		Example: "  bide configure mail\n" +
			"  bide configure events --max-per-key 1000 --overflow drop-oldest --expire-in 3m --key-idle 10m",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, put := range s.given {
				put()
			}
			return a.configureQueue(c, args[0], s.edit, a.printConfig)
		},
	}
	s.define(c.Flags())
	return c
}

func (a *app) pause() *cobra.Command {
	return a.pausing("pause QUEUE", "Accept messages and deliver none", true)
}

func (a *app) resume() *cobra.Command { return a.pausing("resume QUEUE", "Deliver again", false) }

func (a *app) pausing(use, short string, paused bool) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.configureQueue(c, args[0], storage.ConfigEdit{Paused: &paused}, func(queue string, config storage.QueueConfig) error {
				_, err := fmt.Fprintf(a.out, "%s: paused %t\n", queue, config.Paused)
				return err
			})
		},
	}
}

func (a *app) configureQueue(c *cobra.Command, queue string, e storage.ConfigEdit, print func(string, storage.QueueConfig) error) error {
	return a.with(c.Context(), func(client *bide.Client) error {
		config, err := client.Configure(c.Context(), queue, e)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(showConfig(queue, config))
		}
		return print(queue, config)
	})
}

// configured is a configuration as JSON shows it.
type configured struct {
	Queue         string `json:"queue"`
	Paused        bool   `json:"paused"`
	ExpireIn      string `json:"expire_in,omitempty"`
	MaxDeliveries int    `json:"max_deliveries"`
	Ordered       bool   `json:"ordered"`
	KeyLimit      int    `json:"key_limit"`
	MinBatch      int    `json:"min_batch"`
	Linger        string `json:"linger,omitempty"`
	KeyIdle       string `json:"key_idle,omitempty"`
	MaxLen        int    `json:"max_len"`
	MaxPerKey     int    `json:"max_per_key"`
	Overflow      string `json:"overflow"`
	RetainFor     string `json:"retain_for,omitempty"`
	RetainCount   int    `json:"retain_count"`
	RetainBytes   int64  `json:"retain_bytes"`
	DeadFor       string `json:"dead_for,omitempty"`
	DeadCount     int    `json:"dead_count"`
	TellDead      bool   `json:"tell_dead"`
	Shards        int    `json:"shards"`
}

func showConfig(queue string, c storage.QueueConfig) configured {
	return configured{
		Queue: queue, Paused: c.Paused, ExpireIn: span(c.ExpireIn), MaxDeliveries: c.MaxDeliveries,
		Ordered: c.Ordered, KeyLimit: c.KeyLimit, MinBatch: c.MinBatch, Linger: span(c.Linger), KeyIdle: span(c.KeyIdle),
		MaxLen: c.MaxLen, MaxPerKey: c.MaxPerKey, Overflow: overflows[c.Overflow],
		RetainFor: span(c.RetainFor), RetainCount: c.RetainCount, RetainBytes: c.RetainBytes,
		DeadFor: span(c.DeadFor), DeadCount: c.DeadCount, TellDead: c.TellDead, Shards: max(c.Shards, 1),
	}
}

// printConfig shows a configuration to a person, each setting by the name of its flag.
func (a *app) printConfig(queue string, c storage.QueueConfig) error {
	t := a.table("queue", queue)
	t.row("paused", fmt.Sprint(c.Paused))
	row := func(name string, value any, none string) {
		text := fmt.Sprint(value)
		if none != "" && (value == 0 || value == int64(0) || value == time.Duration(0)) {
			text = none
		}
		t.row(name, text)
	}
	row("expire-in", c.ExpireIn, "never")
	row("max-deliveries", c.MaxDeliveries, "no limit")
	row("ordered", c.Ordered, "")
	row("key-limit", c.KeyLimit, "no limit")
	row("min-batch", max(c.MinBatch, 1), "")
	row("linger", c.Linger, "")
	row("key-idle", c.KeyIdle, "never")
	row("max-len", c.MaxLen, "no bound")
	row("max-per-key", c.MaxPerKey, "no bound")
	row("overflow", overflows[c.Overflow], "")
	none := "no bound"
	if !c.Retains() {
		none = "none is kept"
	}
	row("retain-for", c.RetainFor, none)
	row("retain-count", c.RetainCount, none)
	row("retain-bytes", c.RetainBytes, none)
	row("dead-for", c.DeadFor, "for ever")
	row("dead-count", c.DeadCount, "no bound")
	row("tell-dead", c.TellDead, "")
	row("shards", max(c.Shards, 1), "")
	return t.end()
}
