package logkind

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/metricsview"
)

// shortRun is a stream of one process and one event.
const shortRun = `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":2,"step":1,"kind":"metric","name":"loss","value":"NaN","metadata":{}}
`

func TestContentThatIsNoStreamIsNotClaimed(t *testing.T) {
	for name, text := range map[string]string{
		"empty":          "",
		"other lines":    "{\"kind\":\"open\",\"file\":\"x\"}\n{\"a\":1}\n",
		"wandb":          "{\"_step\":1,\"loss\":0.5,\"_timestamp\":1700000000}\n",
		"a study header": "{\"record\":\"header\",\"format\":6}\n",
		"text":           "words\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.jsonl")
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			c, err := Examine(path)
			if err != nil {
				t.Fatal(err)
			}
			if log, err := (metricsKind{}).Identify(c); log != "" || err != nil {
				t.Errorf("claimed %q, %v", log, err)
			}
		})
	}
}

func TestAStreamIsKnownByItsBeginning(t *testing.T) {
	open := `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{"sources":"` + strings.Repeat("x", 3*startSize) + `"}}` + "\n"
	for name, text := range map[string]string{
		"a long open":        open,
		"a torn open":        open[:40],
		"an event":           shortRun,
		"rubbish, then that": "rubbish\n" + shortRun,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.log")
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			c, err := Examine(path)
			if err != nil {
				t.Fatal(err)
			}
			if log, err := (metricsKind{}).Identify(c); log != path || err != nil {
				t.Errorf("claimed %q, %v", log, err)
			}
		})
	}
}

// TestAFileCutAtEveryByteShowsWhatIsComplete cuts the last three lines.
func TestAFileCutAtEveryByteShowsWhatIsComplete(t *testing.T) {
	lines := strings.SplitAfter(shortRun+`{"ts_ms":3,"step":2,"kind":"metric","name":"loss","value":0.5,"metadata":{}}
{"ts_ms":4,"kind":"done","slug":"r"}
`, "\n")
	whole := strings.Join(lines, "")
	path := filepath.Join(t.TempDir(), "r.jsonl")
	for cut := len(lines[0]); cut <= len(whole); cut++ {
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o666); err != nil {
			t.Fatal(err)
		}
		run := runAt(t, path)
		events := int64(strings.Count(whole[:cut], "\n"))
		torn := int64(cut - strings.LastIndexByte(whole[:cut], '\n') - 1)
		if run.Fold.Events != events || run.Torn != torn || run.Bad != 0 {
			t.Errorf("cut at %d: %d events of %d, %d torn bytes of %d, %d bad lines", cut, run.Fold.Events, events, run.Torn, torn, run.Bad)
		}
		v, err := metricsKind{}.Verify(t.Context(), path, VerifyOptions{})
		if err != nil || len(v.Faults) > 0 || (len(v.Notes) == 1) != (torn > 0) {
			t.Errorf("cut at %d: %v, %v, %v", cut, err, v.Faults, v.Notes)
		}
	}
}

func runAt(t *testing.T, path string) *metricsview.Run {
	t.Helper()
	run, err := World{}.ReadRun(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestAFileThatCannotBeReadIsLeftToItsReader(t *testing.T) {
	if isNoStream(nil, fs.ErrPermission) {
		t.Error("a file that cannot be read is passed over in silence")
	}
	if !isNoStream(nil, fs.ErrNotExist) || !isNoStream([]byte("{}\n"), nil) {
		t.Error("what has gone, or is another file, is taken for a stream")
	}
}
