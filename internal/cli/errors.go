package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Exit statuses of every command. A command that a signal ended exits with
// 128 + the number of the signal, as shells do.
const (
	ExitOK    = 0 // done
	ExitFault = 1 // the log or the work is faulty
	ExitUsage = 2 // the command line is wrong

	exitClosed = 128 + 13 // of SIGPIPE, which some platforms do not have
)

// Hinted is an error that knows what its reader can do about it.
type Hinted interface {
	error
	// Hint is one sentence in the imperative, without a full stop.
	Hint() string
}

// WithHint adds a hint to err. It is nil if err is nil, and err unchanged if
// the hint is empty.
func WithHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	return &hintedError{err, hint}
}

type hintedError struct {
	error
	hint string
}

func (e *hintedError) Hint() string  { return e.hint }
func (e *hintedError) Unwrap() error { return e.error }

// UsageError is a wrong command line: an unknown command or flag, a missing
// argument, a value out of range. Its exit status is ExitUsage.
type UsageError struct{ Err error }

// Usagef makes a UsageError from a format as fmt.Errorf does.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Errorf(format, args...)}
}

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// SignalError is the cause of a context that a signal cancelled.
type SignalError struct {
	Name   string // for example "SIGINT"
	Number int    // for example 2
}

func (e *SignalError) Error() string { return "interrupted by " + e.Name }

// HintRule gives the hint for the errors it matches.
type HintRule struct {
	Match func(error) bool
	Hint  string
}

// Is matches errors that wrap target, for a HintRule.
func Is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// As matches errors that wrap one of type E, for a HintRule.
func As[E error](err error) bool {
	var target E
	return errors.As(err, &target)
}

// HintFor is the hint that err carries, else that of the first rule to match,
// else "".
func HintFor(err error, rules []HintRule) string {
	var hinted Hinted
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	for _, rule := range rules {
		if rule.Match(err) {
			return rule.Hint
		}
	}
	return ""
}

// Report prints err once, as `PROGRAM: what failed: why` and a line with the
// hint if there is one, and returns the exit status. The outermost hint wins,
// and one that err carries wins over the rules. A closed standard output is
// quiet, and its status is the one that SIGPIPE would have given.
func Report(w io.Writer, program string, err error, rules []HintRule) int {
	var (
		usage  *UsageError
		signal *SignalError
	)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, ErrOutputClosed):
		return exitClosed
	case errors.As(err, &signal):
		printError(w, program, err, "")
		return 128 + signal.Number
	}
	printError(w, program, err, HintFor(err, rules))
	if errors.As(err, &usage) {
		return ExitUsage
	}
	return ExitFault
}

// Cause turns the error of a cancelled context into what cancelled it, so
// that Report can name the signal. Other errors are returned as they are.
func Cause(ctx context.Context, err error) error {
	if err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// printError keeps an error on one line, joined errors included, and lets no
// control character of a name reach the terminal.
func printError(w io.Writer, program string, err error, hint string) {
	message := Safe(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
	fmt.Fprintf(w, "%s: %s\n", program, message)
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", Safe(hint))
	}
}

// Failed says what was being done to which path, or is nil if err is. The path
// that the operating system repeats is left out.
func Failed(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	if pathErr, ok := err.(*fs.PathError); ok && pathErr.Path == path {
		err = pathErr.Err
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}
