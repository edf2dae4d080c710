package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

var errLeased = errors.New("leased")

type sizeError struct{ n int }

func (e *sizeError) Error() string { return fmt.Sprintf("%d bytes are too many", e.n) }

func TestReport(t *testing.T) {
	rules := []HintRule{
		{Is(errLeased), "wait for the other"},
		{As[*sizeError], "raise the cap"},
		{Is(fs.ErrNotExist), "check the path"},
	}
	for _, tc := range []struct {
		name   string
		err    error
		status int
		want   string
	}{
		{"success is silent", nil, 0, ""},
		{"a fault without a rule has no hint", errors.New("cat a: torn"), 1, "foldlog: cat a: torn\n"},
		{"a wrapped sentinel finds its rule", fmt.Errorf("append: %w", errLeased), 1,
			"foldlog: append: leased\nhint: wait for the other\n"},
		{"a wrapped type finds its rule", fmt.Errorf("append: %w", &sizeError{9}), 1,
			"foldlog: append: 9 bytes are too many\nhint: raise the cap\n"},
		{"the hint of the error wins over the rules", fmt.Errorf("a: %w", WithHint(errLeased, "kill it")), 1,
			"foldlog: a: leased\nhint: kill it\n"},
		{"the outermost hint wins", WithHint(WithHint(errLeased, "inner"), "outer"), 1,
			"foldlog: leased\nhint: outer\n"},
		{"a wrong command line", WithHint(Usagef("unknown flag %s", "--x"), "see --help"), 2,
			"foldlog: unknown flag --x\nhint: see --help\n"},
		{"a closed output is quiet", fmt.Errorf("write: %w", ErrOutputClosed), 141, ""},
		{"an interrupt", fmt.Errorf("run: %w", &SignalError{"SIGINT", 2}), 130, "foldlog: run: interrupted by SIGINT\n"},
		{"joined errors stay on one line", errors.Join(errors.New("one"), errors.New("two")), 1, "foldlog: one; two\n"},
		{"a name cannot reach the terminal", errors.New("open \x1b[2J\u202e: gone"), 1,
			"foldlog: open \\x1b[2J\\u202e: gone\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			if got := Report(&out, "foldlog", tc.err, rules); got != tc.status {
				t.Errorf("status %d, want %d", got, tc.status)
			}
			if out.String() != tc.want {
				t.Errorf("printed %q, want %q", out.String(), tc.want)
			}
		})
	}
}

func TestWithHintKeepsErrors(t *testing.T) {
	if err := WithHint(nil, "hint"); err != nil {
		t.Errorf("WithHint(nil) = %v, want nil", err)
	}
	if err := WithHint(errLeased, ""); err != errLeased {
		t.Errorf("an empty hint changed the error to %v", err)
	}
	if err := WithHint(errLeased, "wait"); !errors.Is(err, errLeased) {
		t.Errorf("%v does not wrap the error it was given", err)
	}
}

func TestCauseNamesTheSignal(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := Cause(ctx, context.Canceled); err != context.Canceled {
		t.Errorf("a live context changed the error to %v", err)
	}
	cancel(&SignalError{"SIGTERM", 15})
	if err := Cause(ctx, errLeased); err != errLeased {
		t.Errorf("an unrelated error became %v", err)
	}
	var signal *SignalError
	if err := Cause(ctx, fmt.Errorf("run: %w", ctx.Err())); !errors.As(err, &signal) || signal.Number != 15 {
		t.Errorf("Cause = %v, want SIGTERM", err)
	}
}

func TestFailedSaysThePathOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"of the operating system", &fs.PathError{Op: "open", Path: "a.atj", Err: fs.ErrPermission}, "cat a.atj: permission denied"},
		{"another path stays", &fs.PathError{Op: "open", Path: "b", Err: fs.ErrPermission}, "cat a.atj: open b: permission denied"},
		{"what wraps a path stays", fmt.Errorf("head: %w", &fs.PathError{Op: "open", Path: "a.atj", Err: fs.ErrPermission}),
			"cat a.atj: head: open a.atj: permission denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := Failed("cat", "a.atj", tc.err)
			if err.Error() != tc.want || !errors.Is(err, fs.ErrPermission) {
				t.Errorf("got %q, want %q that is a permission error", err, tc.want)
			}
		})
	}
	if err := Failed("cat", "a.atj", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
