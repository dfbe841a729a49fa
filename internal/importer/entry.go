// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/storage"
)

// Entry is one message of a source.
type Entry struct {
	Name    string       // what the source calls it
	Message bide.Message // its ID is the same whenever the entry is read
	Err     error        // why it cannot be imported, nil otherwise

	print  string  // of the content
	value  string  // member of a sorted set, or element of a list
	score  float64 // of a member
	body   string  // SHA-1 of what lies in the hash of bodies, "" if nothing does
	number string  // field of the notes that counts equal elements of a list, "" if none does
	origin string  // key that an asynq task is listed under
	unique string  // key of its uniqueness lock
}

// Source is a queue that messages come from.
type Source interface {
	// key is the one that the notes of an import lie beside.
	key() string
	// total counts the entries.
	total(ctx context.Context) (int64, error)
	// batches reads the entries. An entry that is there all the time is read at least once.
	batches(ctx context.Context, n *notes, size int) iter.Seq2[[]Entry, error]
	// remove removes entries that are as they were read, with their notes.
	remove(ctx context.Context, n *notes, entries []Entry) ([]removal, error)
	// aside says what is not imported, in whole sentences.
	aside(ctx context.Context) ([]string, error)
}

// removal is what became of an entry that was to be removed.
type removal int

const (
	missing removal = iota // somebody else took it
	removed
	changed // it is not what was read, and stays
)

// printOf is a digest of the content of an entry.
func printOf(due int64, body []byte, headers map[string]string, more ...string) string {
	h := sha256.New()
	var size [8]byte
	part := func(p []byte) {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write(p)
	}
	part(strconv.AppendInt(nil, due, 10))
	part(body)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		part([]byte(name))
		part([]byte(headers[name]))
	}
	for _, m := range more {
		part([]byte(m))
	}
	return string(h.Sum(nil)[:15])
}

// idOf names an entry that has no id of its own.
func idOf(kind, content string) string {
	sum := sha256.Sum256([]byte(content))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

// sha is what redis.sha1hex makes of a text.
func sha(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// check is what any engine would refuse.
func (e *Entry) check() error {
	if e.Err != nil {
		return e.Err
	}
	m := e.Message
	r := storage.Record{ID: m.ID, Key: m.Key, Body: m.Body, Headers: m.Headers, Due: m.Due, ExpireIn: m.ExpireIn, DedupFor: m.DedupFor}
	return r.Check(storage.DefaultBody)
}
