package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

const (
	goldenDir  = "../../journal/testdata/golden"
	goldenOps  = "../../study/testdata/golden.ops.jsonl"
	goldenData = "data-0000000000000000-00000000-0000000000000000"
)

// clock is where the clock of commands in these tests stands.
var clock = time.UnixMilli(1_700_000_000_000)

// inJournals runs one command line with the kinds of log that the program has.
func inJournals(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	env := &cli.Env{Stdout: &stdout, Stderr: &stderr, Now: func() time.Time { return clock }}
	status := execute(ctx, env, logkind.Kinds(), args)
	return result{status, stdout.String(), stderr.String()}
}

// mustDo is inJournals of a command that succeeds.
func mustDo(t *testing.T, args ...string) string {
	t.Helper()
	got := inJournals(t.Context(), args...)
	if got.status != 0 {
		t.Fatalf("%v: status %d: %s", args, got.status, got.stderr)
	}
	return got.stdout
}

// withGolden copies the golden journal into a directory of the test's own, makes
// that the working directory, and returns the lines of the virtual stream.
func withGolden(t *testing.T) (lines []string) {
	t.Helper()
	ops, err := os.ReadFile(goldenOps)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenDir)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	head, _, _ := bytes.Cut(readFile(t, "golden.atj"), []byte("\n"))
	return append([]string{string(head) + "\n"}, slices.Collect(strings.Lines(string(ops)))...)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
}

