// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

func TestLockConflict(t *testing.T) {
	e := example{accounts: 3, each: 4, takes: 30 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		assert.Equal(t, printed, `fail at once: locked is true
wait: locked is false
stale holder: row updated is false
put off: 12 withdrawals from 3 accounts, 96 left in account-0
`)
		s, err := client.Stats(t.Context(), withdrawals.Name())
		assert.NoError(t, err)
		assert.Equal(t, []int64{s.Total.Acked, s.Total.Retried, s.Total.Died}, []int64{12, 0, 0})
		assert.True(t, s.Total.Released > 0, "nothing was put off")
	})
}
