// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/memstore"
)

// protoCodec stores the protobuf messages of type M.
type protoCodec[M any, P interface {
	*M
	proto.Message
}] struct{}

func (protoCodec[M, P]) Encode(m P) ([]byte, error) { return proto.Marshal(m) }

func (protoCodec[M, P]) Decode(b []byte) (P, error) {
	m := P(new(M))
	return m, proto.Unmarshal(b, m)
}

// A queue stores its payload by the codec that it is given, protobuf here.
func ExampleCodec() {
	greetings := bide.NewQueueWith("greeting", bide.QueueOptions[*wrapperspb.StringValue]{
		Codec: protoCodec[wrapperspb.StringValue, *wrapperspb.StringValue]{},
	})

	ctx := context.Background()
	client := bide.NewClient(memstore.New(memstore.Options{}), bide.ClientConfig{})
	_, err := greetings.Enqueue(ctx, client, wrapperspb.String("hello"), bide.ID("a"))
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := greetings.Get(ctx, client, "a")
	fmt.Printf("%s, %d bytes, %v\n", m.Body.GetValue(), len(m.Record.Body), err)
	// Output: hello, 7 bytes, <nil>
}
