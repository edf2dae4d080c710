package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/metricscmd"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
)

const pushedRun = `{"ts_ms":1,"kind":"open","slug":"r","description":"","metadata":{}}
{"ts_ms":2,"step":1,"kind":"metric","name":"loss","value":"NaN","metadata":{}}
`

// with runs a command line with standard input and an environment.
func with(stdin string, vars map[string]string, args ...string) result {
	var stdout, stderr bytes.Buffer
	env := &cli.Env{Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string { return vars[name] }}
	status := execute(context.Background(), env, logkind.Kinds(), args)
	return result{status, stdout.String(), stderr.String()}
}

func TestPushSendsEachByteOnce(t *testing.T) {
	t.Chdir(t.TempDir())
	server := streamtest.New("secret", func(n int) streamtest.Fault { return streamtest.Fault{Half: n == 2} })
	defer server.Close()
	vars := map[string]string{"FOLDLOG_SERVER": server.URL, "FOLDLOG_TOKEN": "secret"}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile("r.jsonl", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	push := func() metricscmd.Pushed {
		t.Helper()
		got := with("", vars, "metrics", "push", "r.jsonl", "--json")
		var v metricscmd.Pushed
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.status != 0 {
			t.Fatalf("%v, status %d: %s", err, got.status, got.stderr)
		}
		return v
	}
	write(pushedRun + `{"ts_ms":3`)
	if v := push(); v.Slug != "r" || v.Total != int64(len(pushedRun)) || v.TornBytes != 10 || v.Page != server.URL+"/runs/r" {
		t.Errorf("first %+v", v)
	}
	if v := push(); v.Events != 0 || v.Bytes != 0 {
		t.Errorf("again %+v", v)
	}
	more := pushedRun + `{"ts_ms":3,"kind":"done","slug":"r"}` + "\n"
	write(more)
	v := push()
	if v.Events != 1 || string(server.Stream("r", v.Stream)) != more {
		t.Errorf("grown %+v", v)
	}
}

func TestPushSaysWhatAServerHolds(t *testing.T) {
	t.Chdir(t.TempDir())
	server := streamtest.New("secret", nil)
	defer server.Close()
	for name, text := range map[string]string{"a.jsonl": pushedRun, "b.jsonl": strings.ReplaceAll(pushedRun, `"r"`, `"b"`), "notes.jsonl": "{}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got := with("", map[string]string{"FOLDLOG_TOKEN": "secret"}, "metrics", "push", ".", "--to", server.URL)
	if got.status != 0 || strings.Count(got.stdout, "2 events") != 2 || len(server.Streams()) != 2 {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	got = with("", nil, "metrics", "push", "a.jsonl", "--to", server.URL)
	if got.status != 1 || !strings.Contains(got.stderr, "not authorised") || !strings.Contains(got.stderr, "hint: FOLDLOG_TOKEN") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	got = with("", nil, "metrics", "push", "notes.jsonl", "a.jsonl", "--to", server.URL)
	if got.status != 1 || !strings.Contains(got.stderr, "2 of 2 streams failed") || !strings.Contains(got.stderr, "missing field: no open") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	for _, args := range [][]string{{"a.jsonl"}, {"a.jsonl", "--to", "jsonl:x"}, {"a.jsonl", "--to", "host"}} {
		if got := with("", nil, append([]string{"metrics", "push"}, args...)...); got.status != 2 {
			t.Errorf("%v: status %d: %s", args, got.status, got.stderr)
		}
	}
}

func TestRecordSendsWhatItsFileHas(t *testing.T) {
	t.Chdir(t.TempDir())
	server := streamtest.New("secret", nil)
	defer server.Close()
	vars := map[string]string{"FOLDLOG_SERVER": server.URL, "FOLDLOG_TOKEN": "secret"}
	got := with("step=1 loss=0.5\n", vars, "metrics", "record", "--slug", "r", "--to", "jsonl:r.jsonl", "--to", server.URL)
	data, err := os.ReadFile("r.jsonl")
	if err != nil || got.status != 0 {
		t.Fatalf("%v, status %d: %s", err, got.status, got.stderr)
	}
	id := metrics.StreamID(data[:bytes.IndexByte(data, '\n')])
	if sent := server.Stream("r", id); !bytes.Equal(sent, data) {
		t.Errorf("sent %q, the file has %q", sent, data)
	}
	if !strings.Contains(got.stderr, "see "+server.URL+"/runs/r") {
		t.Error(got.stderr)
	}
	// A server that refuses leaves the events in the file, and push completes it.
	vars["FOLDLOG_TOKEN"] = "wrong"
	got = with("step=1 loss=0.5\n", vars, "metrics", "record", "--slug", "s", "--to", "jsonl:s.jsonl", "--to", server.URL, "--quiet")
	if got.status != 1 || got.stdout != "" || !strings.Contains(got.stderr, "3 events lost: ") || !strings.Contains(got.stderr, "not authorised") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	vars["FOLDLOG_TOKEN"] = "secret"
	if got = with("", vars, "metrics", "push", "s.jsonl"); got.status != 0 || !strings.HasPrefix(got.stdout, "s  3 events") {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
}

func TestPushSaysWhatIsWrongWithItsTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		if err := os.WriteFile(name, []byte(pushedRun), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("other.txt", []byte("words\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	server := streamtest.New("secret", nil)
	defer server.Close()
	got := with("", map[string]string{"FOLDLOG_TOKEN": "secret"}, "metrics", "push", "other.txt", "--to", server.URL)
	if got.status != 1 || !strings.Contains(got.stderr, "hint: a metrics stream begins with an open") {
		t.Errorf("no stream: %+v", got)
	}
	const gone = "127.0.0.1:1" // where nobody ever listens
	got = with("", nil, "metrics", "push", "a.jsonl", "b.jsonl", "--to", "http://"+gone)
	if got.status != 1 || strings.Contains(got.stderr, "b.jsonl") || !strings.Contains(got.stderr, "hint: once the server is back") {
		t.Errorf("away: %+v", got)
	}
	got = with("", nil, "metrics", "push", "a.jsonl", "--to", gone)
	if got.status != 2 || !strings.Contains(got.stderr, "hint: did you mean http://"+gone+"?") {
		t.Errorf("no scheme: %+v", got)
	}
}
