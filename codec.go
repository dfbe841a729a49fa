// SPDX-License-Identifier: Apache-2.0

package bide

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// Codec turns the payload of a queue into bytes and back. Its methods are called from many
// goroutines. Decode may keep the slice; its panic is a failure like its error.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	Decode([]byte) (T, error)
}

// defaultCodec passes []byte through and turns everything else into JSON.
func defaultCodec[T any]() Codec[T] {
	if raw, ok := any(rawCodec{}).(Codec[T]); ok {
		return raw
	}
	return jsonCodec[T]{}
}

type rawCodec struct{}

func (rawCodec) Encode(b []byte) ([]byte, error) { return b, nil }
func (rawCodec) Decode(b []byte) ([]byte, error) { return b, nil }

type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

func encode[T any](c Codec[T], v T) ([]byte, error) {
	b, err := c.Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%w: body does not encode: %w", ErrInvalid, err)
	}
	return b, nil
}

// decode takes a codec that panics for one that fails: in a batch it must not cost the others an
// attempt.
func decode[T any](c Codec[T], b []byte) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w", ErrDecode, &PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	v, err = c.Decode(b)
	if err != nil {
		return v, fmt.Errorf("%w: %w", ErrDecode, err)
	}
	return v, nil
}
