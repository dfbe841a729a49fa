// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bidemq/bide/storage"
)

// task is what is used of asynq's message TaskMessage.
type task struct {
	kind     string            // 1
	payload  []byte            // 2
	retry    int64             // 5: retries allowed
	retried  int64             // 6
	deadline int64             // 9: Unix seconds, 0 is none
	unique   string            // 10: key of its uniqueness lock
	group    string            // 14
	headers  map[string]string // 15
}

// decodeTask reads a TaskMessage, passing over the fields that are not used.
func decodeTask(data []byte) (task, error) {
	var t task
	err := eachField(data, func(number int, text []byte, value uint64) error {
		switch number {
		case 1:
			t.kind = string(text)
		case 2:
			t.payload = text
		case 5:
			t.retry = int64(value)
		case 6:
			t.retried = int64(value)
		case 9:
			t.deadline = int64(value)
		case 10:
			t.unique = string(text)
		case 14:
			t.group = string(text)
		case 15:
			return t.header(text)
		}
		return nil
	})
	return t, err
}

// header reads an entry of the map of headers.
func (t *task) header(data []byte) error {
	var name, value string
	err := eachField(data, func(number int, text []byte, _ uint64) error {
		switch number {
		case 1:
			name = string(text)
		case 2:
			value = string(text)
		}
		return nil
	})
	if t.headers == nil {
		t.headers = map[string]string{}
	}
	t.headers[name] = value
	return err
}

// eachField calls do with the text or the value of each field of a protobuf message.
func eachField(data []byte, do func(number int, text []byte, value uint64) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return damaged(n)
		}
		data = data[n:]
		var text []byte
		var value uint64
		switch kind {
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(data)
		default:
			n = protowire.ConsumeFieldValue(number, kind, data)
		}
		if n < 0 {
			return damaged(n)
		}
		data = data[n:]
		if err := do(int(number), text, value); err != nil {
			return err
		}
	}
	return nil
}

func damaged(code int) error {
	return fmt.Errorf("%w: asynq's task is damaged: %w", storage.ErrFormat, protowire.ParseError(code))
}
