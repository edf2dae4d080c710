package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
)

func TestNotesObeyQuietAndVerbose(t *testing.T) {
	for _, tc := range []struct {
		name           string
		quiet, verbose bool
		want           string
	}{
		{"by default notes only", false, false, "note a\\x1b\n"},
		{"quiet is silent", true, false, ""},
		{"verbose adds details", false, true, "note a\\x1b\ndetail\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			env := &Env{Stderr: &out, Quiet: tc.quiet, Verbose: tc.verbose}
			env.Notef("note %s", "a\x1b")
			env.Debugf("detail")
			if out.String() != tc.want {
				t.Errorf("printed %q, want %q", out.String(), tc.want)
			}
		})
	}
}

func TestColor(t *testing.T) {
	for _, tc := range []struct {
		name     string
		terminal bool
		vars     map[string]string
		want     bool
	}{
		{"a terminal has it", true, nil, true},
		{"a file has not", false, nil, false},
		{"NO_COLOR forbids it", true, map[string]string{"NO_COLOR": "1"}, false},
		{"an empty NO_COLOR does not", true, map[string]string{"NO_COLOR": ""}, true},
		{"a dumb terminal has not", true, map[string]string{"TERM": "dumb"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := &Env{
				Terminal: func(any) bool { return tc.terminal },
				Getenv:   func(name string) string { return tc.vars[name] },
			}
			if got := env.Color(); got != tc.want {
				t.Errorf("Color() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestABufferIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	env := &Env{Stdout: &out, Stderr: &out}
	if env.IsTerminal(env.Stdout) || env.Color() {
		t.Error("a buffer passed for a terminal")
	}
}

func TestZeroEnvIsUsable(t *testing.T) {
	var env Env
	env.Notef("nowhere to go")
	if env.Var("HOME") != "" || env.Time().IsZero() {
		t.Error("the zero environment has a variable or no clock")
	}
	if _, err := env.Out().Write([]byte("x")); err != nil {
		t.Errorf("write results: %v", err)
	}
}

func TestProgressShowsOnATerminalOnly(t *testing.T) {
	for _, tc := range []struct {
		name            string
		terminal, quiet bool
		want            bool
	}{
		{"on a terminal", true, false, true},
		{"not in a file", false, false, false},
		{"not when quiet", true, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			env := &Env{Stderr: &out, Quiet: tc.quiet, Terminal: func(any) bool { return tc.terminal }}
			bar := env.NewProgress("copy\x1b", Bytes)
			var workers sync.WaitGroup
			for range 4 {
				workers.Go(func() { bar.Set(512, 1024) })
			}
			workers.Wait()
			bar.Set(1024, 1024)
			bar.Close()
			bar.Close()
			bar.Set(1, 2)
			if got := strings.Contains(out.String(), `copy\x1b`); got != tc.want {
				t.Errorf("shown %v, want %v: %q", got, tc.want, out.String())
			}
		})
	}
}

func TestAClosedPipeHasItsOwnError(t *testing.T) {
	CatchClosedPipe()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	if _, err := (&output{file: w}).Write([]byte("x")); !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v, want %v", err, ErrOutputClosed)
	}
}
