// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// keyCount is a key as JSON shows it.
type keyCount struct {
	Key     string     `json:"key"`
	Waiting int64      `json:"waiting"`
	Leased  int64      `json:"leased"`
	Head    *time.Time `json:"head,omitempty"` // when the first that waits is due
}

func (a *app) keys() *cobra.Command {
	var f storage.KeyFilter
	var largest, oldest bool
	c := &cobra.Command{
		Use:   "keys QUEUE",
		Short: "List the keys of a queue that have a message waiting or running",
		Example: "  bide keys events --largest --limit 10\n" +
			"  bide keys events --key game-7",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := exclusive(c, "largest", "oldest", "key", "after"); err != nil {
				return err
			}
			if err := givenEmpty(c, "key", "after"); err != nil {
				return err
			}
			switch {
			case largest:
				f.By = storage.Largest
			case oldest:
				f.By = storage.Oldest
			}
			return a.with(c.Context(), func(client *bide.Client) error { return a.listKeys(c, client, args[0], f) })
		},
	}
	c.Flags().BoolVar(&largest, "largest", false, "those with the most messages waiting first")
	c.Flags().BoolVar(&oldest, "oldest", false, "those first whose first message is due earliest")
	c.Flags().StringVar(&f.Key, "key", "", "only this one")
	c.Flags().StringVar(&f.After, "after", "", "only those behind this one, by name")
	c.Flags().IntVar(&f.Limit, "limit", 50, "keys at most, 0 is all")
	return c
}

func (a *app) listKeys(c *cobra.Command, client *bide.Client, queue string, f storage.KeyFilter) error {
	st, err := client.Stats(c.Context(), queue)
	if err != nil {
		return err
	}
	var t *table
	for k, err := range client.Keys(c.Context(), queue, f) {
		if err != nil {
			return err
		}
		if a.json {
			n := keyCount{Key: k.Key, Waiting: k.Waiting, Leased: k.Leased}
			if !k.Head.IsZero() {
				n.Head = &k.Head
			}
			if err := a.printJSON(n); err != nil {
				return err
			}
			continue
		}
		if t == nil {
			t = a.table("KEY", "WAITING", "LEASED", "FIRST DUE")
		}
		t.row(plain(k.Key), fmt.Sprint(k.Waiting), fmt.Sprint(k.Leased), relative(k.Head, st.Now))
	}
	if t == nil {
		a.printf("no keys\n")
		return nil
	}
	return t.end()
}
