package journal

import (
	"os"
	"testing"

	"github.com/foldlog/foldlog/internal/proctest"
)

// helperEnv names the role that this test binary plays when a test runs it as a
// process of its own.
const helperEnv = "FOLDLOG_JOURNAL_HELPER"

// helpers are the roles. What a helper returns is its process's exit.
var helpers = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	proctest.Role(helperEnv, func(role string) error { return helpers[role](os.Args[1:]) })
	os.Exit(proctest.Run(m))
}
