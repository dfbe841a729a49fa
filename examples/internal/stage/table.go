// SPDX-License-Identifier: Apache-2.0

package stage

import "sync"

// Table stands for one of a database: each row knows the token of whoever wrote it last. Its zero
// value is empty, and it may be used from many goroutines.
type Table struct {
	mu   sync.Mutex
	rows map[string]row
}

type row struct {
	cents int
	token int64
}

// Update is UPDATE accounts SET cents = $1, token = $2 WHERE name = $3 AND token <= $2. It says
// whether a row was updated.
func (t *Table) Update(name string, cents int, token int64) bool {
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

// Balance returns the cents of a row, 0 if there is none.
func (t *Table) Balance(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows[name].cents
}
