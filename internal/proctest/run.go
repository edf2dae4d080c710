package proctest

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"go.uber.org/goleak"
)

// told are the variables, or their beginnings, that tests are told things by.
var told = []string{"FOLDLOG_BENCH_", "FOLDLOG_BLESS", "FOLDLOG_SEED", "FOLDLOG_SOAK", "FOLDLOG_PYTHON", "FOLDLOG_VERSITYGW"}

// leakPatience is how long goroutines may take to end after the tests.
const leakPatience = time.Minute

// Alone takes the variables of the caller's environment away that commands and stores
// would heed, such as a server or the credentials of a cloud: FOLDLOG_ and AWS_. Roles
// come before it.
func Alone() {
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		ours := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if (ours("FOLDLOG_") || ours("AWS_")) && !slices.ContainsFunc(told, ours) {
			os.Unsetenv(name)
		}
	}
}

// Run runs the tests of a package by themselves, [Alone], with interrupts that reach the
// processes that they start, and failing if goroutines are left at the end. It returns the
// exit status. Roles come before it.
func Run(m interface{ Run() int }) int {
	hearInterrupts()
	Alone()
	code := m.Run()
	if code != 0 {
		return code
	}
	if err := left(leakPatience); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hearInterrupts lets processes that tests start be interrupted where this one was started
// to ignore that, as a shell without job control does with what it runs in the background:
// a process inherits what is ignored, and not what is caught.
func hearInterrupts() {
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
}

// left waits until the goroutines of tests have ended, which takes them a moment where
// the machine is busy.
func left(patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		if err := goleak.Find(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
