// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/bidemq/bide"
)

// line is a message as a line of JSON.
type line struct {
	payload
	ID          *string           `json:"id"`
	In          string            `json:"in"`
	Due         *time.Time        `json:"due"`
	Key         string            `json:"key"`
	Priority    int               `json:"priority"`
	Headers     map[string]string `json:"headers"`
	ExpireIn    string            `json:"expire_in"`
	MaxAttempts int               `json:"max_attempts"`
	DedupFor    string            `json:"dedup_for"`
	OnLive      string            `json:"on_live"`
}

// parseLine reads one line. A field that it does not know is an error, since a message that comes
// at once because "in" was misspelled cannot be called back.
func parseLine(data []byte) (bide.Message, error) {
	l, err := decodeLine(data)
	if err != nil {
		return bide.Message{}, err
	}
	m := bide.Message{Key: l.Key, Priority: l.Priority, Headers: l.Headers, MaxAttempts: l.MaxAttempts}
	if l.ID != nil {
		if m.ID = *l.ID; m.ID == "" {
			return m, invalid("id is empty")
		}
	}
	if l.Due != nil {
		m.Due = *l.Due
	}
	if m.Body, err = l.bytes(); err != nil {
		return m, err
	}
	for _, span := range []struct {
		name, value string
		to          *time.Duration
	}{{"in", l.In, &m.Delay}, {"expire_in", l.ExpireIn, &m.ExpireIn}, {"dedup_for", l.DedupFor, &m.DedupFor}} {
		if span.value == "" {
			continue
		}
		if *span.to, err = time.ParseDuration(span.value); err != nil {
			return m, invalid("%s: %q is not a duration like 90s or 1h30m", span.name, span.value)
		}
	}
	if l.OnLive != "" {
		m.OnLive, err = parseOnLive(l.OnLive)
	}
	return m, err
}

func decodeLine(data []byte) (line, error) {
	var l line
	if !bytes.HasPrefix(data, []byte("{")) {
		return l, invalid("it is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(&l)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return l, invalid("%s cannot be a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return l, invalid("%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return l, invalid("more than one JSON value")
	}
	return l, nil
}
