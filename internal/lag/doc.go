// SPDX-License-Identifier: Apache-2.0

// Package lag measures how long after its due time a message reaches its handler. Its tests assert
// times, so they run in a stage of their own, one after another and without the race detector:
//
//	make lag
package lag
