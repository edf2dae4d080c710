package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// logSite is a server over one log of each kind.
func logSite(t *testing.T, opts Options) *site {
	t.Helper()
	opts.Root = t.TempDir()
	ctx := context.Background()
	text := stream("run 1", 3)
	for name, text := range map[string]string{
		"m/run.jsonl": text, "m/secret.jsonl": "{\"password\":1}\n", "secret.txt": "x", "tbl.lance/secret.txt": "x", "m/.hidden.jsonl": text,
		"runs/run%201/" + metrics.StreamID([]byte(firstLine(text))) + ".jsonl": text,
	} {
		path := filepath.Join(opts.Root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	j, err := study.CreateJournal(ctx, filepath.Join(opts.Root, "m", "s.atj"), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := study.OpenOrCreate(ctx, j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := datagen.OpenRoot(opts.Root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datagen.Create(ctx, store, "digits", "v1", datagen.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(opts.Root, "m", "table"), os.DirFS(filepath.Join(opts.Root, filepath.FromSlash(datagen.Path("digits", "v1"))))); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, opts)
	s.eventually("the streams are read", func() bool { return len(s.store.Paths()) == 2 && s.index.pending() == 0 })
	return s
}

func (s *site) logs(under string) (paths []string) {
	s.t.Helper()
	a := s.do("GET", "/api/v1/logs?under="+url.QueryEscape(under), nil)
	if a.status != 200 {
		s.t.Fatalf("logs: %d %s", a.status, a.body)
	}
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
	for i, line := range lines {
		var it wire.LogItem
		if err := json.Unmarshal([]byte(line), &it); err != nil {
			s.t.Fatal(err)
		}
		if it.End != (i == len(lines)-1) {
			s.t.Errorf("line %d of %d: %s", i+1, len(lines), line)
		}
		if !it.End {
			paths = append(paths, it.Kind+" "+it.Path)
		}
	}
	return paths
}

func TestTheListOfLogsHasEveryKind(t *testing.T) {
	s := logSite(t, Options{})
	sent := "metrics stream runs/run%201/" + metrics.StreamID([]byte(firstLine(stream("run 1", 3)))) + ".jsonl"
	log := "datagen log " + datagen.Path("digits", "v1")
	for under, want := range map[string][]string{
		"":  {log, "metrics stream m/run.jsonl", "study journal m/s.atj", "lance dataset m/table", sent},
		"m": {"metrics stream m/run.jsonl", "study journal m/s.atj", "lance dataset m/table"}, "m/": {"metrics stream m/run.jsonl", "study journal m/s.atj", "lance dataset m/table"},
		"m/run.jsonl": {"metrics stream m/run.jsonl"}, "m/s.atj": {"study journal m/s.atj"}, "m/s.atj.d": {"study journal m/s.atj"},
		"m/table/_versions": {"lance dataset m/table"}, datagen.Path("digits", "v1"): {log}, "runs/run 1": {sent},
		"m/s": nil, "m/secret.jsonl": nil, "../m": nil, "runs/..": nil, ".foldlog": nil, "nothing": nil, "runs/run 2": nil, "studies/none": nil, "datagen/none": nil,
	} {
		t.Run(under, func(t *testing.T) {
			if diff := cmp.Diff(want, s.logs(under)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAPageIsTheAddressOfItsLog(t *testing.T) {
	s := logSite(t, Options{})
	var studies wire.StudyPage
	s.eventually("the study is there", func() bool {
		s.get("/api/v1/studies", &studies)
		return len(studies.Items) == 1
	})
	for _, below := range []string{"", "/trials/3"} {
		if got := s.logs("studies/" + studies.Items[0].ID + below); !cmp.Equal(got, []string{"study journal m/s.atj"}) {
			t.Error(below, got)
		}
	}
	for _, below := range []string{"", "/items/a/b"} {
		if got := s.logs("datagen/" + s.experimentID() + below); !cmp.Equal(got, []string{"datagen log " + datagen.Path("digits", "v1")}) {
			t.Error(below, got)
		}
	}
}

func TestOnlyFilesOfLogsAreServed(t *testing.T) {
	s := logSite(t, Options{})
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	if err := os.WriteFile(outside, []byte(stream("out", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"m/link.jsonl": outside, "m/s.atj.d/link": outside, "m/inside.jsonl": "run.jsonl"} {
		if err := os.Symlink(to, filepath.Join(s.root, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	for name, ok := range map[string]bool{
		"m/run.jsonl": true, "m/s.atj": true, "m/table/_versions": false, datagen.Path("digits", "v1"): false,
		"m/secret.jsonl": false, "secret.txt": false, "tbl.lance/secret.txt": false, "m/.hidden.jsonl": false, ".foldlog/lock": false, "m": false, "": false,
		"../m/run.jsonl": false, "m/../m/run.jsonl": false, "/m/run.jsonl": false, "m//run.jsonl": false, "m\\run.jsonl": false, "m/run.jsonl\x00": false,
		"m/link.jsonl": false, "m/s.atj.d/link": false, "m/inside.jsonl": false, "m/s.atj.d/lease": false,
	} {
		a := s.do("GET", "/api/v1/files?path="+url.QueryEscape(name), nil)
		if want := map[bool]int{true: 200, false: 404}[ok]; a.status != want {
			t.Errorf("%q: %d, want %d", name, a.status, want)
		}
		if ok && string(a.body) != s.content(filepath.Join(s.root, filepath.FromSlash(name))) {
			t.Errorf("%q: other bytes", name)
		}
	}
	for name, ok := range map[string]bool{
		"m/s.atj.d": true, "m/s.atj.d/lease": true, "m/table": true, "m/table/_versions": true, "m/table/_versions/": true,
		"m": false, "": false, ".": false, "..": false, "m/s.atj.d/..": false, ".foldlog": false, "tbl.lance": false, "m/run.jsonl": false,
	} {
		a := s.do("GET", "/api/v1/files?list="+url.QueryEscape(name), nil)
		if listed := a.status == 200; listed != ok {
			t.Errorf("list of %q: %d", name, a.status)
		}
	}
}

func TestPartsOfAFileAreServed(t *testing.T) {
	s := logSite(t, Options{})
	text := stream("run 1", 3)
	a := s.do("GET", "/api/v1/files?path=m/run.jsonl", nil, func(r *http.Request) { r.Header.Set("Range", "bytes=5-9") })
	if a.status != 206 || string(a.body) != text[5:10] {
		t.Errorf("%d %q", a.status, a.body)
	}
	if a := s.do("HEAD", "/api/v1/files?path=m/run.jsonl", nil); a.status != 200 || a.header.Get(modifiedHeader) == "" {
		t.Errorf("%d %v", a.status, a.header)
	}
}

func TestFilesAndListsNeedATokenThatMayRead(t *testing.T) {
	tokens := newTokens(t)
	_, read := add(t, tokens, ScopeRead)
	_, write := add(t, tokens, ScopeWrite)
	s := logSite(t, Options{Tokens: tokens})
	for _, path := range []string{"/api/v1/logs", "/api/v1/files?path=m/run.jsonl", "/api/v1/files?list=m/s.atj.d"} {
		for token, want := range map[string]int{"": 401, write: 403, read: 200} {
			s.token = token
			if a := s.do("GET", path, nil); a.status != want {
				t.Errorf("%s: %d, want %d", path, a.status, want)
			}
		}
	}
}
