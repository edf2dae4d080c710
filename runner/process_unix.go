//go:build unix

package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts a child into a process group of its own: a Ctrl-C at the terminal
// reaches us alone, and we decide what becomes of the trial.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// detachWorker puts a worker process into a process group of its own. It must
// outlive us long enough to give its trial back, so nothing kills it with us.
func detachWorker(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// interrupt asks a child and all it started to end.
func interrupt(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends a child, named by its id, and all it started.
func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }
