// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bidemq/bide/storage"
)

// demoReport is what became of the orders.
type demoReport struct {
	Enqueued     int     `json:"enqueued"`
	Paid         int     `json:"paid_in_time"`
	TimedOut     int     `json:"timed_out"`
	Retried      int64   `json:"retried"`
	Dead         int     `json:"dead"`
	Lost         int     `json:"lost"`
	Early        int     `json:"early"`
	HandledTwice int     `json:"handled_twice"`
	AckedTwice   int     `json:"acknowledged_twice"`
	Recovered    int64   `json:"leases_ended"`
	LagP50       float64 `json:"lag_p50_ms"`
	LagP99       float64 `json:"lag_p99_ms"`
	LagMax       float64 `json:"lag_max_ms"`
	Vanished     string  `json:"vanished"`
}

// report accounts for every order, and clears the store.
func (d *demo) report(ctx context.Context, vanished string) (demoReport, error) {
	st, err := d.client.Stats(ctx, d.queue.Name())
	if err != nil {
		return demoReport{}, err
	}
	dead := map[string]bool{}
	for r, err := range d.client.Messages(ctx, d.queue.Name(), storage.Filter{State: storage.Dead}) {
		if err != nil {
			return demoReport{}, err
		}
		dead[r.ID] = true
	}
	d.mu.Lock()
	r := demoReport{
		Enqueued: len(d.due), Paid: len(d.paid), TimedOut: len(d.acked), Retried: st.Total.Retried, Dead: len(dead),
		Early: d.early, Recovered: st.Total.Lapsed, Vanished: vanished,
	}
	for number := range d.due {
		if !d.paid[number] && d.acked[number] == 0 && !dead[number] {
			r.Lost++
		}
		if d.handled[number] > 1 {
			r.HandledTwice++
		}
		if d.acked[number] > 1 {
			r.AckedTwice++
		}
	}
	slices.Sort(d.lags)
	r.LagP50, r.LagP99, r.LagMax = d.lag(0.5), d.lag(0.99), d.lag(1)
	d.mu.Unlock()
	return r, d.clear()
}

// clear leaves nothing of the demo in the store.
func (d *demo) clear() error {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	var errs []error
	for _, state := range []storage.State{storage.Delayed, storage.Ready, storage.Dead} {
		_, err := d.client.Purge(ctx, d.queue.Name(), storage.Filter{State: state})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// lag returns a quantile of the sorted lags in milliseconds.
func (d *demo) lag(quantile float64) float64 {
	if len(d.lags) == 0 {
		return 0
	}
	at := int(quantile * float64(len(d.lags)-1))
	return float64(d.lags[at]) / float64(time.Millisecond)
}

// verdict is an error if bide broke a promise.
func (r *demoReport) verdict() error {
	if r.Lost+r.Early+r.AckedTwice > 0 {
		return fmt.Errorf("%d orders lost, %d handled early, %d acknowledged twice", r.Lost, r.Early, r.AckedTwice)
	}
	return nil
}

func (a *app) printReport(r demoReport) error {
	if a.json {
		return a.printJSON(r)
	}
	t := a.table("", "ORDERS")
	for _, row := range []struct {
		name  string
		count any
		note  string
	}{
		{"enqueued", r.Enqueued, ""},
		{"paid in time", r.Paid, "canceled by order number"},
		{"timed out", r.TimedOut, "handled and acknowledged"},
		{"dead", r.Dead, fmt.Sprintf("failed %d times, kept for a person to look at", demoAttempts)},
		{"retried", r.Retried, "attempts that failed"},
		{"vanished", r.Recovered, r.Vanished + "; they came back"},
		{"lost", r.Lost, ""},
		{"early", r.Early, ""},
		{"handled twice", r.HandledTwice, ""},
		{"acknowledged twice", r.AckedTwice, ""},
	} {
		t.row(row.name, fmt.Sprint(row.count), row.note)
	}
	t.row("lag p50/p99/max", fmt.Sprintf("%.0f/%.0f/%.0f ms", r.LagP50, r.LagP99, r.LagMax), "from due to claimed, by the engine's clock")
	return t.end()
}
