package server

import "syscall"

// diskFull are the errors of a disk, or a user's or group's share of it, that takes no
// more: ERROR_DISK_FULL, ERROR_HANDLE_DISK_FULL and ERROR_DISK_QUOTA_EXCEEDED.
var diskFull = []error{syscall.Errno(112), syscall.Errno(39), syscall.Errno(1295)}

// openFiles is how many files the process may have open: there is no limit of its own.
func openFiles() uint64 { return 1 << 24 }
