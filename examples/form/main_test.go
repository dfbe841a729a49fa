// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

func TestForm(t *testing.T) {
	e := example{forms: 10, changes: 3, processes: 3, timeout: 300 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		assert.Equal(t, printed, `form-0 version 1: stored
form-0 version 2: replaced
form-0 version 3: replaced
form-0 waits with version 3
10 forms submitted once, in their last version; 1 of them refused
`)
		dead, err := forms.Get(t.Context(), client, "form-1")
		assert.NoError(t, err)
		assert.Equal(t, dead.Reason, "an answer is missing")
	})
}
