// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const pings = 50

// replicas is about who else has the messages, and who may write them.
func (s *server) replicas() (found []Finding) {
	if s.info["role"] == "slave" && s.info["cluster_enabled"] == "1" {
		return nil // that is what it is there for
	}
	if s.info["role"] == "slave" {
		found = append(found, s.find("role", Problem, Stop, fmt.Sprintf("the server is a replica of %s:%s", s.info["master_host"], s.info["master_port"]),
			"it refuses everything that bide does", "give --store the primary, or redis+sentinel:// and redis+cluster://, which find it")...)
		return found
	}
	n := int(s.number("connected_slaves"))
	if least, known := s.settings["min-replicas-to-write"]; n > 0 && known && least == "0" {
		found = append(found, s.find("min replicas", Warning, Loss, "the server has replicas and min-replicas-to-write is 0",
			"a primary that is cut off goes on answering, and what it answered is lost when a replica has taken its place",
			"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-max-lag 10", "CONFIG REWRITE")...)
	}
	for i := range n {
		// slave0:ip=…,port=…,state=online,offset=…,lag=0
		text := s.info[fmt.Sprintf("slave%d", i)]
		replica := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(part, "=")
			replica[name] = value
		}
		lag, _ := strconv.Atoi(replica["lag"]) // not a number is none
		if text != "" && (replica["state"] != "online" || lag > 10) {
			found = append(found, s.find("replica", Warning, Loss,
				fmt.Sprintf("replica %s:%s is %s, %d s behind", replica["ip"], replica["port"], replica["state"], lag),
				"a failover to it loses what it does not have yet", "look at the replica's log and its network")...)
		}
	}
	return found
}

func (s *server) cluster(ctx context.Context) ([]Finding, error) {
	if s.info["cluster_enabled"] != "1" {
		return nil, nil
	}
	text, err := s.client.Do(ctx, s.client.B().ClusterInfo().Build()).ToString()
	if refused(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(text, "txt:")) { // of a verbatim string
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		state[name] = value
	}
	switch {
	case state["cluster_state"] != "ok":
		return s.find("cluster", Problem, Stop, fmt.Sprintf("the cluster is in state %s, %s of 16384 slots are served", state["cluster_state"], state["cluster_slots_ok"]),
			"queues in slots that nobody serves stand still", "redis-cli --cluster check "+s.address), nil
	case state["cluster_slots_pfail"] != "0" || state["cluster_slots_fail"] != "0":
		return s.find("cluster", Warning, Stop, fmt.Sprintf("%s slots may be failing, %s are", state["cluster_slots_pfail"], state["cluster_slots_fail"]),
			"their queues stand still until a replica takes over", "redis-cli --cluster check "+s.address), nil
	}
	return nil, nil
}

// connections is about those that the server cuts, and dead ones that it keeps.
func (s *server) connections() (found []Finding) {
	if n, err := strconv.Atoi(s.settings["timeout"]); err == nil && n > 0 && n < 15 {
		found = append(found, s.find("timeout", Warning, Delay, fmt.Sprintf("the server cuts connections that are idle for %d s", n),
			"bide pings idle ones every seven seconds; below that, waiting consumers are cut off again and again", "CONFIG SET timeout 0", "CONFIG REWRITE")...)
	}
	if s.settings["tcp-keepalive"] == "0" {
		found = append(found, s.find("keepalive", Warning, Delay, "tcp-keepalive is 0",
			"connections of dead consumers stay, and notices to them are believed to have arrived", "CONFIG SET tcp-keepalive 300", "CONFIG REWRITE")...)
	}
	return found
}

// latency pings the server and compares its clock with this machine's.
func (s *server) latency(ctx context.Context, now func() time.Time) ([]Finding, error) {
	median, p99, err := s.roundTrips(ctx)
	if err != nil {
		return nil, err
	}
	var found []Finding
	if p99 > s.limits.Ping {
		found = s.find("round trip", Warning, Delay,
			fmt.Sprintf("a round trip takes %s (median), %s (99 in 100)", median.Round(10*time.Microsecond), p99.Round(10*time.Microsecond)),
			"every claim and settlement takes at least one", "run the consumers nearer to the server; look for a busy machine or swapping")
	}
	before := now()
	parts, err := s.client.Do(ctx, s.client.B().Time().Build()).AsIntSlice()
	after := now()
	if refused(err) {
		return found, nil
	}
	if err != nil || len(parts) != 2 {
		return found, err
	}
	theirs := time.Unix(parts[0], parts[1]*1000)
	diff := theirs.Sub(before.Add(after.Sub(before) / 2))
	if diff.Abs() > s.limits.Clock+after.Sub(before) {
		found = append(found, s.find("clock", Warning, Delay, fmt.Sprintf("the server's clock is %s from this machine's", diff.Round(time.Millisecond)),
			"due times go by the server's clock: what is enqueued for an instant (not a delay) comes early or late by that much, as this machine sees it",
			"let NTP set both clocks")...)
	}
	return found, nil
}

// roundTrips pings the server again while that is slow, and returns what the best round has shown: this
// machine may have stood still in another.
func (s *server) roundTrips(ctx context.Context) (median, p99 time.Duration, err error) {
	for round := range 5 {
		trips := make([]time.Duration, pings)
		for i := range trips {
			began := time.Now()
			if err := s.client.Do(ctx, s.client.B().Ping().Build()).Error(); err != nil && !refused(err) {
				return 0, 0, err
			}
			trips[i] = time.Since(began)
		}
		slices.Sort(trips)
		if at := trips[pings*99/100]; round == 0 || at < p99 {
			median, p99 = trips[pings/2], at
		}
		if p99 <= s.limits.Ping {
			break
		}
	}
	return median, p99, nil
}

// slow reads the slow log.
func (s *server) slow(ctx context.Context, now func() time.Time) ([]Finding, error) {
	entries, err := s.client.Do(ctx, s.client.B().SlowlogGet().Count(64).Build()).ToArray()
	if refused(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	count, worst, command := 0, time.Duration(0), ""
	for _, e := range entries {
		fields, err := e.ToArray() // id, when, microseconds, arguments, …
		if err != nil || len(fields) < 4 {
			continue
		}
		at, _ := fields[1].AsInt64()
		took, _ := fields[2].AsInt64()
		args, _ := fields[3].AsStrSlice()
		d := time.Duration(took) * time.Microsecond
		if d < s.limits.Slow || now().Sub(time.Unix(at, 0)) > time.Hour || len(args) == 0 {
			continue
		}
		if count++; d > worst {
			worst, command = d, strings.Join(args[:min(2, len(args))], " ")
		}
	}
	if count == 0 {
		return nil, nil
	}
	return s.find("slow commands", Warning, Delay, fmt.Sprintf("%d commands of the last hour took %s or longer, the slowest %s (%s)", count, s.limits.Slow, worst.Round(time.Millisecond), command),
		"the server does one thing at a time: everybody waits meanwhile", "SLOWLOG GET 64", "move what runs such commands to another server"), nil
}
