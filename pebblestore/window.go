// SPDX-License-Identifier: Apache-2.0

package pebblestore

// hold begins the dedup window of an id.
func (c *call) hold(id string, end int64) {
	c.t.touch(c.queue, id)
	c.windows++
	c.t.set(idKey(kindWindow, c.name, id), appendNumber(nil, end))
	c.t.set(endingKey(c.name, id, end), nil)
	c.ending.add(place{at: end})
}

// window reads the end of the dedup window of an id, 0 if it has none.
func (c *call) window(id string) (end int64, err error) {
	if c.windows == 0 {
		return 0, nil
	}
	_, err = c.t.get(c.queue, id, idKey(kindWindow, c.name, id), func(value []byte) (err error) {
		end, err = number(value)
		return err
	})
	return end, err
}

// free ends a dedup window.
func (c *call) free(id string, end int64) {
	if end == 0 {
		return
	}
	c.mark()
	c.windows--
	c.t.touch(c.queue, id)
	c.t.del(idKey(kindWindow, c.name, id))
	c.t.del(endingKey(c.name, id, end))
	c.ending.remove(place{at: end})
}
