// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// demoOptions is what the flags of demo say.
type demoOptions struct {
	file   string
	orders int
	over   time.Duration
}

func (a *app) demo() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Watch the orders of a shop time out",
		Long: `Enqueue a timeout for each of some hundred orders, pay a third of them in time, let handlers fail
now and then and one consumer vanish with messages in its hands, and account for every order.

It uses a directory of its own that is removed afterwards, unless --store or BIDE_STORE names a
store. It fails if an order was lost, handled early, or acknowledged twice.`,
		Example: `  bide demo
  bide demo --store redis://localhost:6379 --orders 20000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.orders < 0 || o.orders > 1_000_000 {
				return invalid("orders %d is not between 0 and 1000000", o.orders)
			}
			if o.over < time.Second || o.over > time.Hour {
				return invalid("over %s is not between 1s and 1h", o.over)
			}
			orders, err := loadOrders(o.file, o.orders)
			if err != nil {
				return err
			}
			return a.runDemo(c.Context(), orders, o.over)
		},
	}
	f := c.Flags()
	f.StringVar(&o.file, "file", "", "JSON lines of orders (default those of a day in a coffee shop)")
	f.IntVar(&o.orders, "orders", 0, "how many, the file's are repeated as needed; 0 is those of the file")
	f.DurationVar(&o.over, "over", 6*time.Second, "over how long the timeouts are due")
	return c
}

// runDemo runs the demo on the store asked for, or on one of its own.
func (a *app) runDemo(ctx context.Context, orders []order, over time.Duration) (err error) {
	ctx, stop := untilInterrupted(ctx, func() {})
	defer stop()
	store := a.url()
	redis := strings.HasPrefix(store, "redis")
	switch {
	case redis && !strings.Contains(store, "namespace="):
		store = addParameter(store, "namespace=demo") // not among the queues of the user
	case store == "":
		dir, err := os.MkdirTemp("", "bide-demo-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		store = "pebble:" + dir
	}
	engine, err := openStore(ctx, store, a.logger())
	if err != nil {
		return err
	}
	defer func() {
		if closing := engine.Close(); err == nil {
			err = closing
		}
	}()
	d := newDemo(a, engine, orders, over)
	if redis {
		d.vanish = d.killConsumer(store)
	}
	fmt.Fprintf(a.err, "%d orders on %s, timeouts due over %s\n", len(orders), storeName(store), over)
	report, err := d.run(ctx)
	if err != nil {
		return errors.Join(err, d.clear())
	}
	if err := a.printReport(report); err != nil {
		return err
	}
	return report.verdict()
}

func addParameter(url, parameter string) string {
	if strings.Contains(url, "?") {
		return url + "&" + parameter
	}
	return url + "?" + parameter
}

// storeName is a store as it may be shown: without user and password.
func storeName(store string) string {
	scheme, rest, _ := strings.Cut(store, "://")
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		return scheme + "://" + rest[at+1:]
	}
	return store
}
