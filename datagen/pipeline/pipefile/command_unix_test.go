//go:build unix

package pipefile

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// perform runs a shell line as a step of an item.
func perform(t *testing.T, ctx context.Context, c *command, call *pipeline.Call) ([]byte, error) {
	t.Helper()
	dir := t.TempDir()
	in, err := c.input(ctx, call, nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	return c.execute(ctx, call, dir, in)
}

func TestACommandGetsTheItemAndTheStep(t *testing.T) {
	it := item(datagen.Set("n", datagen.IntValue(7)), datagen.Append("l", datagen.StrValue("x")), datagen.Append("l", datagen.StrValue("y")))
	round := int64(3)
	call := &pipeline.Call{State: pipeline.State{Item: it, Iteration: 3}, Try: 2,
		Step: datagen.Step{Name: "s", Instance: "loop#3/s", Iteration: &round}}
	c := &command{args: []string{"sh", "-c", `cat; echo "$FOLDLOG_ITEM $FOLDLOG_STEP $FOLDLOG_INSTANCE $FOLDLOG_ATTEMPT $FOLDLOG_ITERATION $EXTRA"`}, env: []string{"EXTRA=e"}}
	out, err := perform(t, t.Context(), c, call)
	want := `{"item":"a","root":"a","status":"running","fields":{"n":7,"l":["x","y"]},"step":"s","instance":"loop#3/s","attempt":2,"iteration":3}` +
		"\na s loop#3/s 2 3 e\n"
	if err != nil || string(out) != want {
		t.Errorf("%v: got %s\nwant %s", err, out, want)
	}
}

// TestWhatACommandLeavesRunningIsNotItsTimeout leaves a process that holds the output, or
// an input that is more than a pipe takes and that nobody reads.
func TestWhatACommandLeavesRunningIsNotItsTimeout(t *testing.T) {
	long := item(datagen.Set("text", datagen.StrValue(strings.Repeat("x", 1<<20))))
	call := &pipeline.Call{State: pipeline.State{Item: long, Iteration: -1}, Try: 1}
	for _, script := range []string{
		`sleep 600 & echo '{"n":1}'`,
		`exec 3<&0; sleep 600 <&3 >/dev/null 2>&1 & echo '{"n":1}'`,
	} {
		c := &command{args: []string{"sh", "-c", script}, timeout: time.Minute}
		if out, err := perform(t, t.Context(), c, call); err != nil || string(out) != "{\"n\":1}\n" {
			t.Errorf("%s: %q, %v", script, out, err)
		}
	}
}

func TestABlobIsARegularFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pipe", ".", "/dev/zero"} {
		_, _, err := Changes([]byte(`{"b":{"$blob":"`+path+`"}}`), dir)
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestHowACommandFailed(t *testing.T) {
	call := &pipeline.Call{State: pipeline.State{Item: item(), Iteration: -1}, Try: 1}
	for script, want := range map[string]string{
		"echo one >&2; echo two >&2; exit 3": "exit status 3: two",
		"kill -9 $$":                         "signal: killed",
		"sleep 60":                           "timeout: it took longer than 100ms",
	} {
		c := &command{args: []string{"sh", "-c", script}}
		if strings.HasPrefix(script, "sleep") {
			c.timeout = 1e8
		}
		_, err := perform(t, t.Context(), c, call)
		var e *CommandError
		if !errors.As(err, &e) || err.Error() != want || e.Failure().Type != e.Kind || !json.Valid(e.Failure().Dump) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	c := &command{args: []string{"/no/such/program"}}
	if _, err := perform(t, t.Context(), c, call); err == nil || !strings.HasPrefix(err.Error(), "start: ") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = &command{args: []string{"sh", "-c", "sleep 60"}}
	if _, err := perform(t, ctx, c, call); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
