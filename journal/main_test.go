package journal

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// helperEnv names the role that this test binary plays when a test runs it as a
// process of its own.
const helperEnv = "FOLDLOG_JOURNAL_HELPER"

// helpers are the roles. What a helper returns is its process's exit.
var helpers = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	if role := os.Getenv(helperEnv); role != "" {
		if err := helpers[role](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, role+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
