// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// table stands for one of a database: each row knows the token of whoever wrote it last.
type table struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	cents int
	token int64
}

// update is UPDATE accounts SET cents = $1, token = $2 WHERE name = $3 AND token <= $2. It says
// whether a row was updated.
func (t *table) update(name string, cents int, token int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[name].token > token {
		return false
	}
	if t.rows == nil {
		t.rows = map[string]row{}
	}
	t.rows[name] = row{cents, token}
	return true
}

func (t *table) balance(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[name].cents
}
