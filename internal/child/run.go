// Package child runs commands whose output is wanted: in a process group of their
// own, so that they and all they start can be stopped and ended.
package child

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"time"
)

// StopPatience is how long a command may take to end after it was asked.
const StopPatience = 5 * time.Second

// Run runs a command to its end, or until ctx ends; then the command is asked to
// end, and made to after StopPatience. Its output goes to the writers, which must
// not fail and may be the same if they are safe for concurrent use. Whatever the
// command left running is killed at its end; whether that kept the output open
// says nothing about the command. Started, if not nil, is told the process group
// of the command, and 0 once it has ended. The error is that of the start or of
// exec.Cmd.Wait.
func Run(ctx context.Context, args []string, set func(*exec.Cmd), out, errs io.Writer, started func(group int)) error {
	// The kernel ends the child when the thread that started it does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	Detach(cmd)
	set(cmd)
	var asked time.Time // to end
	cmd.Cancel = func() error {
		asked = time.Now()
		return Interrupt(cmd.Process)
	}
	cmd.WaitDelay = StopPatience
	if started == nil {
		started = func(int) {}
	}
	return runReading(cmd, out, errs, started, func() time.Time {
		if asked.IsZero() {
			return time.Now().Add(outputPatience)
		}
		return asked.Add(StopPatience)
	})
}

// runReading runs a command and reads what it prints, after its end until the
// time that until gives.
func runReading(cmd *exec.Cmd, out, errs io.Writer, started func(group int), until func() time.Time) error {
	stdout, err := newOutput(out)
	if err != nil {
		return err
	}
	stderr, err := newOutput(errs)
	if err != nil {
		stdout.w.Close()
		stdout.finish(time.Now())
		return err
	}
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	err = cmd.Start()
	stdout.w.Close()
	stderr.w.Close()
	if err == nil {
		started(cmd.Process.Pid)
		err = cmd.Wait()
	}
	end := until()
	stdout.finish(end)
	stderr.finish(end)
	if cmd.Process != nil {
		KillGroup(cmd.Process.Pid)
		started(0)
	}
	return err
}
