// Package cli holds what every command of a command line shares: the streams
// it talks to, how it reports errors, and how it prints for people and for
// programs. It knows nothing of logs; the commands themselves are in
// cmd/foldlog.
//
// Results go to standard output and everything else to standard error. Names
// that come from a log are escaped before they reach a terminal (see Safe).
package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Env is the world a command runs in. The zero value reads nothing, writes
// nowhere, and has an empty environment; System is the real one.
type Env struct {
	Stdin  io.Reader // what the command reads, nil for nothing
	Stdout io.Writer // results, nil to discard them
	Stderr io.Writer // notes, progress and errors, nil to discard them

	// Getenv looks a variable up, "" if unset. Nil is an empty environment.
	Getenv func(string) string
	// Now is the wall clock for ages. Nil is time.Now.
	Now func() time.Time
	// Terminal says whether a stream is an interactive terminal. Nil asks
	// the operating system, so that a buffer is never one.
	Terminal func(stream any) bool

	Quiet   bool // no notes and no progress, only results and errors
	Verbose bool // Debugf prints
}

// System is the environment of this process. Its Stdout turns a closed pipe
// into ErrOutputClosed.
func System() *Env {
	return &Env{
		Stdin:  os.Stdin,
		Stdout: &output{file: os.Stdout},
		Stderr: os.Stderr,
		Getenv: os.Getenv,
	}
}

// In is what the command reads; it is never nil.
func (e *Env) In() io.Reader {
	if e.Stdin == nil {
		return strings.NewReader("")
	}
	return e.Stdin
}

// Out is where results go; it is never nil.
func (e *Env) Out() io.Writer { return orDiscard(e.Stdout) }

// Err is where everything that is not a result goes; it is never nil.
func (e *Env) Err() io.Writer { return orDiscard(e.Stderr) }

// Var is the value of an environment variable, "" if unset.
func (e *Env) Var(name string) string {
	if e.Getenv == nil {
		return ""
	}
	return e.Getenv(name)
}

// Time is the wall clock.
func (e *Env) Time() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// Ago spells how long ago a time of Unix milliseconds was, "" for 0.
func (e *Env) Ago(ms int64) string {
	if ms == 0 {
		return ""
	}
	return Age(e.Time(), time.UnixMilli(ms))
}

// Notef prints one line for people to standard error, unless Quiet. The line
// is made safe for a terminal.
func (e *Env) Notef(format string, args ...any) {
	if !e.Quiet {
		e.line(format, args)
	}
}

// Debugf prints one line to standard error if Verbose.
func (e *Env) Debugf(format string, args ...any) {
	if e.Verbose {
		e.line(format, args)
	}
}

// line ignores a failed write: there is nowhere left to say so.
func (e *Env) line(format string, args []any) {
	fmt.Fprintln(e.Err(), Safe(fmt.Sprintf(format, args...)))
}

// IsTerminal says whether a stream of this environment is an interactive
// terminal.
func (e *Env) IsTerminal(stream any) bool {
	if e.Terminal != nil {
		return e.Terminal(stream)
	}
	f, ok := stream.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalSize is how many columns and lines the terminal of the results has, 0 and 0 if
// they go elsewhere.
func (e *Env) TerminalSize() (width, height int) {
	if f, ok := e.Stdout.(interface{ Fd() uintptr }); ok && e.IsTerminal(e.Stdout) {
		if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
			return w, h
		}
	}
	return 0, 0
}

// Color says whether results may carry terminal styling: standard output is
// a terminal that is not dumb, and NO_COLOR (https://no-color.org) is unset
// or empty.
func (e *Env) Color() bool {
	return e.Var("NO_COLOR") == "" && e.Var("TERM") != "dumb" && e.IsTerminal(e.Stdout)
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