// hashTree is every file under a directory with its content.
func hashTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[path] = string(readFile(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestJournalIsPrintedByteForByte(t *testing.T) {
	lines := withGolden(t)
	before := hashTree(t, ".")
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"cat has the header and every operation", []string{"cat", "golden.atj"}, lines},
		{"cat finds the journal by its data directory", []string{"cat", "golden.atj.d"}, lines},
		{"cat --from 1 leaves the header out", []string{"cat", "golden.atj", "--from", "1"}, lines[1:]},
		{"cat --from the last", []string{"cat", "golden.atj", "--from", "27"}, lines[27:]},
		{"cat --from beyond the end", []string{"cat", "golden.atj", "--from", "28"}, nil},
		{"tail has the last ten", []string{"tail", "golden.atj"}, lines[18:]},
		{"tail -n 1", []string{"tail", "golden.atj", "-n", "1"}, lines[27:]},
		{"tail -n 0", []string{"tail", "golden.atj", "-n", "0"}, nil},
		{"tail -n more than there are", []string{"tail", "golden.atj", "-n", "1000"}, lines[1:]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(strings.Join(tc.want, ""), mustDo(t, tc.args...)); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
	if diff := cmp.Diff(before, hashTree(t, ".")); diff != "" {
		t.Errorf("reading changed files:\n%s", diff)
	}
}

func TestJournalIsInspected(t *testing.T) {
	withGolden(t)
	appendTo(t, filepath.Join("golden.atj.d", goldenData), "junk of a torn append")
	var found map[string]any
	if err := json.Unmarshal([]byte(mustDo(t, "inspect", "golden.atj", "--json")), &found); err != nil {
		t.Fatal(err)
	}
	detail := found["detail"].(map[string]any)
	delete(found, "detail")
	want := map[string]any{
		"path": "golden.atj", "kind": "study journal", "format": "v6", "state": "good", "program": "0.0.0",
		"bytes": 9715.0, "files": 2.0, "events": 27.0, "first_ms": 1000000.0, "last_ms": 1004050.0,
		"counts":  map[string]any{"studies": 1.0, "trials": 5.0},
		"writers": []any{map[string]any{"name": "0", "events": 27.0, "bytes": 4076.0, "last_ms": 1004050.0}},
		"notes":   []any{"21 unpublished bytes in " + goldenData},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("inspection (-want +got):\n%s", diff)
	}
	wantFile := []any{map[string]any{"name": goldenData, "bytes": 9512.0, "published": 9491.0, "extents": 27.0}}
	if diff := cmp.Diff(wantFile, detail["data_files"]); diff != "" {
		t.Errorf("data files (-want +got):\n%s", diff)
	}
	first := detail["studies"].([]any)[0].(map[string]any)
	wantBest := []any{map[string]any{"number": 0.0, "values": []any{0.42, 0.58}}}
	if diff := cmp.Diff(wantBest, first["best"]); diff != "" || first["name"] != "golden" || first["seed"] != "167" {
		t.Errorf("study %v", first)
	}
	text := mustDo(t, "inspect", "golden.atj")
	for _, line := range []string{"kind         study journal\n", "events       27\n", "trials       5\n", "WRITER  EVENTS     SIZE  LAST EVENT\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("inspect printed %q, want %q in it", text, line)
		}
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// flip changes one byte of a file.
func flip(t *testing.T, path string, offset int) {
	t.Helper()
	b := readFile(t, path)
	b[offset] ^= 1
	writeFile(t, path, b)
}

func TestJournalIsVerified(t *testing.T) {
	data := filepath.Join("golden.atj.d", goldenData)
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T)
		status int
		// fault, note and warning are what the first of each says; the offset
		// is that of the fault.
		fault, note, warning string
		offset               int64
		file                 string
		seq                  int64
		hint                 string
	}{
		{name: "a sound journal", damage: func(*testing.T) {}},
		{name: "unpublished bytes are information", damage: func(t *testing.T) { appendTo(t, data, "junk") },
			note: "4 unpublished bytes, which are never read"},
		{name: "a flipped byte of a payload", damage: func(t *testing.T) { flip(t, data, 9160+205+20) },
			status: 1, fault: "checksum is ", file: data, offset: 9160, seq: 27},
		{name: "a short data file", damage: func(t *testing.T) { writeFile(t, data, readFile(t, data)[:9200]) },
			status: 1, fault: "ends after the file's 9200 bytes", file: data, offset: 9160},
		{name: "a damaged head line", damage: func(t *testing.T) {
			b := readFile(t, "golden.atj")
			writeFile(t, "golden.atj", b[:len(b)-10])
		}, status: 1, fault: "the head line is torn", file: "golden.atj", offset: 90},
		{name: "a missing data file", damage: func(t *testing.T) { removeAll(t, data) },
			status: 1, fault: "the data file is missing", file: data, offset: 9160},
		{name: "a missing head", damage: func(t *testing.T) { removeAll(t, "golden.atj") },
			status: 1, fault: "the head is missing", file: "golden.atj", note: "27 sound extents lie here, up to operation 27"},
		{name: "a newer format", damage: func(t *testing.T) {
			b := bytes.Replace(readFile(t, "golden.atj"), []byte(`"format":6`), []byte(`"format":7`), 1)
			writeFile(t, "golden.atj", b)
		}, status: 1, fault: "format 7 is newer than 6", hint: "a newer version of foldlog reads it"},
		{name: "a missing path", damage: func(t *testing.T) { removeAll(t, "golden.atj"); removeAll(t, "golden.atj.d") },
			status: 1, fault: "file does not exist", hint: "check the path; foldlog ls ROOT lists the logs under a root"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withGolden(t)
			tc.damage(t)
			got := inJournals(t.Context(), "verify", "golden.atj", "--json")
			var v logkind.Verification
			if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
				t.Fatalf("%v: %s", err, got.stdout)
			}
			if got.status != tc.status || v.OK != (tc.status == 0) {
				t.Errorf("status %d, ok %v, want status %d: %s", got.status, v.OK, tc.status, got.stdout)
			}
			checkPlace(t, "warning", v.Warnings, tc.warning)
			if tc.status == 0 || tc.note != "" {
				checkPlace(t, "note", v.Notes, tc.note)
			}
			if tc.status == 0 {
				return
			}
			if len(v.Faults) == 0 {
				t.Fatalf("no fault: %s", got.stdout)
			}
			f := v.Faults[0]
			if !strings.Contains(f.What, tc.fault) || f.Hint != tc.hint || f.Seq < tc.seq {
				t.Errorf("fault %+v, want %q of operation %d with hint %q", f, tc.fault, tc.seq, tc.hint)
			}
			if tc.file != "" && (!strings.HasSuffix(f.File, tc.file) || f.Offset == nil || *f.Offset != tc.offset) {
				t.Errorf("fault in %s at %v, want %s at %d", f.File, f.Offset, tc.file, tc.offset)
			}
		})
	}
}

