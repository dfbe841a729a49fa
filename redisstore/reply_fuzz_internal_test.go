// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

// parrot is a server that answers every script with the same reply.
type parrot struct{ reply atomic.Pointer[string] }

func (p *parrot) dial(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	client, server := net.Pipe()
	go p.serve(server)
	return client, nil
}

// serve reads commands, which are arrays of texts, until the connection is closed.
func (p *parrot) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		n, err := length32(in, '*')
		if err != nil {
			return
		}
		var name string
		for i := range n {
			size, err := length32(in, '$')
			if err != nil {
				return
			}
			text := make([]byte, size+2)
			if _, err := io.ReadFull(in, text); err != nil {
				return
			}
			if i == 0 {
				name = strings.ToUpper(string(text[:size]))
			}
		}
		answer := "+OK\r\n"
		switch name {
		case "HELLO":
			answer = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n"
		case "EVALSHA", "EVAL":
			answer = *p.reply.Load()
		case "ZADD":
			answer = ":1\r\n"
		case "PING":
			answer = "+PONG\r\n"
		}
		if _, err := c.Write([]byte(answer)); err != nil {
			return
		}
	}
}

func length32(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil || line[0] != kind {
		return 0, errors.New("no command")
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// encodeReply makes a reply of lines: "i" is a number, "t" a text, "n" nothing, "e" an error, "(" and
// ")" enclose an array. One value is a reply; several are an array.
func encodeReply(data []byte) string {
	type level struct {
		n int
		b strings.Builder
	}
	open := []*level{{}}
	add := func(text string) {
		top := open[len(open)-1]
		top.n++
		top.b.WriteString(text)
	}
	closeArray := func() {
		top := open[len(open)-1]
		open = open[:len(open)-1]
		add("*" + strconv.Itoa(top.n) + "\r\n" + top.b.String())
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if line == "" {
			continue
		}
		kind, rest := line[0], line[1:]
		switch kind {
		case 'i':
			n, _ := strconv.ParseInt(rest, 10, 64)
			add(":" + strconv.FormatInt(n, 10) + "\r\n")
		case 'n':
			add("_\r\n")
		case 'e':
			add("-" + strings.Map(func(r rune) rune { return max(r, ' ') }, rest) + "\r\n")
		case '(':
			if len(open) < 5 {
				open = append(open, &level{})
			}
		case ')':
			if len(open) > 1 {
				closeArray()
			}
		default:
			if text, err := strconv.Unquote(`"` + rest + `"`); err == nil {
				rest = text
			}
			add("$" + strconv.Itoa(len(rest)) + "\r\n" + rest + "\r\n")
		}
	}
	for len(open) > 1 {
		closeArray()
	}
	if open[0].n == 1 {
		return open[0].b.String()
	}
	return "*" + strconv.Itoa(open[0].n) + "\r\n" + open[0].b.String()
}

// Whatever the scripts answer, of this version or another, every call returns an answer that fits what
// was asked, or an error that says so.
func FuzzReply(f *testing.F) {
	blob := strconv.Quote("\x00\x00\x00\x00\x00\x00\x01" + strings.Repeat("\x00", 12) + rest(&storage.Record{Body: []byte("body"), Key: "k"}))
	blob = blob[1 : len(blob)-1]
	for _, s := range []string{
		"", "i1", "t", "ia\nt", "n", "eERR wrong", "eBIDEFORMAT", "eOOM no", "tok", "tnone", "(\n)", "i1\ni2\ni3\ni4\ni5",
		"i1\nt\ni7", "i1\nt" + strings.Repeat("\\x01", 13), "i1\nt" + strings.Repeat("\\x00", 26) + "\ni1\nta\\x00b", "i1\nt\ni7\ni8", "i1\nt\nn",
		"i5\ni-1\ni0\ni0\nta\nt" + blob + "\nt", "i5\ni9\ni0\ni77\nta\nt" + blob, "i5\ni9\ni0\ni77\nta\ntshort", "i5\ni9\ni0",
		"i1\ni1\ni5\ni6\nta\nt" + blob + "\nt\ni-1", "i1\nta\nt" + blob + "\nt\ni-1", "tok\ni1\nta\nt" + blob + "\nt\ni-1", "tok",
		"t1\nt5\nt6\nt7", "t0\nt5\nt6\ntowner\nt3", "t1\nt5\nt6", "t1\nt5\nt6\ntx", "i1\n(\nta\ntb\n)", "i1\ni1001", "t\\x00", "t\\x01\\x01\\x01",
		"i0\ni0\ni0\ni0\nt" + strings.Repeat("\\x00", settingsSize), "i1\ni0\ni0\ni0\nt" + strings.Repeat("\\x00", settingsSize) + strings.Repeat("\ni1", 27),
	} {
		f.Add([]byte(s))
	}
	p := &parrot{}
	p.reply.Store(new(""))
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"parrot"}, DialCtxFn: p.dial, DisableCache: true, DisableRetry: true, ForceSingleClient: true, DisableAutoPipelining: true,
	})
	assert.NoError(f, err)
	f.Cleanup(client.Close)
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := encodeReply(data)
		for _, word := range refusals { // which are repeated for a while
			if strings.Contains(reply, word) {
				return
			}
		}
		p.reply.Store(&reply)
		life, end := context.WithCancelCause(t.Context())
		defer end(nil)
		s := &Store{
			client: client, options: Options{Namespace: "n", MaxBody: storage.DefaultBody, Logger: slog.New(slog.DiscardHandler)},
			keys:     func(queue string) []string { return queueKeys("n", queue) },
			lockKeys: lockKeys("n"), topicKeys: topicKeys("n"), lockWaits: lockWaits{calls: map[string]*lockWait{}},
			address: "parrot", life: life, end: end, watches: newWatches("bide:n:c"),
		}
		tryReplies(t, s)
	})
}

