package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the scripts run this test binary as foldlog.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"foldlog": func() { os.Exit(run()) },
	})
}

// TestScripts runs the command line as a user would, one session for each
// file. FOLDLOG_BLESS=1 rewrites the expected output inside them.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: os.Getenv("FOLDLOG_BLESS") != "",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
		},
	})
}
