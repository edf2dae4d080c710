package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// leakless fails tests that leave goroutines behind.
type leakless struct{ *testing.M }

func (m leakless) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// TestMain lets tests run this binary as foldlog, as linelog, which is foldlog
// with the line log as its only kind, and as holder, which stops while it holds
// a journal's lease.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){
		"foldlog": func() { os.Exit(run(logKinds())) },
		"holder":  func() { os.Exit(holdLease(os.Args[1])) },
		"linelog": func() { os.Exit(run([]logKind{lineKind{}})) },
	})
}

// TestScripts runs the command line as a user would, one session for each
// file. FOLDLOG_BLESS=1 rewrites the expected output inside them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("FOLDLOG_BLESS") != "",
		Setup: func(env *testscript.Env) error {
			// Under the race detector every process would sleep at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}
