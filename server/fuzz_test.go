package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// fuzzed is a server with a run, a study and an experiment, alone in a directory, and
// another one over the same kind of root that asks for tokens.
type fuzzed struct {
	parent       string
	open, closed *Server
	study, claim string
	experiment   string
}

func newFuzzed(f *testing.F) *fuzzed {
	z := &fuzzed{parent: f.TempDir()}
	start := func(name string, tokens *Tokens) *Server {
		root := filepath.Join(z.parent, name)
		if err := os.Mkdir(root, 0o755); err != nil {
			f.Fatal(err)
		}
		s, err := New(Options{Root: root, Tokens: tokens})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { s.Close() })
		return s
	}
	tokens, err := OpenTokens(filepath.Join(f.TempDir(), "tokens.json"))
	if err != nil {
		f.Fatal(err)
	}
	z.open, z.closed = start("root", nil), start("closed", tokens)
	z.fill(f)
	return z
}

func (z *fuzzed) fill(f *testing.F) {
	z.must(f, "POST /api/v1/journals", `{"path":"s.atj"}`, nil)
	config := study.Config{Name: "demo", Directions: []study.Direction{study.Minimize}}
	j, err := study.OpenJournal(f.Context(), filepath.Join(z.open.base, "s.atj"), journal.WriterOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if _, _, err := study.OpenOrCreate(f.Context(), j, config); err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	z.study = studyID("s.atj", 0)
	z.must(f, "POST /api/v1/studies/"+z.study+"/ask", `{}`, nil)
	var made struct{ ID string }
	z.must(f, "POST /api/v1/datagen", `{"pipeline":"p","experiment":"e"}`, &made)
	z.experiment = made.ID
	var got wire.ItemClaim
	z.must(f, "POST /api/v1/datagen/"+z.experiment+"/claims", `{"items":["a"],"lease_ms":86400000}`, &got)
	z.claim = got.Claim
}

func (z *fuzzed) must(f *testing.F, what, body string, into any) {
	method, path, _ := strings.Cut(what, " ")
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	z.open.Handler().ServeHTTP(w, r)
	if w.Code != 200 {
		f.Fatalf("%s: %d %s", what, w.Code, w.Body)
	}
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			f.Fatal(err)
		}
	}
}

// check answers a request: the server never fails, leaves nothing outside of its root,
// and tells nobody anything who has no token.
func (z *fuzzed) check(t *testing.T, what string, request func() *http.Request) {
	t.Helper()
	w := httptest.NewRecorder()
	z.open.Handler().ServeHTTP(w, request())
	if w.Code >= 500 && w.Code != 503 && w.Code != 507 {
		t.Errorf("%s: %d %s", what, w.Code, w.Body)
	}
	r := request()
	r.Header.Del("Authorization")
	r.Header.Del("Cookie")
	w = httptest.NewRecorder()
	z.closed.Handler().ServeHTTP(w, r)
	if w.Code < 400 && w.Code != 301 && w.Code != 307 && private(r.URL.Path) {
		t.Errorf("%s: %d without a token: %s", what, w.Code, w.Body)
	}
	if entries, err := os.ReadDir(z.parent); err != nil || len(entries) != 2 {
		t.Errorf("%s leaves something outside: %v", what, entries)
	}
}

