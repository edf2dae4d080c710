//go:build unix

package child

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts a child into a process group of its own: a Ctrl-C at the terminal
// reaches us alone, and we decide what becomes of it. Where the
// kernel can, the child ends with the thread that started it; the caller must stay
// locked to that.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// DetachLasting puts a child into a process group of its own. Nothing kills it
// with us, so that it can leave things in order.
func DetachLasting(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// interrupt asks a child and all it started to end.
func interrupt(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// KillGroup ends a child, named by its id, and all it started.
func KillGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
