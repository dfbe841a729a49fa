// SPDX-License-Identifier: Apache-2.0

// Command lock-conflict withdraws money from accounts, one withdrawal at a time for each. A request
// that meets a lock which somebody holds has three ways out: it fails at once, it waits, or it is put
// off by the queue, so that its consumer stays free for others. A holder that stood still for too
// long is refused by the token of its lock.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stage"
)

type withdrawal struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

var withdrawals = bide.NewQueue[withdrawal]("lock.withdrawals")

type example struct {
	accounts, each int
	takes          time.Duration
}

func main() {
	var e example
	flag.IntVar(&e.accounts, "accounts", 4, "accounts to withdraw from")
	flag.IntVar(&e.each, "each", 5, "withdrawals from each")
	flag.DurationVar(&e.takes, "takes", 200*time.Millisecond, "how long one takes")
	stage.Main(e.run)
}

func (e example) run(ctx context.Context, out io.Writer, client *bide.Client) error {
	// Fail at once, or wait.
	held, err := client.TryLock(ctx, "account-0", bide.LockConfig{})
	if err != nil {
		return err
	}
	_, err = client.TryLock(ctx, "account-0", bide.LockConfig{})
	fmt.Fprintln(out, "fail at once: locked is", errors.Is(err, bide.ErrLocked))
	time.AfterFunc(e.takes, func() { _ = held.Unlock(ctx) })
	waited, err := client.Lock(ctx, "account-0", bide.LockConfig{Wait: time.Minute})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "wait: locked is", errors.Is(err, bide.ErrLocked))

	// Who had the lock before writes no more, once the next one has written.
	var t stage.Table
	t.Update("account-0", 100, waited.Token())
	fmt.Fprintln(out, "stale holder: row updated is", t.Update("account-0", 999, held.Token()))
	if err := waited.Unlock(ctx); err != nil {
		return err
	}

	// Or be put off: no attempt is spent, and no handler stands and waits.
	var done stage.Ledger
	consumer := bide.NewConsumer(client, bide.ConsumerConfig{Concurrency: 2 * e.accounts})
	withdrawals.Handle(consumer, func(ctx context.Context, d *bide.Delivery[withdrawal]) error {
		balance := t.Balance(d.Body.Account) // read, think, write: two at once would lose one
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(e.takes):
		}
		if !t.Update(d.Body.Account, balance-d.Body.Cents, bide.LockOf(ctx).Token()) {
			return errors.New("somebody else has the account")
		}
		done.Note(d.ID)
		return nil
	}, bide.Exclusive(client, func(d *bide.Delivery[[]byte]) string { return d.Key }, bide.ExclusiveConfig{Snooze: e.takes}))
	stop := stage.Start(ctx, consumer)
	defer func() { _ = stop() }()
	for n := range e.accounts * e.each {
		account := fmt.Sprintf("account-%d", n%e.accounts)
		if _, err := withdrawals.Enqueue(ctx, client, withdrawal{account, 1}, bide.Key(account)); err != nil {
			return err
		}
	}
	err = done.Until(ctx, e.accounts*e.each)
	fmt.Fprintf(out, "put off: %d withdrawals from %d accounts, %d left in account-0\n", e.accounts*e.each, e.accounts, t.Balance("account-0"))
	return errors.Join(err, stop(), done.Once(e.accounts*e.each))
}
