package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/datagencmd"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/metricscmd"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/session"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/studycmd"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/doctest"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/internal/studyplot"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server"
)

const repository = "../.."

// documents are the README and everything under docs.
func documents(t *testing.T) []string {
	t.Helper()
	files := []string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
	err := fs.WalkDir(os.DirFS(repository), "docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func document(t *testing.T, path string) string {
	t.Helper()
	return string(readFile(t, filepath.Join(repository, path)))
}

// TestDocumentsSayWhatHappens runs the console sessions of every document. The
// commands of each share a directory of their own, and have the Python client and the
// language of the documents.
func TestDocumentsSayWhatHappens(t *testing.T) {
	client, err := filepath.Abs(filepath.Join(repository, "clients/python"))
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GORACE=atexit_sleep_ms=0", "PYTHONPATH="+client, "PYTHONDONTWRITEBYTECODE=1",
		"LC_ALL=C", "PYTHONUTF8=1")
	for _, path := range documents(t) {
		commands := doctest.Parse(document(t, path))
		if len(commands) == 0 {
			continue
		}
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			env := env
			if path == "docs/guide/server.md" {
				env = append(env, "FOLDLOG_SERVER="+documentServer(t, dir))
			}
			for _, c := range commands {
				if err := c.Run(dir, env); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
			}
			checkPictures(t, path, dir)
		})
	}
}

