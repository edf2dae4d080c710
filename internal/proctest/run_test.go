package proctest

import (
	"os"
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
	code := Run(inner{code: 7, run: func() {
		if got, ok := os.LookupEnv("FOLDLOG_SERVER"); ok {
			t.Errorf("the server is %q", got)
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
