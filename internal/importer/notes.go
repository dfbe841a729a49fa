// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/storage"
)

const (
	noteFor  = 30 * 24 * time.Hour // after the last run; with them goes the memory of what was imported
	lockFor  = 3 * time.Second     // after the death of its holder
	lockTick = 500 * time.Millisecond
)

// phase of an entry.
type phase byte

const (
	unsent   phase = 0
	intended phase = 'i' // sent or not, and nothing was before
	updating phase = 'u' // sent or not, and another content was before
	done     phase = 'd'
)

// notes are what is known about the entries of a source that go to one queue. They are a hash of
// ids, and of digests of equal elements; the package comment says how they are used.
type notes struct {
	client rueidis.Client
	hash   string
	lock   string
	token  string
}

type note struct {
	phase phase
	print string
}

// newNotes names the notes. They lie in the slot of the source, so that a script may change both.
func newNotes(client rueidis.Client, key, target string) *notes {
	hash := "bide:import:{" + tag(key) + "}:" + strings.TrimPrefix(idOf("", key+"\x00"+target), "-")
	return &notes{client: client, hash: hash, lock: hash + ":lock", token: rand.Text()}
}

// tag is the part of a key that decides its slot.
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if inner, _, ok := strings.Cut(rest, "}"); ok && inner != "" {
			return inner
		}
	}
	return key
}

// acquire waits until no other import holds the notes. The context that it returns ends when they
// are lost.
func (n *notes) acquire(ctx context.Context, waits func()) (context.Context, func(), error) {
	for first := true; ; first = false {
		err := n.client.Do(ctx, n.client.B().Set().Key(n.lock).Value(n.token).Nx().Px(lockFor).Build()).Error()
		if err == nil {
			break
		}
		if !rueidis.IsRedisNil(err) {
			return nil, nil, unavailable("lock the notes of the import", err)
		}
		if first {
			waits()
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-time.After(lockTick / 2):
		}
	}
	held, lose := context.WithCancelCause(ctx)
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // what is under way when ctx ends is still under the lock
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.hold(life, lose)
	}()
	return held, func() {
		end()
		<-ended
		lose(nil)
		// A lock that cannot be removed ends by itself.
		_ = unlock.Exec(context.WithoutCancel(ctx), n.client, []string{n.lock}, []string{n.token}).Error()
	}, nil
}

// hold keeps the lock until ctx ends, or calls lose when somebody else may have it.
func (n *notes) hold(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	for held := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		call, stop := context.WithTimeout(ctx, lockFor-lockTick)
		kept, err := relock.Exec(call, n.client, []string{n.lock}, []string{n.token, fmt.Sprint(lockFor.Milliseconds())}).AsInt64()
		stop()
		switch {
		case err == nil && kept == 1:
			held = began
		case err == nil || time.Since(held) > lockFor-lockTick:
			lose(fmt.Errorf("%w: the notes of this import were not held any more, another one may run; run it again", storage.ErrUnavailable))
			return
		}
	}
}

var (
	relock = rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end return 0`)
	unlock = rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)
)

// read returns the notes of ids.
func (n *notes) read(ctx context.Context, ids []string) ([]note, error) {
	values, err := n.fields(ctx, ids)
	if err != nil {
		return nil, err
	}
	found := make([]note, len(ids))
	for i, v := range values {
		if len(v) > 1 {
			found[i] = note{phase(v[0]), v[1:]}
		}
	}
	return found, nil
}

// fields returns values of the hash, "" for those that are not there.
func (n *notes) fields(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	messages, err := n.client.Do(ctx, n.client.B().Hmget().Key(n.hash).Field(names...).Build()).ToArray()
	if err != nil {
		return nil, unavailable("read the notes of the import", err)
	}
	values := make([]string, len(names))
	for i, m := range messages {
		if values[i], err = m.ToString(); err != nil && !rueidis.IsRedisNil(err) {
			return nil, unavailable("read the notes of the import", err)
		}
	}
	return values, nil
}

// write notes a phase of entries, and none for those that are to be forgotten.
func (n *notes) write(ctx context.Context, write map[string]note, forget []string) error {
	var commands rueidis.Commands
	if len(write) > 0 {
		c := n.client.B().Hset().Key(n.hash).FieldValue()
		for id, note := range write {
			c = c.FieldValue(id, string(note.phase)+note.print)
		}
		commands = append(commands, c.Build(), n.client.B().Pexpire().Key(n.hash).Milliseconds(noteFor.Milliseconds()).Build())
	}
	if len(forget) > 0 {
		commands = append(commands, n.client.B().Hdel().Key(n.hash).Field(forget...).Build())
	}
	for _, r := range n.client.DoMulti(ctx, commands...) {
		if err := r.Error(); err != nil {
			return unavailable("write the notes of the import", err)
		}
	}
	return nil
}

// forget removes all notes.
func (n *notes) forget(ctx context.Context) error {
	if err := n.client.Do(ctx, n.client.B().Unlink().Key(n.hash).Build()).Error(); err != nil {
		return unavailable("forget the notes of the import", err)
	}
	return nil
}

// unavailable says what could not be done with the source, whose errors are of no other category.
func unavailable(what string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if answer, ok := rueidis.IsRedisErr(err); ok && (strings.HasPrefix(answer.Error(), "WRONGTYPE") || strings.HasPrefix(answer.Error(), "CROSSSLOT")) {
		return fmt.Errorf("%s: %w: %w", what, storage.ErrInvalid, err)
	}
	return fmt.Errorf("%s: %w: %w", what, storage.ErrUnavailable, err)
}
