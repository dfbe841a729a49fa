// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
)

//go:embed demo/orders.jsonl
var coffeeShop []byte

// order is an order of a shop, and the body of its timeout.
type order struct {
	Number   string      `json:"number"`
	Customer string      `json:"customer"`
	City     string      `json:"city"`
	Placed   string      `json:"placed"`
	Lines    []orderLine `json:"lines"`
	Total    int         `json:"total"` // in cents
	Currency string      `json:"currency"`
	Card     string      `json:"card"`
}

type orderLine struct {
	Item     string `json:"item"`
	Quantity int    `json:"quantity"`
	Cents    int    `json:"cents"`
}

// loadOrders reads a file of orders, "" for the one that the program carries, and repeats them
// under numbers of their own up to count, 0 for as many as the file has.
func loadOrders(file string, count int) ([]order, error) {
	data := coffeeShop
	if file != "" {
		var err error
		if data, err = os.ReadFile(file); err != nil {
			return nil, invalid("%v", err)
		}
	}
	var orders []order
	seen := map[string]bool{}
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		var o order
		if err := json.Unmarshal(line, &o); err != nil {
			return nil, invalid("line %d: %v", i+1, err)
		}
		if o.Number == "" || seen[o.Number] {
			return nil, invalid("line %d: the order has no number, or one that another has", i+1)
		}
		seen[o.Number] = true
		orders = append(orders, o)
	}
	if count == 0 {
		return orders, nil
	}
	once := orders
	orders = make([]order, count)
	for i := range orders {
		orders[i] = once[i%len(once)]
		if round := i / len(once); round > 0 {
			orders[i].Number += fmt.Sprintf("/%d", round)
		}
	}
	return orders, nil
}
