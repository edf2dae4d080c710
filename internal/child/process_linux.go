package child

import "syscall"

// dieWithParent makes the kernel end the child when the thread that started it
// ends, and so when we are killed. The caller must stay locked to its thread.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
