package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/server"
)

// longEnough is for how long tests wait for what takes a moment unless the machine is busy.
const longEnough = 5 * time.Minute

// serveScript serves the directory served of a script, at FOLDLOG_SERVER.
func serveScript(env *testscript.Env) error {
	root := filepath.Join(env.WorkDir, "served")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	s, err := server.New(server.Options{Root: root, Limits: server.Limits{Listing: longEnough}})
	if err != nil {
		return err
	}
	h := httptest.NewServer(s.Handler())
	env.Setenv("FOLDLOG_SERVER", h.URL)
	env.Defer(func() {
		h.Close()
		if err := s.Close(); err != nil {
			panic(err)
		}
	})
	return nil
}

// alone is the tests, which end the S3 server; Run of proctest runs them.
type alone struct{ *testing.M }

func (m alone) Run() int { return proctest.Run(stopping(m)) }

type stopping struct{ *testing.M }

func (m stopping) Run() int {
	defer s3test.Stop()
	return m.M.Run()
}

// TestMain lets tests run this binary as foldlog, as linelog, which is foldlog
// with the line log as its only kind, and as holder, which stops while it holds
// a journal's lease.
func TestMain(m *testing.M) {
	testscript.Main(alone{m}, map[string]func(){
		"foldlog": func() { os.Exit(run(logkind.Kinds())) },
		"holder":  func() { os.Exit(holdLease(os.Args[1])) },
		"linelog": func() { os.Exit(run([]logkind.Kind{lineKind{}})) },
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
			if strings.HasPrefix(filepath.Base(env.WorkDir), "script-remote") {
				return serveScript(env)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}
