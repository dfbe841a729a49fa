// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
)

// A URL that can never work is told at once, without a connection.
func ExampleOpen() {
	_, err := redisstore.Open(context.Background(), "rediss+sentinel://localhost")
	fmt.Println(errors.Is(err, storage.ErrInvalid))
	// Output: true
}

// Several programs share a server by namespaces of their own.
func ExampleOpenWith() {
	engine, err := redisstore.OpenWith(context.Background(), "redis://localhost:6379", redisstore.Options{Namespace: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = engine.Close() }()
}
