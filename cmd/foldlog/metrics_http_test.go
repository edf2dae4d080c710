package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/streamtest"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server"
)

// exchange is a request and its answer in the page on the HTTP API.
type exchange struct {
	method, path string
	header       http.Header
	body         string
	status       int
	answer       string
}

var (
	httpBlock    = regexp.MustCompile("(?ms)^```http\n(.*?)^```$")
	httpExchange = regexp.MustCompile(`(?s)^(\w+) (\S+)\n(.*?)\n\n(.*?)\n?(\d{3})\n(\{.*\})\n$`)
)

// exchanges are those of the page. The empty line before the status belongs to
// the page, unless the body is to end without a newline.
func exchanges(t *testing.T) (list []exchange) {
	t.Helper()
	for _, block := range httpBlock.FindAllStringSubmatch(document(t, "docs/http-api.md"), -1) {
		m := httpExchange.FindStringSubmatch(block[1])
		if m == nil {
			t.Fatalf("no request and answer:\n%s", block[1])
		}
		e := exchange{method: m[1], path: m[2], header: http.Header{}, body: m[4], answer: m[6]}
		for line := range strings.Lines(m[3]) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			e.header.Set(name, value)
		}
		e.status, _ = strconv.Atoi(m[5])
		list = append(list, e)
	}
	return list
}

// TestTheHTTPPageSaysWhatAServerAnswers holds the page against the server, and
// against the receiver that tests of clients use.
func TestTheHTTPPageSaysWhatAServerAnswers(t *testing.T) {
	receiver := streamtest.New("secret", nil)
	defer receiver.Close()
	t.Run("receiver", func(t *testing.T) { checkExchanges(t, receiver.URL) })
	t.Run("server", func(t *testing.T) {
		dir := t.TempDir()
		sum := sha256.Sum256([]byte("secret"))
		tokens := filepath.Join(dir, "tokens.json")
		if err := os.WriteFile(tokens, fmt.Appendf(nil, `{"tokens":[{"id":"1","scopes":["admin"],"sha256":"%x"}]}`, sum), 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := server.OpenTokens(tokens)
		if err != nil {
			t.Fatal(err)
		}
		s, err := server.New(server.Options{Root: t.TempDir(), Tokens: known})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		checkExchanges(t, web.URL)
		http.DefaultClient.CloseIdleConnections()
	})
}

func checkExchanges(t *testing.T, base string) {
	list := exchanges(t)
	if len(list) != 7 {
		t.Fatalf("%d exchanges", len(list))
	}
	for _, e := range list {
		req, err := http.NewRequestWithContext(t.Context(), e.method, base+e.path, strings.NewReader(e.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = e.header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != e.status {
			t.Errorf("%s %q answers %d: %s", e.path, e.body, resp.StatusCode, body)
		}
		var got, want map[string]any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(string(body), base, "https://HOST")), &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(e.answer), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %q (-page +answer):\n%s", e.path, e.body, diff)
		}
	}
}

// TestTheStreamOfTheHTTPPage holds its id, and that it is sound.
func TestTheStreamOfTheHTTPPage(t *testing.T) {
	page := document(t, "docs/http-api.md")
	_, text, _ := strings.Cut(page, "```jsonl\n")
	text, _, _ = strings.Cut(text, "```")
	first, _, _ := strings.Cut(text, "\n")
	if id := metrics.StreamID([]byte(first)); strings.Count(page, id) < 8 {
		t.Errorf("the page does not have the id %s", id)
	}
	sum, err := metrics.Check(strings.NewReader(text), metrics.CheckOptions{}, func(f metrics.Finding) { t.Error(f) })
	if err != nil || sum.Bytes != 231 {
		t.Errorf("%v, %d bytes", err, sum.Bytes)
	}
}

// TestTheJSONPageHasTheKeysOfTheMetricsCommands is about what is printed.
func TestTheJSONPageHasTheKeysOfTheMetricsCommands(t *testing.T) {
	page := tables(document(t, "docs/json.md"))
	t.Chdir(t.TempDir())
	if err := os.WriteFile("r.jsonl", []byte(pushedRun), 0o666); err != nil {
		t.Fatal(err)
	}
	receiver := streamtest.New("", nil)
	defer receiver.Close()
	for section, args := range map[string][]string{
		"Metrics run": {"show", "r.jsonl"}, "Stream check": {"check", "r.jsonl"}, "Stream diff": {"diff", "r.jsonl", "r.jsonl"},
		"Pushed stream": {"push", "r.jsonl", "--to", receiver.URL},
	} {
		t.Run(section, func(t *testing.T) {
			got := with("", nil, append(append([]string{"metrics"}, args...), "--json")...)
			var printed map[string]json.RawMessage
			if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil {
				t.Fatal(err, got.stderr)
			}
			want := slices.Sorted(slices.Values(page[section]))
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(printed))); diff != "" {
				t.Errorf("keys (-page +printed):\n%s", diff)
			}
		})
	}
}
