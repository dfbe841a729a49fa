// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"strings"

	"github.com/bidemq/bide/redisstore"
)

// commands are those that bide sends and that its scripts call, with arguments that they would
// have. A K stands for a key of a queue and a C for the channel of a process.
var commands = []string{
	"EVALSHA 0 1 K", "EVAL return 1 K", "PING", "TIME", "INFO", "SUBSCRIBE C", "PUBLISH C x",
	"EXISTS K", "PEXPIRE K 1000", "DEL K",
	"HGET K f", "HMGET K f", "HSET K f v", "HDEL K f", "HEXISTS K f", "HSCAN K 0", "HLEN K",
	"ZADD K 0 m", "ZCARD K", "ZCOUNT K 0 1", "ZMSCORE K m", "ZRANGE K 0 1", "ZRANGEBYLEX K - +", "ZREM K m", "ZLEXCOUNT K - +", "ZREVRANGEBYSCORE K 1 0",
	"ZREMRANGEBYRANK K 0 0", "ZREMRANGEBYSCORE K 0 0", "ZREVRANGE K 0 1", "ZREVRANGEBYLEX K + -", "ZSCAN K 0", "ZSCORE K m",
}

// access asks whether the user that is connected may do what bide does. Nothing is run.
func (s *server) access(ctx context.Context, namespace string) ([]Finding, error) {
	user, err := s.client.Do(ctx, s.client.B().AclWhoami().Build()).ToString()
	if refused(err) {
		return s.accessUnseen(), nil
	}
	if err != nil {
		return nil, err
	}
	namespace = cmp.Or(namespace, "default")
	key, channel := redisstore.QueueKeys(namespace, "doctor")[0], "bide:"+namespace+":doctor"
	var denied []string
	for _, line := range commands {
		args := strings.Fields(line)
		for i, a := range args {
			switch a {
			case "K":
				args[i] = key
			case "C":
				args[i] = channel
			}
		}
		if args[0] == "EVAL" || args[0] == "EVALSHA" {
			args = []string{args[0], "0", "1", key}
		}
		answer, err := s.client.Do(ctx, s.client.B().Arbitrary("ACL", "DRYRUN", user).Args(args...).Build()).ToString()
		switch {
		case refused(err):
			return s.accessUnseen(), nil // older than 7.0, or the user may not ask
		case err != nil:
			return nil, err
		case answer != "OK":
			denied = append(denied, args[0])
		}
	}
	if len(denied) == 0 {
		return nil, nil
	}
	return s.find("access", Problem, Stop, "user "+user+" may not use "+strings.Join(denied, ", ")+" on bide's keys and channels",
		"calls that need them fail", "ACL SETUSER "+user+" ~bide:* &bide:* +"+strings.ToLower(strings.Join(denied, " +")), "ACL SAVE"), nil
}

func (s *server) accessUnseen() []Finding {
	if s.settings != nil { // who may read the settings may do everything, as a rule
		return nil
	}
	return s.find("access", Note, Unseen, "the server does not tell what the user may do",
		"that needs Redis 7 and the right to ask (ACL WHOAMI, ACL DRYRUN)")
}
