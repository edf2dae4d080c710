package server

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnswersAreCompressedWhereItPays(t *testing.T) {
	s := newSite(t, Options{})
	study := "/api/v1/studies/" + newStudy(s, "s.atj")
	for _, c := range []struct {
		name, path, remote, accept, kind string
		want                             bool
	}{
		{"from elsewhere", "/api/v1/openapi.json", "192.0.2.7:4711", "deflate, gzip;q=0.5", "", true},
		{"columns", study + "/columns", "[2001:db8::1]:4711", "gzip", packedType, true},
		{"over loopback", "/api/v1/openapi.json", "127.0.0.1:4711", "gzip", "", false},
		{"over loopback of IPv6", "/api/v1/openapi.json", "[::1]:4711", "gzip", "", false},
		{"to who does not ask", "/api/v1/openapi.json", "192.0.2.7:4711", "", "", false},
		{"to who will not have it", "/api/v1/openapi.json", "192.0.2.7:4711", "gzip;q=0", "", false},
		{"metrics", "/metrics", "192.0.2.7:4711", "gzip", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1"+c.path, nil)
			r.RemoteAddr = c.remote
			r.Header.Set("Accept-Encoding", c.accept)
			r.Header.Set("Accept", c.kind)
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			got := w.Header().Get("Content-Encoding") == "gzip"
			if w.Code != 200 || got != c.want {
				t.Fatalf("%d %v", w.Code, w.Header())
			}
			if got {
				plainOf(t, w)
			}
		})
	}
}

// plainOf unpacks an answer and compares it with what goes out uncompressed.
func plainOf(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if !strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding") || w.Header().Get("Content-Length") != "" {
		t.Errorf("%v", w.Header())
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var first json.RawMessage
	if line, _, _ := strings.Cut(string(b), "\n"); json.Unmarshal([]byte(line), &first) != nil {
		t.Errorf("%.100q", b)
	}
}

func TestACutAnswerIsNotClosed(t *testing.T) {
	h := compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, strings.Repeat(`["half`, 1000))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	}))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.RemoteAddr = "192.0.2.7:1"
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	func() {
		defer func() { _ = recover() }()
		h.ServeHTTP(w, r)
	}()
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err == nil || len(b) != 6000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
