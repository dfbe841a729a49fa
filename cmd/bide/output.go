// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// payload is a body as JSON shows it: as JSON if it is, else as text if it is, else in base64.
type payload struct {
	Body   json.RawMessage `json:"body,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Base64 *string         `json:"base64,omitempty"`
}

func showPayload(body []byte) payload {
	switch {
	case len(body) == 0:
		return payload{}
	case json.Valid(body) && utf8.Valid(body):
		return payload{Body: body}
	case utf8.Valid(body):
		text := string(body)
		return payload{Text: &text}
	default:
		text := base64.StdEncoding.EncodeToString(body)
		return payload{Base64: &text}
	}
}

// bytes is the body that a payload shows.
func (p *payload) bytes() (body []byte, err error) {
	given := 0
	if p.Body != nil {
		given++
		body = p.Body
	}
	if p.Text != nil {
		given++
		body = []byte(*p.Text)
	}
	if p.Base64 != nil {
		given++
		if body, err = base64.StdEncoding.DecodeString(*p.Base64); err != nil {
			return nil, invalid("base64: %v", err)
		}
	}
	if given > 1 {
		return nil, invalid("only one of body, text and base64 may be given")
	}
	return body, nil
}

// shown is a record as JSON shows it. What the producer said has the names that enqueue --lines has
// for it, and the same meaning.
type shown struct {
	ID string `json:"id"`
	payload
	State       string            `json:"state"`
	Due         time.Time         `json:"due"`
	Key         string            `json:"key,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Attempts    int               `json:"attempts"`
	Deliveries  int               `json:"deliveries"`
	MaxAttempts int               `json:"max_attempts"` // -1 is no limit
	ExpireIn    string            `json:"expire_in,omitempty"`
	DedupFor    string            `json:"dedup_for,omitempty"`
	Seq         int64             `json:"seq"`
	Enqueued    time.Time         `json:"enqueued"`
	LeaseUntil  *time.Time        `json:"lease_until,omitempty"`
	LeasedBy    string            `json:"leased_by,omitempty"`
	Token       int64             `json:"token,omitempty"`
	Finished    *time.Time        `json:"finished,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	History     []attempt         `json:"history,omitempty"` // attempts that failed
	Successor   bool              `json:"successor,omitempty"`
	Untold      bool              `json:"untold,omitempty"` // its death, where deaths are told
}

// attempt is one that failed, as JSON shows it.
type attempt struct {
	Delivery int       `json:"delivery"`
	Ended    time.Time `json:"ended"`
	By       string    `json:"by,omitempty"`
	Reason   string    `json:"reason,omitempty"`
}

func show(r storage.Record) shown {
	s := shown{
		ID: r.ID, payload: showPayload(r.Body), State: r.State.String(), Due: r.Due, Key: r.Key, Priority: r.Priority,
		Headers: r.Headers, Attempts: r.Attempts, Deliveries: r.Deliveries, MaxAttempts: r.MaxAttempts,
		ExpireIn: span(r.ExpireIn), DedupFor: span(r.DedupFor), Seq: r.Seq, Enqueued: r.Enqueued,
		LeasedBy: r.Lease.By, Token: r.Lease.Token, Reason: r.Reason, Successor: r.Successor, Untold: r.Untold,
	}
	for _, h := range r.History {
		s.History = append(s.History, attempt(h))
	}
	if r.MaxAttempts == 0 {
		s.MaxAttempts = bide.Unlimited
	}
	if !r.Lease.Until.IsZero() {
		s.LeaseUntil = &r.Lease.Until
	}
	if !r.Finished.IsZero() {
		s.Finished = &r.Finished
	}
	return s
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows of cells under a heading.
type table struct {
	w *tabwriter.Writer
}

func (a *app) table(heading ...string) *table {
	t := &table{tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)}
	t.row(heading...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t *table) end() error { return t.w.Flush() }

// relative tells an instant by its distance from now.
func relative(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return "-"
	case d >= 0:
		return "in " + rounded(d)
	default:
		return rounded(-d) + " ago"
	}
}

func rounded(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Minute:
		s := d.Round(time.Second).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		return s
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	default:
		return d.Round(time.Millisecond).String()
	}
}

// preview is the beginning of a body in one line.
func preview(body []byte, most int) string {
	if !utf8.Valid(body) {
		return fmt.Sprintf("%d bytes", len(body))
	}
	s := plain(string(body))
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// plain is text without what could steer a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)
}

// printf writes a line for people; with --json there are none.
func (a *app) printf(format string, args ...any) {
	if !a.json {
		fmt.Fprintf(a.out, format, args...)
	}
}

// progress is where bars go: nowhere unless somebody watches.
func (a *app) progress() io.Writer {
	if a.json || !isTerminal(a.err) {
		return io.Discard
	}
	return a.err
}
