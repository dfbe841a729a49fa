// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bidemq/bide/bench/server"
)

// node is a process that is given orders. Its methods may be called from many goroutines.
type node struct {
	talk *server.Talk
	come atomic.Pointer[func(index int, lag int64)] // enters deliveries, nil drops them
	gone chan struct{}                              // closed when it has ended

	mu      sync.Mutex // guards what follows and the writing of orders
	number  int
	waiting map[int]chan nodeAnswer
}

// nodeOrder is what bench.js reads.
type nodeOrder struct {
	Number    int      `json:"number"`
	Do        string   `json:"do"`
	Queue     string   `json:"queue"`
	Queues    []string `json:"queues"`
	Handlers  int      `json:"handlers"`
	Producers int      `json:"producers"`
	Batch     int      `json:"batch"`
	Size      int      `json:"size"`
	First     int      `json:"first"`
	Most      int      `json:"most"`
	Millis    int64    `json:"millis"`
	Due       int64    `json:"due"`   // of index 0, microseconds, 0 is now
	Apart     float64  `json:"apart"` // microseconds
}

// nodeAnswer is what bench.js writes: an answer to an order, or deliveries.
type nodeAnswer struct {
	Number int     `json:"number"`
	Sent   int     `json:"sent"`
	Error  string  `json:"error"`
	Came   []int64 `json:"came"` // pairs of index and lag in microseconds
}

func newNode(talk *server.Talk) *node {
	n := &node{talk: talk, gone: make(chan struct{}), waiting: map[int]chan nodeAnswer{}}
	go n.read()
	return n
}

// read hands on what the process says, until it ends.
func (n *node) read() {
	defer close(n.gone)
	lines := bufio.NewScanner(n.talk)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var a nodeAnswer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			continue // something that a library prints
		}
		if enter := n.come.Load(); enter != nil {
			for i := 0; i+1 < len(a.Came); i += 2 {
				(*enter)(int(a.Came[i]), a.Came[i+1]*int64(time.Microsecond))
			}
		}
		n.mu.Lock()
		answer := n.waiting[a.Number]
		delete(n.waiting, a.Number)
		n.mu.Unlock()
		if answer != nil {
			answer <- a
		}
	}
}

// listen says who gets deliveries.
func (n *node) listen(enter func(index int, lag int64)) { n.come.Store(&enter) }

// ask gives an order and waits for its answer.
func (n *node) ask(ctx context.Context, o nodeOrder) (nodeAnswer, error) {
	answer := make(chan nodeAnswer, 1)
	if err := n.order(o, answer); err != nil {
		return nodeAnswer{}, fmt.Errorf("tell node to %s: %w", o.Do, err)
	}
	select {
	case a := <-answer:
		if a.Error != "" {
			return a, fmt.Errorf("node, told to %s: %s", o.Do, a.Error)
		}
		return a, nil
	case <-n.gone:
		return nodeAnswer{}, errors.New("node has ended")
	case <-ctx.Done():
		return nodeAnswer{}, ctx.Err()
	}
}

func (n *node) order(o nodeOrder, answer chan nodeAnswer) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.number++
	o.Number = n.number
	n.waiting[o.Number] = answer
	return json.NewEncoder(n.talk).Encode(o)
}

// end waits until ctx has ended and then lets the handlers finish.
func (n *node) end(ctx context.Context) error {
	select {
	case <-n.gone:
		return errors.New("node has ended")
	case <-ctx.Done():
	}
	_, err := n.ask(context.WithoutCancel(ctx), nodeOrder{Do: "stop"})
	return err
}
