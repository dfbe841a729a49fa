// SPDX-License-Identifier: Apache-2.0

package bide_test

import (
	"math"
	"testing"
	"time"

	"github.com/bidemq/bide"
	"github.com/bidemq/bide/internal/assert"
	"github.com/bidemq/bide/storage"
)

func TestExponentialGrowsAndSpreads(t *testing.T) {
	backoff := bide.Exponential(5*time.Second, 6*time.Hour)
	for attempt, middle := range map[int]time.Duration{
		1:         5 * time.Second,
		2:         10 * time.Second,
		5:         80 * time.Second,
		13:        20480 * time.Second,
		14:        6 * time.Hour,
		25:        6 * time.Hour,
		1_000_000: 6 * time.Hour,
	} {
		least, most := middle, middle
		for range 1000 {
			d := backoff(attempt)
			assert.True(t, d >= middle*4/5 && d <= middle*6/5, attempt, d)
			least, most = min(least, d), max(most, d)
		}
		assert.True(t, least < middle*9/10 && most > middle*11/10, attempt, least, most)
	}
}

func TestExponentialOfNothing(t *testing.T) {
	assert.Equal(t, bide.Exponential(0, time.Hour)(3), 0)
	assert.Equal(t, bide.Exponential(-time.Second, time.Hour)(3), 0)
}

func TestExponentialStaysInBounds(t *testing.T) {
	for range 1000 {
		d := bide.Exponential(time.Second, math.MaxInt64)(60)
		assert.True(t, d >= storage.MaxDelay/5*4 && d <= storage.MaxDelay/5*6, d)
		assert.Equal(t, bide.Exponential(time.Hour, -time.Hour)(3), 0)
	}
}
