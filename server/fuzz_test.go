package server

import (
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzHandler sends anything to everything: the server never fails, and leaves
// nothing outside of its root.
func FuzzHandler(f *testing.F) {
	parent := f.TempDir()
	root := filepath.Join(parent, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		f.Fatal(err)
	}
	s, err := New(Options{Root: root})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	for _, seed := range [][4]string{
		{"GET", "/api/v1/runs", "limit=5&sort=-metric:x&where=a%3C1", ""},
		{"POST", "/api/v1/runs/run/streams/0123456789abcdef", "offset=0", stream("run", 2)},
		{"POST", "/api/v1/runs/..%2f../streams/0123456789abcdef", "offset=0", "x\n"},
		{"POST", "/api/v1/series", "", `{"runs":["run"],"names":["loss"],"from":"1"}`},
		{"GET", "/api/v1/runs/run/annotations", "cursor=WyIxIl0", ""},
		{"GET", "/api/v1/studies", "cursor=e30", ""},
		{"PUT", "/api/v1/runs/run/note", "", `{"note":"x"}`},
		{"POST", "/api/v1/studies/x/ask", "", `{"budget":"18446744073709551615"}`},
		{"POST", "/api/v1/session/open", "", `{"token":""}`},
		{"GET", "/../..//etc/passwd", "", ""},
		{"GET", "/api/v1/files", "path=a.atj.d/../x", ""},
		{"HEAD", "/api/v1/files", "list=%2e%2e", ""},
		{"GET", "/api/v1/logs", "under=runs/x", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		if strings.ContainsAny(method, " \t\r\n") || method == "" || strings.Contains(path, "live") {
			return
		}
		r := httptest.NewRequest("GET", "http://localhost/", nil)
		r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery = method, "/"+strings.TrimPrefix(path, "/"), "", query
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != 503 && w.Code != 507 {
			t.Errorf("%s %q?%q %q: %d %s", method, path, query, body, w.Code, w.Body)
		}
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("%s %q leaves something outside: %v", method, path, entries)
		}
	})
}
