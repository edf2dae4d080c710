package proctest

import (
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"testing"
	"time"
)

// inner are tests that look at their environment and end with a status.
type inner struct {
	run  func()
	code int
}

func (i inner) Run() int { i.run(); return i.code }

func TestTestsDoNotHearWhatTheirCallerSaysToFoldlog(t *testing.T) {
	t.Setenv("FOLDLOG_SERVER", "http://elsewhere")
	t.Setenv("FOLDLOG_SOAK", "3s")
	t.Setenv("AWS_PROFILE", "somebody")
	code := Run(inner{code: 7, run: func() {
		if got, ok := os.LookupEnv("FOLDLOG_SERVER"); ok {
			t.Errorf("the server is %q", got)
		}
		if got, ok := os.LookupEnv("AWS_PROFILE"); ok {
			t.Errorf("the profile is %q", got)
		}
		if got := os.Getenv("FOLDLOG_SOAK"); got != "3s" {
			t.Errorf("tests soak for %q", got)
		}
	}})
	if code != 7 {
		t.Errorf("exit status %d", code)
	}
}

func TestGoroutinesThatAreLeftAreFound(t *testing.T) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { <-stop; close(stopped) }()
	if left(time.Nanosecond) == nil {
		t.Error("a goroutine that stays is not found")
	}
	close(stop)
	<-stopped
	if err := left(leakPatience); err != nil {
		t.Error(err)
	}
}

func TestWhatTestsStartCanBeInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // there is no signal to send
	}
	signal.Ignore(os.Interrupt)
	defer signal.Reset(os.Interrupt)
	for _, c := range []struct {
		hear bool
		want string
	}{{false, "went on"}, {true, ""}} {
		if c.hear {
			hearInterrupts()
		}
		out, err := exec.Command("sh", "-c", "kill -INT $$; echo went on").Output()
		if got := strings.TrimSpace(string(out)); got != c.want || (err != nil) != c.hear {
			t.Errorf("interrupted while interrupts are heard (%v): %q, %v", c.hear, got, err)
		}
	}
}
