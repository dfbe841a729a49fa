// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/bidemq/bide/internal/redisconn"
)

// Redis looks at the servers of a store in Redis.
type Redis struct {
	Client    rueidis.Client
	Namespace string // of the store, "" is "default"
	Limits    Limits
	Now       func() time.Time // this machine's clock
}

// server is what one server says about itself.
type server struct {
	address  string
	client   rueidis.Client
	info     map[string]string
	settings map[string]string // nil if it does not tell them
	limits   Limits
}

// Look asks every server. It fails if one cannot be reached.
func (r *Redis) Look(ctx context.Context) ([]Finding, error) {
	var found []Finding
	nodes := r.Client.Nodes()
	for _, address := range slices.Sorted(maps.Keys(nodes)) {
		s := server{address: cmp.Or(address, "redis"), client: nodes[address], limits: r.Limits}
		fs, err := s.look(ctx, r)
		if err != nil {
			return found, fmt.Errorf("look at %s: %w", s.address, err)
		}
		found = append(found, fs...)
	}
	return found, nil
}

func (s *server) look(ctx context.Context, r *Redis) (found []Finding, err error) {
	text, err := s.client.Do(ctx, s.client.B().Info().Build()).ToString()
	switch {
	case refused(err):
		return s.access(ctx, r.Namespace)
	case err != nil:
		return nil, err
	}
	s.info = redisconn.ParseInfo(text)
	s.settings, err = s.client.Do(ctx, s.client.B().ConfigGet().Parameter("*").Build()).AsStrMap()
	if err != nil && !refused(err) {
		return nil, err
	}
	for _, check := range []func() []Finding{s.version, s.eviction, s.memory, s.persistence, s.failedWrites, s.replicas, s.connections, s.notices} {
		found = append(found, check()...)
	}
	if s.settings == nil {
		found = append(found, Finding{
			Check: "settings", Severity: Note, Harm: Unseen, Where: s.address,
			What: "the server does not tell its settings",
			Why:  "managed servers often refuse CONFIG: snapshots, time-outs and limits of buffers were not looked at",
			Mend: []string{"look at them where the server is managed"},
		})
	}
	for _, check := range []func() ([]Finding, error){
		func() ([]Finding, error) { return s.cluster(ctx) },
		func() ([]Finding, error) { return s.latency(ctx, r.Now) },
		func() ([]Finding, error) { return s.slow(ctx, r.Now) },
		func() ([]Finding, error) { return s.access(ctx, r.Namespace) },
	} {
		fs, err := check()
		if err != nil {
			return found, err
		}
		found = append(found, fs...)
	}
	return found, nil
}

// refused says whether the server answered and would not: a user without the right, or a command
// that the provider has taken away.
func refused(err error) bool {
	var answer *rueidis.RedisError
	return errors.As(err, &answer)
}

// number reads a number of INFO, 0 if it is not there.
func (s *server) number(name string) float64 {
	n, err := strconv.ParseFloat(s.info[name], 64)
	if err != nil {
		return 0
	}
	return n
}

func (s *server) find(check string, severity Severity, harm Harm, what, why string, mend ...string) []Finding {
	return []Finding{{Check: check, Severity: severity, Harm: harm, Where: s.address, What: what, Why: why, Mend: mend}}
}
