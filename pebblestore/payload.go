// SPDX-License-Identifier: Apache-2.0

package pebblestore

import (
	"maps"
	"slices"
)

// payload is the part of a record that the engine only carries.
type payload struct {
	body    []byte
	headers map[string]string
}

// appendPayload encodes a payload, the same for the same content.
func appendPayload(dst []byte, p payload) []byte {
	dst = appendInt(dst, int64(len(p.headers)))
	if len(p.headers) > 0 {
		for _, name := range slices.Sorted(maps.Keys(p.headers)) {
			dst = appendString(dst, name)
			dst = appendString(dst, p.headers[name])
		}
	}
	return appendString(dst, p.body)
}

// decodePayload returns a payload, whose body is part of the bytes, and its size as claims count it.
func decodePayload(encoded []byte) (p payload, size int, err error) {
	d := &reader{rest: encoded}
	n := d.int()
	if n > int64(len(d.rest)) {
		d.fail("damaged length")
	}
	for i := int64(0); i < n && d.err == nil; i++ {
		name, value := d.string(), d.string()
		if p.headers == nil {
			p.headers = map[string]string{}
		}
		p.headers[name] = value
		size += len(name) + len(value)
	}
	p.body = d.bytes()
	if err := d.end(); err != nil {
		return payload{}, 0, err
	}
	return p, size + len(p.body), nil
}

// payloadSize is the size of a payload as claims and retention count it.
func payloadSize(encoded []byte) (int64, error) {
	d := &reader{rest: encoded}
	size := 0
	for n := d.int(); n > 0 && d.err == nil; n-- {
		size += len(d.bytes()) + len(d.bytes())
	}
	size += len(d.bytes())
	return int64(size), d.end()
}
