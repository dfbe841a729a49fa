// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/internal/redistest"
	"github.com/bidemq/bide/redisstore"
	"github.com/bidemq/bide/storage"
	"github.com/bidemq/bide/storage/storagetest"
)

// opener opens an engine on a server, and closes it with the test.
func opener(url string) storagetest.Open {
	return func(t *testing.T) storage.Engine { return open(t, url) }
}

func open(t testing.TB, url string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(t.Context(), url)
	assert.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestEngine(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, opener(redistest.Shared(t).URL()))
}
