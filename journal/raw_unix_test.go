//go:build unix

package journal

import "syscall"

// rawRename is the system call alone, without what package os does around it.
func rawRename(from, to string) error { return syscall.Rename(from, to) }