// said fails unless an error has a category, or is that of a script and has a text.
func said(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	for _, c := range []error{
		storage.ErrInvalid, storage.ErrExpired, storage.ErrNotFound, storage.ErrConflict, storage.ErrFull, storage.ErrFormat,
		storage.ErrLocked, storage.ErrLockLost,
	} {
		if errors.Is(err, c) {
			return false
		}
	}
	script, ok := errors.AsType[*ScriptError](err)
	if !ok {
		t.Fatalf("got %v, which no caller can tell from another", err)
	}
	assert.True(t, strings.HasPrefix(script.Error(), "script "), err)
	return false
}

func tryReplies(t *testing.T, s *Store) {
	ctx, now := t.Context(), time.UnixMilli(1_700_000_000_000)
	recs := []storage.Record{{ID: "a", Body: []byte("x")}, {ID: "b", Priority: 99}, {ID: "c"}}
	if results, err := s.Enqueue(ctx, now, "q", recs); said(t, err) {
		assert.Equal(t, len(results), 3)
		assert.ErrorIs(t, results[1].Err, storage.ErrInvalid)
	}
	if c, err := s.Claim(ctx, now, storage.Claim{Queue: "q", Limit: 2, Lease: time.Second}); said(t, err) {
		for _, r := range c.Records {
			assert.True(t, r.Seq >= 0 && (r.Lease.Token == 0) == (r.State != storage.Leased), r)
		}
	}
	rs := []storage.Receipt{{Queue: "q", ID: "a", Token: 1}, {Queue: "q", ID: "b", Token: 2}}
	lost, err := s.Settle(ctx, now, []storage.Settlement{{Receipt: rs[0], Verdict: storage.Ack}, {Receipt: rs[1], Verdict: storage.Ack}})
	said(t, err)
	assert.True(t, len(lost) <= 2, lost)
	lost, err = s.Extend(ctx, now, time.Second, rs)
	said(t, err)
	assert.True(t, len(lost) <= 2, lost)
	for _, call := range []func() error{
		func() error { _, err := s.Get(ctx, now, "q", "a"); return err },
		func() error { _, err := s.Edit(ctx, now, "q", "a", storage.Edit{Priority: new(1)}); return err },
		func() error { return s.Cancel(ctx, now, "q", "a", true) },
		func() error {
			_, err := s.List(ctx, now, "q", storage.Filter{State: storage.Ready, Limit: 5})
			return err
		},
		func() error {
			_, err := s.Purge(ctx, now, "q", storage.Filter{State: storage.Ready, Limit: 5})
			return err
		},
		func() error {
			_, err := s.Redrive(ctx, now, "q", storage.Filter{State: storage.Dead, Limit: 5})
			return err
		},
		func() error { _, err := s.Stats(ctx, now, "q"); return err },
		func() error { _, err := s.Keys(ctx, now, "q", storage.KeyFilter{Limit: 5}); return err },
		func() error { return s.Told(ctx, "q", []storage.DeadID{{ID: "a", Seq: 1}}) },
		func() error { _, err := s.Configure(ctx, "q", storage.ConfigEdit{}); return err },
		func() error { _, err := s.Repair(ctx, now, "q", storage.Repair{Limit: 5}); return err },
		func() error { _, err := s.Topic(ctx, "t", storage.TopicEdit{}); return err },
		func() error { _, err := s.Topics(ctx, "", 5); return err },
	} {
		said(t, call())
	}
	if l, err := s.Acquire(ctx, now, storage.LockRequest{Name: "l", Owner: "o", TTL: time.Second}); said(t, err) {
		assert.Equal(t, fmt.Sprint(l.Name, l.Owner), "lo")
	}
	receipt := storage.LockReceipt{Name: "l", Owner: "o", Token: 3}
	_, err = s.Renew(ctx, now, receipt, time.Second)
	said(t, err)
	said(t, s.Release(ctx, now, receipt))
}
