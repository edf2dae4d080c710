// Package child runs commands whose output is wanted: in a process group of their
// own, so that they and all they start can be stopped and ended.
package child

import (
	"cmp"
	"context"
	"io"
	"os/exec"
	"runtime"
	"time"
)

// StopPatience is how long a command may take to end after it was asked, unless
// it is told otherwise.
const StopPatience = 5 * time.Second

// Command is a command whose output is wanted.
type Command struct {
	// Args are the program and its arguments.
	Args []string
	// Dir and Env are those of exec.Cmd.
	Dir string
	Env []string
	// In is its standard input, nil for none. It must not fail, and a command need not
	// read all of it.
	In io.Reader
	// Out and Err get the output. They must not fail, and may be the same if they
	// are safe for concurrent use.
	Out, Err io.Writer
	// Patience is how long it may take to end after it was asked, StopPatience
	// if 0.
	Patience time.Duration
	// Started, if not nil, is told the process group when the command runs, Left
	// that the command itself has ended, Ended the group when all of it has.
	Started func(group int)
	Left    func()
	Ended   func(group int)
}

// Run runs the command to its end, or until ctx ends; then the command is asked to
// end, and made to after Patience. Whatever it left running is killed at its end;
// whether that kept input or output open says nothing about the command. The error is
// that of the start or of exec.Cmd.Wait.
func (c *Command) Run(ctx context.Context) error {
	// The kernel ends the child when the thread that started it does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	detach(cmd)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	patience := cmp.Or(c.Patience, StopPatience)
	var asked time.Time // to end
	cmd.Cancel = func() error {
		asked = time.Now()
		return interrupt(cmd.Process)
	}
	cmd.WaitDelay = patience
	return c.runReading(cmd, func() time.Time {
		if asked.IsZero() {
			return time.Now().Add(outputPatience)
		}
		return asked.Add(patience)
	})
}

// runReading runs a command and reads what it prints, after its end until the
// time that until gives.
func (c *Command) runReading(cmd *exec.Cmd, until func() time.Time) error {
	stdout, err := newOutput(c.Out)
	if err != nil {
		return err
	}
	stderr, err := newOutput(c.Err)
	if err != nil {
		stdout.w.Close()
		stdout.finish(time.Now())
		return err
	}
	cmd.Stdout, cmd.Stderr = stdout.w, stderr.w
	stdin, err := newInput(cmd, c.In)
	if err == nil {
		err = cmd.Start()
		stdin.started()
	}
	stdout.w.Close()
	stderr.w.Close()
	if err == nil {
		told(c.Started, cmd.Process.Pid)
		err = cmd.Wait()
		if c.Left != nil {
			c.Left()
		}
	}
	stdin.finish()
	end := until()
	stdout.finish(end)
	stderr.finish(end)
	if cmd.Process != nil {
		KillGroup(cmd.Process.Pid)
		told(c.Ended, cmd.Process.Pid)
	}
	return err
}

func told(f func(group int), group int) {
	if f != nil {
		f(group)
	}
}
