//go:build unix && !linux

package runner

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
