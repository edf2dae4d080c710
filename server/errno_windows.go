package server

import "syscall"

// errQuota means that a user or group has no space left (ERROR_DISK_QUOTA_EXCEEDED).
const errQuota = syscall.Errno(1295)
