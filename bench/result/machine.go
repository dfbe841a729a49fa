// SPDX-License-Identifier: Apache-2.0

package result

import "time"

// Machine that the figures are of.
type Machine struct {
	CPU      string
	Cores    int
	Memory   int64 // bytes
	Kernel   string
	Go       string
	Disk     string            // file system of the data
	Sync     time.Duration     // median of appending 4 KiB and waiting for the disk, before the runs
	Load     float64           // average over a minute before the first run; an idle machine has less than 0.3 per core
	Versions map[string]string // of the servers and modules, by name
}
