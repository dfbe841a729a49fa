// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/bidemq/bide/internal/importer"
)

// keyed is what the flags about a key say.
type keyed struct {
	key    string
	member string
	bodies string
}

func (k *keyed) flags(c *cobra.Command, what string) {
	f := c.Flags()
	f.StringVar(&k.member, "member", "", what+" is the payload, or an id; the default is id with --bodies and payload without")
	f.StringVar(&k.bodies, "bodies", "", "key of the hash that holds the bodies by id")
}

// ids says whether the elements are ids.
func (k *keyed) ids() (bool, error) {
	switch {
	case k.key == "":
		return false, invalid("--key is missing: the key to import")
	case k.member == "payload" && k.bodies != "":
		return false, invalid("--bodies are found by id, so --member cannot be payload")
	case k.member == "id" || k.bodies != "":
		return true, nil
	case k.member == "payload" || k.member == "":
		return false, nil
	}
	return false, invalid("--member %q is not id or payload", k.member)
}

func (a *app) importZSet() *cobra.Command {
	var i importing
	var k keyed
	var score string
	c := &cobra.Command{
		Use:   "zset --from URL --key KEY --queue QUEUE",
		Short: "Import a sorted set whose scores are due times",
		Long: `Import a sorted set whose scores are due times. Its members are payloads, ids, or ids of bodies in a
hash. A payload gets a digest of itself as its id; an id without a body is its body, too. The order
among equal scores is not kept.`,
		Example: `  bide import zset --from redis://localhost --key delay:orders --queue order.timeout --dry-run
  bide import zset --from redis://localhost --key form:due --bodies form:content --queue form.submit --remove`,
		RunE: func(c *cobra.Command, _ []string) error {
			unit, err := importer.ParseUnit(score)
			if err != nil {
				return err
			}
			ids, err := k.ids()
			if err != nil {
				return err
			}
			return a.runImport(c, i, func(client rueidis.Client) importer.Source {
				return &importer.ZSet{Client: client, Key: k.key, Bodies: k.bodies, IDs: ids, Score: unit}
			})
		},
	}
	i.flags(c)
	k.flags(c, "a member")
	c.Flags().StringVar(&k.key, "key", "", "key of the sorted set")
	c.Flags().StringVar(&i.queue, "queue", "", "queue that the messages go to")
	c.Flags().StringVar(&score, "score", string(importer.Auto), "what scores count since 1970: s, ms, us; auto is s or ms, as all of them look")
	return c
}

func (a *app) importList() *cobra.Command {
	var i importing
	var k keyed
	var head string
	c := &cobra.Command{
		Use:   "list --from URL --key KEY --queue QUEUE",
		Short: "Import a list that is a queue",
		Long: `Import a list that producers push to and consumers pop from, in its order, due at once. Equal
payloads are a message each; an id that stands twice is one message. Stop the consumers of the list
first: what they pop meanwhile is handled twice.`,
		Example: `  bide import list --from redis://localhost --key queue:mail --queue mail --remove
  bide import list --from redis://localhost --key topic:ready --bodies topic:pool --queue topic`,
		RunE: func(c *cobra.Command, _ []string) error {
			if head != "left" && head != "right" {
				return invalid("--head %q is not left or right", head)
			}
			ids, err := k.ids()
			if err != nil {
				return err
			}
			return a.runImport(c, i, func(client rueidis.Client) importer.Source {
				return &importer.List{Client: client, Key: k.key, Right: head == "right", Bodies: k.bodies, IDs: ids}
			})
		},
	}
	i.flags(c)
	k.flags(c, "an element")
	c.Flags().StringVar(&k.key, "key", "", "key of the list")
	c.Flags().StringVar(&i.queue, "queue", "", "queue that the messages go to")
	c.Flags().StringVar(&head, "head", "right", "end that consumers pop from: right (LPUSH and RPOP), or left (RPUSH and LPOP)")
	return c
}

func (a *app) importAsynq() *cobra.Command {
	var i importing
	var queue, kind string
	c := &cobra.Command{
		Use:   "asynq --from URL --queue QUEUE",
		Short: "Import the tasks of a queue of asynq",
		Long: `Import the scheduled, retry and pending tasks of a queue of asynq. The id of a task is that of its
message, its payload the body, its type the header asynq-type, its group the key; the attempts that
it has left and its deadline are kept, its timeout, retention and uniqueness are not. Active,
archived and completed tasks and those being aggregated are counted and left alone. Stop the servers
of asynq first.`,
		Example: `  bide import asynq --from redis://localhost --queue default --dry-run
  bide import asynq --from redis://localhost --queue default --type email:welcome --as email.welcome --remove`,
		RunE: func(c *cobra.Command, _ []string) error {
			if queue == "" {
				return invalid("--queue is missing: the queue of asynq, say default")
			}
			i.queue = cmp.Or(i.queue, queue)
			return a.runImport(c, i, func(client rueidis.Client) importer.Source {
				return &importer.Asynq{Client: client, Queue: queue, Type: kind}
			})
		},
	}
	i.flags(c)
	c.Flags().StringVar(&queue, "queue", "", "queue of asynq")
	c.Flags().StringVar(&i.queue, "as", "", "queue that the messages go to (default the same name)")
	c.Flags().StringVar(&kind, "type", "", "only tasks of this type")
	return c
}
