package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (r result) check(t *testing.T, want result) {
	t.Helper()
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestLs(t *testing.T) {
	files := map[string]string{
		"a/one.log":        "lines\n1\n",
		"a/one.log.d/data": "lines\nnot a log of its own\n",
		"b/two.log":        "lines\n1\n2\n",
		"b/notes.txt":      "nothing",
	}
	t.Run("finds every log once and leaves its parts alone", func(t *testing.T) {
		foldlog(t, t.Context(), files, "ls").check(t, result{stdout: "" +
			"LOG        KIND      STATE     SIZE  CHANGED   HOLDS\n" +
			"a/one.log  line log  good   2.0 KiB  2m0s ago  1 event\n" +
			"b/two.log  line log  good   2.0 KiB  2m0s ago  2 events\n"})
	})
	t.Run("prints a line of JSON for each", func(t *testing.T) {
		foldlog(t, t.Context(), files, "ls", "--json", "b").check(t, result{stdout: "" +
			`{"path":"b/two.log","kind":"line log","state":"good","bytes":2048,"modified_ms":1000000,"detail":"2 events"}` + "\n"})
	})
	t.Run("accepts a log as its root", func(t *testing.T) {
		got := foldlog(t, t.Context(), files, "ls", "--json", "b/two.log")
		if got.status != 0 || strings.Count(got.stdout, "\n") != 1 {
			t.Errorf("got %+v, want the one log", got)
		}
	})
	t.Run("lists a log whose head is lost, and fails", func(t *testing.T) {
		got := foldlog(t, t.Context(), map[string]string{"lost.log.d/data": "x", "z.log": "lines\n"}, "ls")
		if got.status != 1 || !strings.Contains(got.stdout, "lost.log  line log  unreadable") {
			t.Errorf("got %+v, want status 1 and the lost log", got)
		}
		if !strings.Contains(got.stdout, "z.log") || got.stderr != "foldlog: ls .: 1 could not be read\n" {
			t.Errorf("got %+v, want the other log too and one error", got)
		}
	})
}

func TestLsDoesNotFollowLinksInCircles(t *testing.T) {
	foldlog(t, t.Context(), map[string]string{"a/one.log": "lines\n1\n"}, "ls")
	if err := os.Symlink("..", "a/up"); err != nil {
		t.Fatal(err)
	}
	if got := here(t.Context(), "ls", "--json"); got.status != 0 || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("got %+v, want the one log once", got)
	}
}

func TestInspect(t *testing.T) {
	files := map[string]string{"a.log": "lines\n1\n2\n"}
	t.Run("for people", func(t *testing.T) {
		foldlog(t, t.Context(), files, "inspect", "a.log").check(t, result{stdout: "" +
			"path         a.log\n" +
			"kind         line log\n" +
			"format       v1\n" +
			"state        good\n" +
			"size         2.0 KiB in 1 file\n" +
			"events       2\n" +
			"first event  1970-01-01 00:16:40.000Z (2m0s ago)\n" +
			"last event   1970-01-01 00:17:40.000Z (1m0s ago)\n" +
			"studies      1\n" +
			"trials       1,200\n" +
			"note         12 unpublished bytes\n" +
			"\n" +
			"WRITER  EVENTS  SIZE  LAST EVENT\n" +
			"7\\x1b        2  10 B  1970-01-01 00:17:40.000Z (1m0s ago)\n"})
	})
	t.Run("for programs", func(t *testing.T) {
		got := foldlog(t, t.Context(), files, "inspect", "--json", "a.log")
		var found logkind.Inspection
		if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
			t.Fatalf("read %q: %v", got.stdout, err)
		}
		if found.Kind != "line log" || found.Events != 2 || found.Writers[0].Name != "7\x1b" {
			t.Errorf("got %+v", found)
		}
	})
	t.Run("a part names its log", func(t *testing.T) {
		got := foldlog(t, t.Context(), map[string]string{"a.log": "lines\n", "a.log.d/data": ""}, "inspect", "a.log.d")
		if got.status != 0 || !strings.HasPrefix(got.stdout, "path         a.log\n") {
			t.Errorf("got %+v, want the log a.log", got)
		}
	})
	t.Run("other content is refused with the known kinds", func(t *testing.T) {
		foldlog(t, t.Context(), map[string]string{"a.log": "other"}, "inspect", "a.log").check(t, result{
			status: 1,
			stderr: "foldlog: inspect a.log: not a log of a known kind\n" +
				"hint: the kind is told by content; known are: line log\n"})
	})
}

