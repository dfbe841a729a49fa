// SPDX-License-Identifier: Apache-2.0

package redistest

import "syscall"

// dieWithParent makes the kernel kill a child when the test binary is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
