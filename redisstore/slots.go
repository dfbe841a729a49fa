// SPDX-License-Identifier: Apache-2.0

package redisstore

import "strconv"

// slots of a Cluster. Its nodes have contiguous ranges of them, mostly of the same size.
const slots = 16384

// shardTag returns the hash tag of a shard. The tags of "name/1", "name/2" … would fall on the nodes by
// chance, several on one and none on another; so a number is put behind that brings the tag about where it
// should be. It is the same in all processes for ever.
func shardTag(prefix string, i int) string {
	if i == 0 {
		return prefix + "0"
	}
	const near = 32 // slots
	// Twelfths of the slots, counted from that of the first shard: so three, six and twelve shards are spread
	// evenly over two, three, four or six nodes, as far as that goes. Further dozens lie in between.
	twelfth := [...]int{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}
	want := slot(prefix+"0") + slots*twelfth[i%12]/12 + slots*(i/12)/72
	for k := 0; ; k++ {
		tag := prefix + strconv.Itoa(i) + "." + strconv.Itoa(k)
		if (slot(tag)-want%slots+slots)%slots < near {
			return tag
		}
	}
}

// slot is that of a hash tag: its CRC-16 (XMODEM).
func slot(tag string) int {
	crc := uint16(0)
	for i := range len(tag) {
		crc ^= uint16(tag[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
