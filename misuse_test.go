// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"testing"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/memstore"
)

func TestMisusePanicsAtStartUp(t *testing.T) {
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	handler := func(context.Context, *bide.Delivery[[]byte]) error { return nil }
	for name, misuse := range map[string]func(){
		"client without an engine":     func() { bide.NewClient(nil, bide.ClientConfig{}) },
		"client out of bounds":         func() { bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{Flights: -1}) },
		"consumer without a client":    func() { bide.NewConsumer(nil, bide.ConsumerConfig{}) },
		"consumer out of bounds":       func() { bide.NewConsumer(client, bide.ConsumerConfig{Lease: 1}) },
		"weight of nothing":            func() { bide.NewConsumer(client, bide.ConsumerConfig{Queues: map[string]int{"a": 0}}) },
		"nil middleware of a consumer": func() { bide.NewConsumer(client, bide.ConsumerConfig{Middleware: []bide.Middleware{nil}}) },
		"nil option of a queue":        func() { bide.NewQueueWith("a", bide.QueueOptions[order]{Defaults: []bide.Option{nil}}) },
		"nil handler":                  func() { bide.NewConsumer(client, bide.ConsumerConfig{}).Handle("a", nil) },
		"nil typed handler":            func() { orders.Handle(bide.NewConsumer(client, bide.ConsumerConfig{}), nil) },
		"nil middleware of a queue":    func() { bide.NewConsumer(client, bide.ConsumerConfig{}).Handle("a", handler, nil) },
		"middleware without a handler": func() {
			none := func(bide.Handler) bide.Handler { return nil }
			bide.NewConsumer(client, bide.ConsumerConfig{}).Handle("a", handler, none)
		},
		"two handlers": func() {
			consumer := bide.NewConsumer(client, bide.ConsumerConfig{})
			consumer.Handle("a", handler)
			consumer.Handle("a", handler)
		},
		"illegal name": func() { bide.NewConsumer(client, bide.ConsumerConfig{}).Handle("a b", handler) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() { assert.True(t, recover() != nil) }()
			misuse()
		})
	}
}
