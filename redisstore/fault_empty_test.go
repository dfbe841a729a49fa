// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"
	"time"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// A claim of a full server that finds nothing due yet answers when that will be.
func TestFullServerSaysWhatIsDueLater(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	e, queue := open(t, server.URL()), storagetest.NewQueueName()
	enqueue(t, e, queue, storage.Record{ID: "later", Delay: time.Hour})
	claim(t, e, queue, 1, time.Minute) // the first finds out what ends when
	server.Do(t, "CONFIG", "SET", "maxmemory", "1")
	for range 20 { // those who wait are looked through by some calls only
		c := claim(t, e, queue, 1, time.Minute)
		assert.True(t, c.Next > 59*time.Minute, c.Next)
	}
}
