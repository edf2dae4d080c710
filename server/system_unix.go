//go:build unix

package server

import "syscall"

// diskFull are the errors of a disk, or a user's or group's share of it, that takes no
// more.
var diskFull = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}

// openFiles is how many files the process may have open.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return uint64(limit.Cur)
}
