// SPDX-License-Identifier: Apache-2.0

// Package result is what the harness measured, as it is kept in a file.
package result

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// File is everything about one time that the harness ran.
type File struct {
	Began    time.Time
	Ended    time.Time
	Commit   string // of bide, with "-dirty" if something was not committed; "" if unknown
	Machine  Machine
	Settings Settings
	Systems  []System // in the order of the report
	Runs     []Run
}

// Settings that the workloads were run with.
type Settings struct {
	Seconds     float64 // of producing, in workloads that produce as fast as they can
	LagSeconds  float64 // over which the due times of W4 are spread
	IdleSeconds float64 // that W6 looks at
	Messages    int     // in a backlog or waiting, at most
	Repetitions int     // of workloads that measure speed
	Once        bool    // others were run once only
}

// System that was measured.
type System struct {
	Name  string // as on the command line
	Title string // as in the report
	About string // version and settings
	Kind  Kind
}

// Kind of system.
type Kind string

// The kinds.
const (
	Bide    Kind = "bide"
	Ceiling Kind = "ceiling" // what the store allows if one does nothing else
	Peer    Kind = "peer"
)

// Run is one repetition of one workload on one system.
type Run struct {
	System     string
	Workload   string
	Condition  string  `json:",omitempty"` // "" is the usual one
	Repetition int     // from 1
	Load       float64 // average of the machine over a minute, before the run; what the harness itself did counts
	Metrics    map[string]float64
	Error      string `json:",omitempty"` // why there are no metrics, "" otherwise
}

// Names of the metrics. A run has those that its workload measures.
const (
	Rate       = "messages_per_second"
	Messages   = "messages"
	Lost       = "lost"
	Doubled    = "doubled"
	Early      = "early"
	EarlyShare = "early_share" // of the messages, 0 to 1
	ClientCPU  = "client_cpu_us_per_message"
	ServerCPU  = "server_cpu_us_per_message"
	Commands   = "redis_commands_per_message" // those inside scripts included
	Reads      = "redis_reads_per_message"    // about the number of round trips
	Allocs     = "client_allocs_per_message"  // of the Go process, the making of bodies included
	AllocBytes = "client_alloc_bytes_per_message"
	LagP50     = "lag_p50_ms"
	LagP99     = "lag_p99_ms"
	LagMax     = "lag_max_ms"
	LagMin     = "lag_min_ms"
	BurstFirst = "burst_first_ms" // from due to the first delivery
	BurstLast  = "burst_last_ms"  // from due to the last delivery
	Memory     = "memory_bytes_per_message"
	Disk       = "disk_bytes_per_message"           // length of files
	Allocated  = "disk_allocated_bytes_per_message" // set aside by the file system
	IdleRedis  = "redis_commands_per_second"
	IdleReads  = "redis_reads_per_second"
	IdleServer = "server_cpu_percent"
	IdleClient = "client_cpu_percent"
)

// Goroutines of the harness and the client while a backlog is drained, at most.
const Goroutines = "goroutines"

// Parts of a workload that has several begin the names of what is measured in them.
const (
	Enqueue = "enqueue_"
	Claim   = "claim_"
	Cancel  = "cancel_"
)

// Values of a metric over the repetitions of a workload on a system, under the usual condition. Runs
// that failed have none.
func (f *File) Values(system, workload, metric string) []float64 {
	return f.Under("", system, workload, metric)
}

// Under is Values under a condition.
func (f *File) Under(condition, system, workload, metric string) []float64 {
	var values []float64
	for _, r := range f.Runs {
		if v, ok := r.Metrics[metric]; ok && r.Condition == condition && r.System == system && r.Workload == workload {
			values = append(values, v)
		}
	}
	return values
}

// Write keeps the file under a name, whole or not at all.
func (f *File) Write(name string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(name+".new", append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return os.Rename(name+".new", name)
}

// Read reads what Write wrote.
func Read(name string) (*File, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	f := &File{}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, fmt.Errorf("read results of %s: %w", name, err)
	}
	return f, nil
}
