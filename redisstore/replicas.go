// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// replicasWithin is how long a call waits for its replicas.
const replicasWithin = time.Second

// tooFewError says that a call has taken effect at the primary, and that too few replicas have said so
// in time: a failover may undo it.
type tooFewError struct{ have, want int }

func (e *tooFewError) Error() string {
	return fmt.Sprintf("%d of %d replicas have it after %s", e.have, e.want, replicasWithin)
}

// awaitsReplicas says whether a script's answer counts only when enough replicas have what it wrote.
func (s *Store) awaitsReplicas(sc *script) bool {
	return s.options.Replicas > 0 && (sc.name == enqueueScript.name || sc.name == settleScript.name)
}

// exec runs a script.
func (s *Store) exec(ctx context.Context, sc *script, keys, args []string) (rueidis.RedisMessage, error) {
	if !s.awaitsReplicas(sc) {
		return sc.lua.Exec(ctx, s.client, keys, args).ToMessage()
	}
	// WAIT counts what its own connection has written, so nobody else may write there meanwhile.
	own, release := s.client.Dedicate()
	defer release()
	m, err := s.confirmed(ctx, own, own.B().Evalsha().Sha1(sc.sum).
		Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	if e, ok := rueidis.IsRedisErr(err); ok && e.IsNoScript() {
		m, err = s.confirmed(ctx, own, own.B().Eval().Script(sc.source).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
	}
	return m, err
}

// confirmed sends a script and waits behind it.
func (s *Store) confirmed(ctx context.Context, own rueidis.DedicatedClient, run rueidis.Completed) (rueidis.RedisMessage, error) {
	want := s.options.Replicas
	answers := own.DoMulti(ctx, run, own.B().Wait().Numreplicas(int64(want)).Timeout(replicasWithin.Milliseconds()).Build())
	m, err := answers[0].ToMessage()
	if err != nil {
		return m, err
	}
	have, err := answers[1].AsInt64()
	if err == nil && int(have) < want {
		err = &tooFewError{int(have), want}
	}
	return m, err
}

// isTooFew says whether replicas were too few. It is left to the caller to repeat such a call: what it
// asks for has been done, under the same ids it is done once.
func isTooFew(err error) bool {
	_, ok := errors.AsType[*tooFewError](err)
	return ok
}
