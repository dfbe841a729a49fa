// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package redistest

import "syscall"

// dieWithParent does nothing where the system cannot do it: there a killed test binary leaves its
// servers behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
