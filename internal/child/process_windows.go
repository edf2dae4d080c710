package child

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts a child into a process group of its own: a Ctrl-C at the terminal
// reaches us alone, and we decide what becomes of it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// DetachLasting puts a child into a process group of its own.
func DetachLasting(cmd *exec.Cmd) { detach(cmd) }

// interrupt ends a child: Windows has no way to ask.
func interrupt(p *os.Process) error { return p.Kill() }

// KillGroup ends a child, named by its id.
func KillGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}
