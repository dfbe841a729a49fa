// SPDX-License-Identifier: Apache-2.0

package pebblestore_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bidemq/bide/pebblestore"
	"github.com/bidemq/bide/storage"
)

// What was answered is there when the directory is opened again, whoever closed it.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "bide-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()

	engine, err := pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = engine.Enqueue(ctx, time.Time{}, "mail", []storage.Record{{ID: "a", Body: []byte("hello"), Delay: time.Hour}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := engine.Close(); err != nil {
		fmt.Println(err)
		return
	}

	engine, err = pebblestore.Open(dir, pebblestore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := engine.Get(ctx, time.Time{}, "mail", "a")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s is %s: %s\n", r.ID, r.State, r.Body)
	if err := engine.Close(); err != nil {
		fmt.Println(err)
		return
	}
	// Output: a is delayed: hello
}