func checkPlace(t *testing.T, word string, places []logkind.Place, want string) {
	t.Helper()
	switch {
	case want == "" && len(places) > 0:
		t.Errorf("%s %v, want none", word, places)
	case want != "" && (len(places) == 0 || !strings.Contains(places[0].What, want)):
		t.Errorf("%s %v, want %q", word, places, want)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// writeOps makes a journal of these operations, each as it is.
func writeOps(t *testing.T, path string, ops ...string) {
	t.Helper()
	w, err := journal.Create(t.Context(), path, journal.WriterOptions{Worker: new(uint64(5)), Clock: func() time.Time { return clock }}, lines{})
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if err := w.Do(t.Context(), func(tx *journal.Tx) error { return tx.Append([]byte(op)) }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// lines is a machine that takes any operation.
type lines struct{}

func (lines) Apply(*journal.Record) error { return nil }
func (lines) Reset()                      {}
func (lines) Settle(bool)                 {}

const opCreateStudy = `{"kind":"create-study","study":0,"config":{"name":"s","directions":["Minimize"],"seed":null,"space":null,"resource_unit":null,"metric_names":null}}`

func TestJournalWithUnknownPartsIsWarnedAbout(t *testing.T) {
	t.Chdir(t.TempDir())
	writeOps(t, "a.atj",
		`{"kind":"create-study","study":0,"config":{"name":"s","directions":["Minimize"],"seed":null,"space":{"lr":1},"resource_unit":null,"metric_names":null,"colour":"red"}}`,
		`{"kind":"create-trial","study":0,"trial":0,"number":0,"x":1}`,
		`{"kind":"create-trial","study":0,"trial":1,"number":1,"x":2}`,
		`{"kind":"lifecycle-reserve","study":0,"trial":2,"number":2,"managed":true}`,
		`{"kind":"lifecycle-claim","trial":2,"from":"Waiting","worker":1,"heartbeat_millis":0,"epoch":1,"heartbeat_seq":1,"params":[{"name":"p","dist":"New","value":{"New":1}}]}`,
		`{"kind":"lifecycle-fenced","trial":2,"worker":1,"epoch":1,"mutation":{"New":1}}`,
		`{"kind":"lifecycle-terminal","trial":2,"worker":1,"epoch":1,"outcome":{"New":1},"intent":[1]}`,
		`{"kind":"put-state","scope":{"New":0},"blob":[]}`)
	want := []string{
		`1 operation has an unknown field "colour" (operation 1)`,
		`1 operation has an unknown shape of search space (operation 1)`,
		`2 operations have an unknown field "x" (first: operation 2)`,
		`1 operation has an unknown shape of distribution (operation 5)`,
		`1 operation has an unknown shape of value (operation 5)`,
		`1 operation has an unknown shape of mutation (operation 6)`,
		`1 operation has an unknown shape of outcome (operation 7)`,
		`1 operation has an unknown shape of intent (operation 7)`,
		`1 operation has an unknown shape of scope (operation 8)`,
		`1 operation has an unknown shape of state blob (operation 8)`,
	}
	var v logkind.Verification
	if err := json.Unmarshal([]byte(mustDo(t, "verify", "a.atj", "--json")), &v); err != nil {
		t.Fatal(err)
	}
	var warned []string
	for _, w := range v.Warnings {
		warned = append(warned, w.What)
	}
	if diff := cmp.Diff(want, warned); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	var found logkind.Inspection
	if err := json.Unmarshal([]byte(mustDo(t, "inspect", "a.atj", "--json")), &found); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, found.Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	for _, args := range [][]string{{"show", "a.atj", "--all"}, {"trials", "a.atj"}, {"export", "a.atj"}, {"show", "a.atj", "2", "--json"}} {
		mustDo(t, append([]string{"study"}, args...)...)
	}
}

func TestManySortsOfUnknownFieldsAreBounded(t *testing.T) {
	replay := study.NewReplay()
	for i := range 1000 {
		op := []byte(opCreateStudy)
		if i > 0 {
			op = fmt.Appendf(nil, `{"kind":"create-trial","study":0,"trial":%d,"number":%d,"field-%d":1}`, i-1, i-1, i)
		}
		if err := replay.Apply(&journal.Record{Seq: uint64(i) + 1, Op: op}); err != nil {
			t.Fatal(err)
		}
	}
	notes := replay.Notes()
	if last := notes[len(notes)-1]; len(notes) != 101 || last != "899 more unknown fields and shapes of other names" {
		t.Errorf("%d notes, the last %q", len(notes), last)
	}
	replay.Reset()
	if notes := replay.Notes(); notes != nil || replay.Snapshot().NumTrials() != 0 {
		t.Errorf("after a reset: %v", notes)
	}
}

func TestImpossibleOperationIsAFaultWithItsPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	writeOps(t, "a.atj", opCreateStudy, `{"kind":"transition","trial":3,"from":"Waiting","to":"Running"}`, `{"kind":"new-kind"}`)
	got := inJournals(t.Context(), "verify", "a.atj", "--json")
	var v logkind.Verification
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
		t.Fatal(err)
	}
	if got.status != 1 || len(v.Faults) != 1 || v.Faults[0].Seq != 2 || *v.Faults[0].Offset == 0 || !strings.Contains(v.Faults[0].What, "trial 3: not found") {
		t.Errorf("status %d, faults %+v", got.status, v.Faults)
	}
	for _, verb := range []string{"inspect", "study"} {
		args := []string{verb, "a.atj"}
		if verb == "study" {
			args = []string{verb, "show", "a.atj"}
		}
		got := inJournals(t.Context(), args...)
		if got.status != 1 || !strings.Contains(got.stderr, "operation 2 (transition)") || !strings.Contains(got.stderr, "hint: foldlog verify lists every fault") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if out := mustDo(t, "cat", "a.atj"); strings.Count(out, "\n") != 4 {
		t.Errorf("cat, which knows no operations, printed %q", out)
	}
}

func TestJournalIsCopied(t *testing.T) {
	lines := withGolden(t)
	want := strings.Join(lines, "")
	if err := os.Mkdir("backup", 0o777); err != nil {
		t.Fatal(err)
	}
	got := inJournals(t.Context(), "cp", "golden.atj", "backup")
	if got.status != 0 || !strings.HasPrefix(got.stderr, "copied 27 events, ") {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(want, mustDo(t, "cat", "backup/golden.atj")); diff != "" {
		t.Errorf("copy (-want +got):\n%s", diff)
	}
	if again := inJournals(t.Context(), "cp", "golden.atj", "backup"); again.status != 1 {
		t.Errorf("copied over a copy: %+v", again)
	}
	before := hashTree(t, "golden.atj.d")
	mustDo(t, "verify", "backup/golden.atj")
	if !maps.Equal(before, hashTree(t, "golden.atj.d")) {
		t.Error("the source changed")
	}
}

func TestDamagedJournalIsSalvaged(t *testing.T) {
	for _, tc := range []struct {
		name   string
		damage func(t *testing.T)
		ops    int
		note   string
	}{
		{"a flipped byte", func(t *testing.T) { flip(t, filepath.Join("golden.atj.d", goldenData), 3392+205+20) }, 9, "the copy ends with operation 9, 18 are lost: "},
		{"a lost head", func(t *testing.T) { removeAll(t, "golden.atj") }, 27, "the copy ends with operation 27, the last of which may never have been published: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lines := withGolden(t)
			tc.damage(t)
			refused := inJournals(t.Context(), "cp", "golden.atj", "b.atj")
			got := inJournals(t.Context(), "cp", "--salvage", "golden.atj", "c.atj")
			if got.status != 1 || !strings.Contains(got.stderr, tc.note) || !strings.Contains(got.stderr, "hint: what c.atj has is sound, and is kept") {
				t.Fatalf("%+v", got)
			}
			if tc.name == "a lost head" && (refused.status != 1 || !strings.Contains(refused.stderr, "hint: the head is never made up")) {
				t.Errorf("not refused: %+v", refused)
			}
			ops := mustDo(t, "cat", "c.atj", "--from", "1")
			if diff := cmp.Diff(strings.Join(lines[1:1+tc.ops], ""), ops); diff != "" {
				t.Errorf("salvaged (-want +got):\n%s", diff)
			}
			mustDo(t, "verify", "c.atj")
		})
	}
}

// TestAJournalDamagedFromItsFirstOperationIsNotSalvaged asks for a salvage that would
// save nothing.
func TestAJournalDamagedFromItsFirstOperationIsNotSalvaged(t *testing.T) {
	withGolden(t)
	flip(t, filepath.Join("golden.atj.d", goldenData), 100)
	got := inJournals(t.Context(), "cp", "--salvage", "golden.atj", "c.atj")
	if got.status != 1 || !strings.Contains(got.stderr, "no operation is sound before the first fault: 27 operations cannot be saved: ") ||
		!strings.Contains(got.stderr, "\nhint: nothing was copied; take a copy that was made earlier\n") {
		t.Errorf("%+v", got)
	}
	if left, err := filepath.Glob("c.atj*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if got := inJournals(t.Context(), "verify", "golden.atj"); got.status != 1 || strings.Contains(got.stderr, "--salvage") ||
		!strings.Contains(got.stderr, "hint: nothing of golden.atj is sound before its first fault") {
		t.Errorf("verify: %+v", got)
	}
}

// writeLegacy makes a journal of format 5 of the golden's operations, with a
// torn last line.
func writeLegacy(t *testing.T, path string, lines []string) {
	t.Helper()
	header := strings.Replace(lines[0], `"format":6`, `"format":5`, 1)
	writeFile(t, path, []byte(header+strings.Join(lines[1:], "")+`{"record":"op","seq":28`))
}

func TestJournalOfAnOlderFormatIsReadAsItIs(t *testing.T) {
	lines := withGolden(t)
	t.Chdir(t.TempDir())
	writeLegacy(t, "old.atj", lines)
	before := hashTree(t, ".")
	if diff := cmp.Diff(strings.Join(lines[1:], ""), mustDo(t, "cat", "old.atj", "--from", "1")); diff != "" {
		t.Errorf("cat (-want +got):\n%s", diff)
	}
	got := inJournals(t.Context(), "verify", "old.atj")
	if want := "ok      old.atj  study journal v5, 27 events"; got.status != 0 || !strings.HasPrefix(got.stdout, want) || !strings.Contains(got.stdout, "torn last line of 23 bytes") {
		t.Errorf("verify: %+v", got)
	}
	if out := mustDo(t, "ls", "."); !strings.Contains(out, "format 5, to be migrated") {
		t.Errorf("ls printed %q", out)
	}
	mustDo(t, "inspect", "old.atj")
	if out := mustDo(t, "study", "best", "old.atj", "--json"); !strings.HasPrefix(out, `{"number":0,`) {
		t.Errorf("best printed %q", out)
	}
	mustDo(t, "cp", "old.atj", "copy.atj")
	if !bytes.Equal(readFile(t, "copy.atj"), readFile(t, "old.atj")) {
		t.Error("the copy differs")
	}
	removeAll(t, "copy.atj")
	if diff := cmp.Diff(before, hashTree(t, ".")); diff != "" {
		t.Errorf("reading changed files:\n%s", diff)
	}
}

func TestLsListsJournals(t *testing.T) {
	lines := withGolden(t)
	mustDo(t, "cp", "golden.atj", "lost.atj")
	removeAll(t, "lost.atj")
	writeLegacy(t, "old.atj", lines)
	mustDo(t, "study", "migrate", "old.atj")
	writeFile(t, "notes.txt", []byte("no log\n"))
	got := inJournals(t.Context(), "ls", "--json", ".")
	var paths, states []string
	for line := range strings.Lines(got.stdout) {
		var s logkind.Summary
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		paths, states = append(paths, s.Path), append(states, s.State)
	}
	wantPaths, wantStates := []string{"golden.atj", "lost.atj", "old.atj"}, []string{"good", "unreadable", "good"}
	if diff := cmp.Diff([][]string{wantPaths, wantStates}, [][]string{paths, states}); diff != "" || got.status != 1 {
		t.Errorf("status %d, logs (-want +got):\n%s", got.status, diff)
	}
}
