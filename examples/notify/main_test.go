// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/examples/internal/stagetest"
	"github.com/bidemq/bide/internal/assert"
)

func TestNotify(t *testing.T) {
	e := example{producers: 4, each: 25, consumers: 3, idle: 300 * time.Millisecond}
	stagetest.OnEveryEngine(t, e.run, func(t *testing.T, client *bide.Client, printed string) {
		said := regexp.MustCompile(`100 notifications sent\nidle for 300ms: the store was asked (\d+) times\none more: taken after `).FindStringSubmatch(printed)
		assert.Equal(t, len(said), 2, printed)
		asked, err := strconv.Atoi(said[1])
		assert.NoError(t, err)
		assert.True(t, asked < 10, printed) // the last claims, and no polling
		s, err := client.Stats(t.Context(), notifications.Name())
		assert.NoError(t, err)
		assert.Equal(t, []int64{s.Ready, s.Leased, s.Dead, s.Total.Acked, s.Total.Retried}, []int64{0, 0, 0, 101, 1})
	})
}
