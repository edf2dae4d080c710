//go:build unix

package server

import "syscall"

// diskFull are the errors of a disk, or a user's or group's share of it, that takes no
// more.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}