func TestVerify(t *testing.T) {
	files := map[string]string{"good.log": "lines\n1\nodd\n", "bad.log": "lines\n1\nbad\n3\nbad\n"}
	t.Run("is quiet about a good log", func(t *testing.T) {
		foldlog(t, t.Context(), files, "verify", "good.log").check(t, result{stdout: "" +
			"ok      good.log  line log v1, 2 events, 12 B\n" +
			"  warning: good.log seq 2: odd line\n"})
	})
	t.Run("names every fault of every log, also after a missing one", func(t *testing.T) {
		foldlog(t, t.Context(), files, "verify", "gone.log", "bad.log", "good.log").check(t, result{
			status: 1,
			stdout: "" +
				"faulty  gone.log\n" +
				"  fault: gone.log: file does not exist\n" +
				"  hint: check the path; foldlog ls ROOT lists the logs under a root\n" +
				"faulty  bad.log  line log v1, 4 events, 18 B\n" +
				"  fault: bad.log offset 8 seq 2: bad line\n" +
				"  fault: bad.log offset 14 seq 4: bad line\n" +
				"ok      good.log  line log v1, 2 events, 12 B\n" +
				"  warning: good.log seq 2: odd line\n",
			stderr: "foldlog: verify: 2 of 3 logs faulty\nhint: foldlog cp --salvage bad.log DEST copies what is sound\n"})
	})
	t.Run("prints a line of JSON for each", func(t *testing.T) {
		foldlog(t, t.Context(), files, "verify", "--json", "bad.log").check(t, result{
			status: 1,
			stdout: `{"path":"bad.log","kind":"line log","format":"v1","ok":false,"events":4,"bytes":18,` +
				`"faults":[{"file":"bad.log","offset":8,"seq":2,"what":"bad line"},` +
				`{"file":"bad.log","offset":14,"seq":4,"what":"bad line"}],"warnings":[],"notes":[]}` + "\n",
			stderr: "foldlog: verify: 1 of 1 log faulty\nhint: foldlog cp --salvage bad.log DEST copies what is sound\n"})
	})
	t.Run("stops when interrupted", func(t *testing.T) {
		foldlog(t, interrupted(t), files, "verify", "good.log", "bad.log").check(t, result{
			status: 130, stderr: "foldlog: interrupted by SIGINT\n"})
	})
}

func TestCat(t *testing.T) {
	files := map[string]string{"a.log": "lines\n1\n2\n3\n", "bad.log": "lines\n1\nbad\n3\n"}
	t.Run("prints the whole log", func(t *testing.T) {
		foldlog(t, t.Context(), files, "cat", "a.log").check(t, result{stdout: "lines\n1\n2\n3\n"})
	})
	t.Run("begins with an event and leaves the header out", func(t *testing.T) {
		foldlog(t, t.Context(), files, "cat", "a.log", "--from", "2").check(t, result{stdout: "2\n3\n"})
	})
	t.Run("prints what is before a fault", func(t *testing.T) {
		foldlog(t, t.Context(), files, "cat", "bad.log").check(t, result{
			status: 1, stdout: "lines\n1\n", stderr: "foldlog: cat bad.log: bad line\n"})
	})
}

func TestTail(t *testing.T) {
	files := map[string]string{"a.log": "lines\n1\n2\n3\n"}
	t.Run("prints the last events", func(t *testing.T) {
		foldlog(t, t.Context(), files, "tail", "a.log", "-n", "2").check(t, result{stdout: "2\n3\n"})
	})
	t.Run("an interrupt ends following well", func(t *testing.T) {
		foldlog(t, interrupted(t), files, "tail", "-f", "a.log").check(t, result{stdout: "1\n2\n3\n"})
	})
}

func TestCp(t *testing.T) {
	files := map[string]string{"a.log": "lines\n1\n2\n", "bad.log": "lines\n1\nbad\n3\n", "dir/other": "", "taken": "x"}
	for _, tc := range []struct {
		name string
		args []string
		want result
		copy string // where the copy is
		body string // what it holds, "" if there is none
	}{
		{"to a new path", []string{"a.log", "b.log"},
			result{stderr: "copied 2 events, 10 B, to b.log\n"}, "b.log", "lines\n1\n2\n"},
		{"into a directory", []string{"--quiet", "a.log", "dir"},
			result{}, "dir/a.log", "lines\n1\n2\n"},
		{"a copy never overwrites", []string{"a.log", "taken"},
			result{1, "", "foldlog: cp a.log: create taken: file already exists\nhint: a copy never overwrites; give a path that does not exist\n"},
			"taken", "x"},
		{"a damaged log is refused", []string{"bad.log", "b.log"},
			result{1, "", "foldlog: cp bad.log: bad line\n"}, "b.log", ""},
		{"salvage copies up to the fault", []string{"--salvage", "bad.log", "b.log"},
			result{1, "", "copied 1 event, 8 B, to b.log\nfoldlog: cp bad.log: bad line\n"}, "b.log", "lines\n1\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			foldlog(t, t.Context(), files, append([]string{"cp"}, tc.args...)...).check(t, tc.want)
			body, err := os.ReadFile(tc.copy)
			if string(body) != tc.body || (err == nil) != (tc.body != "") {
				t.Errorf("%s holds %q (%v), want %q", tc.copy, body, err, tc.body)
			}
		})
	}
}

// interrupted is the context after Ctrl-C.
func interrupted(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&cli.SignalError{Name: "SIGINT", Number: 2})
	return ctx
}