// documentServer serves a root with a run in it, for a document whose sessions are those
// of a client that has a file with a search space.
func documentServer(t *testing.T, dir string) (address string) {
	t.Helper()
	root := t.TempDir()
	var run []byte
	for _, e := range []metrics.Event{
		{TSMS: 1790189597000, Kind: metrics.KindOpen, Slug: "mlp"},
		{TSMS: 1790189597015, Kind: metrics.KindMetric, Name: "loss", Step: 1, Value: metrics.Float(1)},
		{TSMS: 1790189597030, Kind: metrics.KindMetric, Name: "loss", Step: 2, Value: metrics.Float(0.5)},
	} {
		run = e.Append(run)
	}
	first, _, _ := bytes.Cut(run, []byte("\n"))
	for path, text := range map[string][]byte{
		metrics.StreamPath(root, "mlp", metrics.StreamID(first)): run,
		filepath.Join(dir, "space.yaml"):                         []byte("lr: {type: float, low: 0.001, high: 1}\n"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := server.New(server.Options{Root: root, Limits: server.Limits{Listing: longEnough}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		h.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h.URL
}

// checkPictures compares the pictures that a document shows with those that its
// sessions have made under the same names. The last digits of floats are those
// of one kind of processor.
func checkPictures(t *testing.T, path, dir string) {
	for _, m := range picture.FindAllStringSubmatch(document(t, path), -1) {
		made, err := os.ReadFile(filepath.Join(dir, filepath.Base(m[1])))
		if err != nil {
			continue // not made by a session
		}
		shown := filepath.Join(repository, filepath.Dir(path), m[1])
		if os.Getenv("FOLDLOG_BLESS") == "1" {
			if err := os.WriteFile(shown, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if runtime.GOARCH == "amd64" && string(readFile(t, shown)) != string(made) {
			t.Errorf("%s shows %s, and its commands make another picture; make guide-charts draws it again", path, m[1])
		}
	}
}

var (
	picture  = regexp.MustCompile(`!\[[^\]]*\]\(([^)\s]+)\)`)
	fence    = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile(`[^\pL\pN _-]`)
)

// prose is a document without its code.
func prose(text string) string {
	return codeSpan.ReplaceAllString(fence.ReplaceAllString(text, ""), "code")
}

// anchors are the fragments by which links name the headings of a document.
func anchors(text string) map[string]bool {
	set := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.ToLower(strings.ReplaceAll(m[1], "`", ""))
		name = unlinked.ReplaceAllString(name, "")
		set[strings.ReplaceAll(name, " ", "-")] = true
	}
	return set
}

func TestLinksInDocumentsLeadSomewhere(t *testing.T) {
	headings := map[string]map[string]bool{}
	for _, path := range documents(t) {
		text := document(t, path)
		for _, m := range link.FindAllStringSubmatch(prose(text), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(filepath.Join(repository, to)); err != nil {
				t.Errorf("%s links to %s: %v", path, m[1], err)
				continue
			}
			if anchor != "" && headings[to] == nil {
				headings[to] = anchors(document(t, to))
			}
			if anchor != "" && !headings[to][anchor] {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
	}
}

var jsonBlock = regexp.MustCompile("(?ms)^```json\n(.*?)^```$")

// journalGoldens are the lines that pages on the journal may quote.
func journalGoldens(t *testing.T) (all, ops []string) {
	t.Helper()
	for _, path := range []string{
		filepath.Join(goldenDir, "golden.atj"), filepath.Join(goldenDir, "golden.atj.d", goldenData),
		goldenOps, "../../study/testdata/operations.golden.jsonl",
	} {
		lines := slices.Collect(strings.Lines(string(readFile(t, path))))
		all = append(all, lines...)
		if filepath.Ext(path) == ".jsonl" {
			ops = append(ops, lines...)
		}
	}
	return all, ops
}

func TestLinesInJournalPagesAreInTheGoldens(t *testing.T) {
	golden, _ := journalGoldens(t)
	for _, page := range []string{"docs/format/journal.md", "docs/format/journal-operations.md"} {
		quoted := 0
		for _, m := range jsonBlock.FindAllStringSubmatch(document(t, page), -1) {
			for line := range strings.Lines(m[1]) {
				quoted++
				if !slices.Contains(golden, line) {
					t.Errorf("%s quotes a line that no golden has: %s", page, line)
				}
			}
		}
		if quoted == 0 {
			t.Errorf("%s quotes nothing", page)
		}
	}
}

// TestOperationsPageHasEveryKindAndField compares the tables of the page with
// the keys that the goldens, which have every optional field, use.
func TestOperationsPageHasEveryKindAndField(t *testing.T) {
	_, ops := journalGoldens(t)
	want := map[string][]string{}
	for _, line := range ops {
		var rec struct{ Op map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		var kind string
		if err := json.Unmarshal(rec.Op["kind"], &kind); err != nil {
			t.Fatal(err)
		}
		delete(rec.Op, "kind")
		want[kind] = slices.AppendSeq(want[kind], maps.Keys(rec.Op))
	}
	if len(want) != 22 {
		t.Errorf("the goldens have %d kinds of operation", len(want))
	}
	for kind, fields := range want {
		slices.Sort(fields)
		want[kind] = slices.Compact(fields)
	}
	got := map[string][]string{}
	for name, fields := range tables(document(t, "docs/format/journal-operations.md")) {
		if want[name] != nil {
			slices.Sort(fields)
			got[name] = fields
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds and fields (-goldens +page):\n%s", diff)
	}
}

var tableRow = regexp.MustCompile("^\\| `([a-z_]+)`")

// tables are the first column of the tables of a page, by the heading above.
func tables(text string) map[string][]string {
	found := map[string][]string{}
	name := ""
	for line := range strings.Lines(text) {
		if m := heading.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			name = m[1]
		} else if m := tableRow.FindStringSubmatch(line); m != nil {
			found[name] = append(found[name], m[1])
		}
	}
	return found
}

// jsonStructs are the structs that commands print, by their heading in the page
// on JSON output.
var jsonStructs = map[string]any{
	"Log": logkind.Summary{}, "Inspection": logkind.Inspection{}, "Writer": logkind.Writer{}, "Journal detail": logkind.JournalDetail{},
	"Lease holder": logkind.LeaseHolder{}, "Data file": logkind.DataFileCount{}, "Verification": logkind.Verification{}, "Place": logkind.Place{},
	"Study": studyview.Summary{}, "Parameter": studyview.Param{}, "States": studyview.StateCounts{}, "Best": studyview.BestTrial{},
	"Created study": studycmd.CreatedStudy{}, "Attributes": studycmd.Attrs{}, "Shown journal": studycmd.ShownJournal{}, "Shown study": studycmd.ShownStudy{},
	"Pending": studycmd.Pending{}, "Exported study": studyview.Exported{}, "Run": studycmd.RunSummary{}, "Failed trials": studycmd.FailedTrials{}, "Condition": studyview.Condition{}, "Trial": studyview.Trial{},
	"Asked trial": studycmd.AskedTrial{}, "Enqueued trial": studycmd.EnqueuedTrial{}, "Curved trial": studyview.CurvedTrial{}, "Report": studyview.Report{},
	"Shown trial": studycmd.ShownTrial{}, "Retried trial": studycmd.RetriedTrial{}, "Should-prune": studycmd.PruneVerdict{},
	"Session answer": session.Answer{}, "Session error": session.Problem{}, "Suggested value": studycmd.SuggestedValue{},
	"Importance": studyview.Importance{}, "Important parameter": studyview.ParamImportance{}, "Comparison": studyview.Comparison{}, "Compared study": studyview.ComparedStudy{},
	"Plot": studyplot.View{}, "Plotted chart": studyplot.ChartView{}, "Plot axis": studyplot.Axis{}, "Plotted series": studyplot.Series{},
	"Metrics run": metricsview.View{}, "Segment": metricsview.Segment{}, "Change": metricsview.Change{}, "Checkpoint": metricsview.Checkpoint{}, "Failure": metricsview.Failure{},
	"Stats": metricsview.Stats{}, "Curve": metricsview.Curve{}, "Series": metricsview.Series{}, "Stream detail": logkind.StreamDetail{}, "Stream check": metricscmd.Check{},
	"Finding": metricscmd.Finding{}, "Stream diff": metricscmd.Diff{}, "Diff side": metricscmd.DiffSide{}, "Final value": metricscmd.ValueDiff{}, "Pushed stream": metricscmd.Pushed{},
	"Created datagen log": datagencmd.CreatedLog{}, "Datagen run": datagencmd.RunReport{}, "Appended events": datagencmd.AppendedEvents{},
	"Datagen status": datagenview.Status{}, "Datagen states": datagenview.States{}, "Step counts": datagenview.StepCounts{},
	"Failure roll-up": datagenview.FailureRoll{}, "Datagen writer": datagenview.Writer{}, "Maintenance": datagenview.Upkeep{},
	"Listed item": datagenview.ItemLine{}, "Shown item": datagenview.Item{}, "Item field": datagenview.Field{},
	"Field value": datagenview.FieldFrom{}, "Origin": datagenview.Origin{}, "Completed step": datagenview.Step{},
	"Item failure": datagenview.Failure{}, "Item fault": datagenview.Fault{}, "Item checkpoint": datagenview.Checkpoint{},
	"Field change": datagenview.Change{}, "Item node": datagenview.Node{}, "Resume plan": datagencmd.ResumePlan{}, "Upkeep": datagencmd.Upkeep{},
	"Datagen detail": logkind.DatagenDetail{}, "Datagen answer": session.Answer{}, "Datagen problem": session.Problem{},
	"Token": tokenView{}, "Lance detail": logkind.LanceDetail{}, "Lance index": logkind.LanceIndex{}, "Lance shard": logkind.LanceShard{},
}

// jsonKeys are the keys that a struct has in JSON besides those of the structs
// in it that have a heading of their own.
func jsonKeys(typ reflect.Type) (keys []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "":
			keys = append(keys, name)
		case f.Anonymous && !hasHeading(f.Type):
			keys = append(keys, jsonKeys(f.Type)...)
		}
	}
	return keys
}

func hasHeading(typ reflect.Type) bool {
	for _, v := range jsonStructs {
		if reflect.TypeOf(v) == typ {
			return true
		}
	}
	return false
}

func TestJSONPageHasTheKeysOfTheStructs(t *testing.T) {
	page := tables(document(t, "docs/json.md"))
	want := map[string][]string{}
	for name, v := range jsonStructs {
		want[name] = jsonKeys(reflect.TypeOf(v))
	}
	if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("keys (-structs +page):\n%s", diff)
	}
}

// TestJSONPageHasTheKeysThatArePrinted is about what is printed, whatever the
// structs say.
func TestJSONPageHasTheKeysThatArePrinted(t *testing.T) {
	page := tables(document(t, "docs/json.md"))
	withGolden(t)
	for _, tc := range []struct {
		args     []string
		sections []string
	}{
		{[]string{"ls", "--json"}, []string{"Log"}},
		{[]string{"inspect", "golden.atj", "--json"}, []string{"Inspection"}},
		{[]string{"verify", "golden.atj", "--json"}, []string{"Verification"}},
		{[]string{"study", "show", "golden.atj", "--json"}, []string{"Shown journal"}},
		{[]string{"study", "show", "golden.atj", "0", "--json"}, []string{"Shown trial", "Trial", "Curved trial"}},
		{[]string{"study", "best", "golden.atj", "--json"}, []string{"Trial"}},
		{[]string{"study", "attr", "golden.atj", "--json"}, []string{"Attributes"}},
		{[]string{"study", "export", "golden.atj", "--format", "json"}, []string{"Exported study"}},
		{[]string{"study", "enqueue", "golden.atj", "lr=0.5", "--json"}, []string{"Enqueued trial", "Asked trial", "Trial"}},
		{[]string{"study", "ask", "golden.atj", "--lease", "1m", "--json"}, []string{"Asked trial", "Trial"}},
		{[]string{"study", "retry", "golden.atj", "--failed", "--json"}, []string{"Retried trial"}},
		{[]string{"study", "create", "new.atj", "--json"}, []string{"Created study"}},
	} {
		t.Run(fmt.Sprint(tc.args), func(t *testing.T) {
			var printed map[string]json.RawMessage
			if err := json.Unmarshal([]byte(mustDo(t, tc.args...)), &printed); err != nil {
				t.Fatal(err)
			}
			want := []string{}
			for _, section := range tc.sections {
				want = append(want, page[section]...)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(printed))); diff != "" {
				t.Errorf("keys (-page +printed):\n%s", diff)
			}
		})
	}
}
