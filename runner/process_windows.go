package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts a child into a process group of its own: a Ctrl-C at the terminal
// reaches us alone, and we decide what becomes of the trial.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// detachWorker puts a worker process into a process group of its own.
func detachWorker(cmd *exec.Cmd) { detach(cmd) }

// interrupt ends a child: Windows has no way to ask.
func interrupt(p *os.Process) error { return p.Kill() }

// killGroup ends a child, named by its id.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		p.Kill()
	}
}
