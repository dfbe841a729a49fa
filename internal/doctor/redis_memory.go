// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"strconv"
	"strings"
)

func (s *server) version() []Finding {
	v := s.info["redis_version"]
	var major, minor int
	if _, err := fmt.Sscanf(v, "%d.%d", &major, &minor); err == nil && (major > 6 || major == 6 && minor >= 2) {
		return nil
	}
	return s.find("version", Problem, Stop, fmt.Sprintf("the server has version %s", v),
		"bide needs Redis 6.2 or newer, or Valkey, and does not open older ones", "upgrade the server")
}

func (s *server) eviction() []Finding {
	p := s.info["maxmemory_policy"]
	if p == "" || p == "noeviction" {
		return nil
	}
	return s.find("eviction", Problem, Loss, "maxmemory-policy is "+p,
		"when memory is full the server throws away whole queues to make room; bide does not open such a server",
		"CONFIG SET maxmemory-policy noeviction", "CONFIG REWRITE")
}

func (s *server) memory() []Finding {
	used, most := s.number("used_memory"), s.number("maxmemory")
	if most == 0 {
		return s.find("maxmemory", Warning, Loss, "the server has no limit of memory",
			"it grows until the system kills it; at a limit it refuses to publish and goes on delivering",
			fmt.Sprintf("CONFIG SET maxmemory %d", int64(s.number("total_system_memory")*0.6)), "CONFIG REWRITE")
	}
	part := used / most
	severity := Warning
	switch {
	case part >= s.limits.Full:
		severity = Problem
	case part < s.limits.Fill:
		return nil
	}
	return s.find("memory", severity, Stop, fmt.Sprintf("%.0f%% of the memory is in use: %s of %s", 100*part, size(used), size(most)),
		"a full server refuses to publish until messages are handled",
		fmt.Sprintf("CONFIG SET maxmemory %d", int64(2*most)), "or look with bide stats for queues that nobody consumes, and purge what is dead")
}

// persistence is about what a restart leaves.
func (s *server) persistence() []Finding {
	log := s.info["aof_enabled"] == "1"
	save, known := s.settings["save"]
	const mend, keep = "CONFIG SET appendonly yes", "CONFIG REWRITE"
	replicas := s.number("connected_slaves") > 0
	switch {
	case !log && known && save == "" && replicas && s.info["role"] == "master":
		return s.find("persistence", Problem, Loss, "the server has replicas and keeps nothing on its disk",
			"if it restarts before a failover it comes back empty, and the replicas copy the emptiness", mend, keep)
	case !log && known && save == "":
		return s.find("persistence", Problem, Loss, "the server keeps nothing on its disk",
			"a restart loses every message", mend, keep)
	case !log && known:
		return s.find("persistence", Warning, Loss, fmt.Sprintf("the server keeps snapshots only (save %q)", save),
			"a crash loses what was enqueued since the last snapshot, and repeats what was acknowledged since", mend, keep)
	case !log:
		return s.find("persistence", Warning, Loss, "the server keeps no log of what is written",
			"a crash loses at least what was enqueued since the last snapshot, if there are any", "switch append-only persistence on where the server is managed")
	case s.settings["appendfsync"] == "no":
		return s.find("fsync", Warning, Loss, "appendfsync is no",
			"a crash of the machine loses up to half a minute", "CONFIG SET appendfsync everysec", keep)
	}
	return nil
}

// failedWrites is about a disk that does not take what it should.
func (s *server) failedWrites() (found []Finding) {
	if s.info["rdb_last_bgsave_status"] == "err" {
		severity, why := Warning, "the snapshot on the disk grows old"
		if s.settings["stop-writes-on-bgsave-error"] == "yes" && s.settings["save"] != "" {
			severity, why = Problem, "the server refuses everything until a snapshot succeeds"
		}
		found = append(found, s.find("snapshot", severity, Stop, "the last snapshot failed", why,
			"make room on the server's disk or mend its permissions, see the server's log", "BGSAVE")...)
	}
	if s.info["aof_enabled"] == "1" && s.info["aof_last_write_status"] == "err" {
		found = append(found, s.find("log", Problem, Loss, "the last write to the append-only log failed",
			"what is answered is not on the disk, and the server refuses writes",
			"make room on the server's disk, see the server's log")...)
	}
	if s.info["aof_enabled"] == "1" && s.info["aof_last_bgrewrite_status"] == "err" {
		found = append(found, s.find("log", Warning, Stop, "the last rewrite of the append-only log failed",
			"the log grows until the disk is full", "make room on the server's disk, see the server's log", "BGREWRITEAOF")...)
	}
	return found
}

// notices is about the buffer that notices to waiting processes go through.
func (s *server) notices() []Finding {
	fields := strings.Fields(s.settings["client-output-buffer-limit"])
	for i := 0; i+2 < len(fields); i += 4 {
		if fields[i] != "pubsub" {
			continue
		}
		for _, f := range fields[i+1 : i+3] {
			if n, err := strconv.ParseInt(f, 10, 64); err == nil && n > 0 && n < 1<<20 {
				return s.find("pubsub buffer", Warning, Delay, fmt.Sprintf("client-output-buffer-limit pubsub is %s", size(float64(n))),
					"a burst of notices cuts the connection of a waiting consumer, which comes back seconds later",
					"CONFIG SET client-output-buffer-limit 'pubsub 33554432 8388608 60'", "CONFIG REWRITE")
			}
		}
	}
	return nil
}