// FuzzHandler sends anything to everything.
func FuzzHandler(f *testing.F) {
	z := newFuzzed(f)
	log, at := "/api/v1/datagen/"+z.experiment, "/api/v1/studies/"+z.study
	for _, seed := range [][4]string{
		{"GET", "/api/v1/runs", "limit=5&sort=-metric:x&where=a%3C1", ""},
		{"POST", "/api/v1/runs/run/streams/0123456789abcdef", "offset=0", stream("run", 2)},
		{"POST", "/api/v1/runs/..%2f../streams/0123456789abcdef", "offset=0", "x\n"},
		{"POST", "/api/v1/series", "", `{"runs":["run"],"names":["loss"],"from":"1"}`},
		{"GET", "/api/v1/runs/run/annotations", "cursor=WyIxIl0", ""},
		{"PUT", "/api/v1/runs/run/note", "", `{"note":"x"}`},
		{"POST", "/api/v1/runs/run/tags", "", `{"add":["a"],"remove":["b"]}`},
		{"GET", "/api/v1/studies", "cursor=e30", ""},
		{"GET", at + "/trials", "sort=-value&where=param:x%3C1&limit=3&from=1", ""},
		{"GET", at + "/columns", "state=complete", ""},
		{"GET", at + "/curves", "trials=0,1", ""},
		{"POST", at + "/ask", "", `{"budget":"18446744073709551615","lease_ms":1,"worker":"9007199254740993"}`},
		{"POST", at + "/enqueue", "", `{"params":{"x":1e999},"key":"k"}`},
		{"POST", at + "/attrs", "", `{"key":"k","value":[[[[]]]],"number":0}`},
		{"POST", at + "/trials/0/tell", "", `{"values":["NaN"],"state":"complete"}`},
		{"POST", at + "/trials/0/report", "", `{"step":"-1","values":[1e308]}`},
		{"GET", at + "/trials/18446744073709551616", "", ""},
		{"GET", "/api/v1/journals/ops", "path=s.atj&after=1", ""},
		{"POST", "/api/v1/journals/ops", "path=s.atj", `{"id":"12345678","after":"1","ops":[{}]}`},
		{"POST", "/api/v1/journals", "", `{"path":"../../x.atj"}`},
		{"POST", "/api/v1/session/open", "", `{"token":""}`},
		{"GET", "/../..//etc/passwd", "", ""},
		{"GET", "/api/v1/files", "path=a.atj.d/../x", ""},
		{"HEAD", "/api/v1/files", "list=%2e%2e", ""},
		{"GET", "/api/v1/logs", "under=runs/x", ""},
		{"POST", "/api/v1/datagen", "", `{"pipeline":"..","experiment":"e/../../.."}`},
		{"GET", log + "/items", "prefix=a&tag=x%3D1&status=failed&sort=-events&cursor=W10&limit=2", ""},
		{"GET", log + "/items/..%2f..%2fetc", "as_of=1", ""},
		{"GET", log + "/items/a/trajectory", "as_of=2026-01-02T03:04:05Z", ""},
		{"GET", log + "/items/a/tree", "", ""},
		{"GET", log + "/failures", "item=a&cursor=x", ""},
		{"GET", log + "/blobs/" + strings.Repeat("f", 36), "size=9223372036854775807&checksum=sha256:", ""},
		{"POST", log + "/append", "", `{"item_id":"b","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-02T03:04:05Z"}`},
		{"POST", log + "/claims", "", `{"items":["b","` + strings.Repeat("c", 5000) + `"],"tags":{"a":{}},"lease_ms":1}`},
		{"POST", log + "/claims/" + z.claim + "/checkpoint", "", `{"key":"1","step":{"name":"s","index":9223372036854775807},"changes":[{"name":"x","kind":"int","value":"1"},{"name":"b","kind":"blob","value":"AA=="}]}`},
		{"POST", log + "/claims/" + z.claim + "/fail", "", `{"key":"2","type":"T","message":"\u0000"}`},
		{"POST", log + "/claims/" + z.claim + "/renew", "", ""},
		{"POST", log + "/classify", "", `{"keys":["a","b"]}`},
		{"GET", "/api/v1/objects", "key=datagen_checkpoints/p/e/log.lance/x", ""},
		{"GET", "/api/v1/objects", "prefix=datagen_checkpoints/&after=a&delimiter=true", ""},
		{"PUT", "/api/v1/objects", "key=datagen_checkpoints/p/e/log.lance/../../../../x", "bytes"},
		{"DELETE", "/api/v1/objects", "key=datagen_checkpoints/p/e/log.lance/data/x", ""},
		{"GET", "/api/v1/diff", "run=run&run=run", ""},
		{"GET", "/api/v1/names", "q=x&limit=-1", ""},
		{"GET", "/api/v1/keys", "limit=99999999999999999999", ""},
		{"GET", "/metrics", "", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.ContainsAny(method, " \t\r\n") || method == "" || strings.Contains(path, "live") {
			return
		}
		z.check(t, fmt.Sprintf("%s %q?%q %q", method, path, query, body), func() *http.Request {
			r := httptest.NewRequest("GET", "http://localhost/", nil)
			r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery = method, "/"+strings.TrimPrefix(path, "/"), "", query
			r.Header.Set("Content-Type", "application/json")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			return r
		})
	})
}

// FuzzRequest sends whole requests, with whatever they have in their heads.
func FuzzRequest(f *testing.F) {
	z := newFuzzed(f)
	for _, head := range []string{
		"Host: evil.example\r\n", "Host: [::1]:80\r\n", "Host: localhost\r\nOrigin: null\r\n", "Host: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: cross-site\r\n",
		"Host: localhost\r\nRange: bytes=0-,5-1,-9223372036854775808\r\n", "Host: localhost\r\nIf-None-Match: *\r\n", "Host: localhost\r\nContent-Encoding: gzip\r\n",
		"Host: localhost\r\nTransfer-Encoding: chunked\r\n", "Host: localhost\r\nAuthorization: Bearer \r\n", "Host: localhost\r\nCookie: foldlog_session=x; foldlog_session=y\r\n",
		"Host: localhost\r\nAccept: application/cbor\r\nContent-Type: application/x-www-form-urlencoded\r\n", "Host: localhost\r\nLast-Event-ID: 1-99999999999999999999\r\n",
		"Host: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n", "Host: localhost\r\nX-HTTP-Method-Override: DELETE\r\nX-Forwarded-Host: evil\r\n",
	} {
		for _, line := range []string{
			"GET /api/v1/runs HTTP/1.1", "GET /api/v1/objects?key=datagen_checkpoints/p/e/log.lance/_versions/1.manifest HTTP/1.1",
			"PUT /api/v1/objects?key=datagen_checkpoints/p/e/log.lance/x HTTP/1.1", "GET /api/v1/objects?key=datagen_checkpoints/p/e/log.lance/" + strings.Repeat("x", 300) + " HTTP/1.1", "POST /api/v1/datagen/" + z.experiment + "/claims/" + z.claim + "/release HTTP/1.0",
			"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1", "OPTIONS * HTTP/1.1", "GET http://localhost/api/v1/datagen/" + z.experiment + "/items/a%2Fb HTTP/1.1",
		} {
			f.Add(line + "\r\n" + head + "\r\n{}\n")
		}
	}
	f.Fuzz(func(t *testing.T, raw string) {
		read := func() *http.Request {
			r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
			if err != nil {
				return nil
			}
			return r
		}
		if r := read(); r == nil || strings.Contains(r.URL.Path, "live") {
			return
		}
		z.check(t, fmt.Sprintf("%q", raw), read)
	})
}
