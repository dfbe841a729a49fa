// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package doctor

import "syscall"

// freeSpace returns the bytes of a disk that may be used, and all that it has.
func freeSpace(path string) (free, total int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}
