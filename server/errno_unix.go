//go:build unix

package server

import "syscall"

// errQuota means that a user or group has no space left.
const errQuota = syscall.EDQUOT
