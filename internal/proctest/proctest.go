// Package proctest lets a test binary run itself as other processes, which can be
// killed, and hears what they say.
package proctest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Role plays a role and ends the process, with status 1 and the error on standard
// error if there is one, where an environment variable is set; its value says what to
// do. TestMain calls it first.
func Role(env string, play func(value string) error) {
	value := os.Getenv(env)
	if value == "" {
		return
	}
	if err := play(value); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Self is this test binary as another process, killed when ctx ends, with variables
// "NAME=VALUE" added to its environment.
func Self(ctx context.Context, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Start starts a process whose standard output goes to heard, line by line in one
// goroutine. The channel gives how it ended, once everything it said was heard: nil,
// or an error with its standard error, unless cmd sends that elsewhere.
func Start(cmd *exec.Cmd, heard func(line string)) (<-chan error, error) {
	var stderr bytes.Buffer
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			heard(lines.Text())
		}
		err := cmd.Wait()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, stderr.Bytes())
		}
		ended <- err
	}()
	return ended, nil
}
