package server

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func newTokens(t *testing.T) *Tokens {
	t.Helper()
	tokens, err := OpenTokens(filepath.Join(t.TempDir(), "deep", "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func add(t *testing.T, tokens *Tokens, scopes ...string) (Token, string) {
	t.Helper()
	token, secret, err := tokens.Add("test", scopes, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return token, secret
}

func TestTokensMayDoWhatTheirScopesSay(t *testing.T) {
	tokens := newTokens(t)
	_, read := add(t, tokens, ScopeRead)
	_, write := add(t, tokens, ScopeWrite)
	_, mine := add(t, tokens, "write:runs/mine-*")
	_, admin := add(t, tokens, ScopeAdmin)
	s := newSite(t, Options{Tokens: tokens})
	text := stream("mine-1", 1)
	other := stream("other", 1)
	cases := []struct {
		name, token, method, path string
		body                      any
		status                    int
	}{
		{"nobody reads", "", "GET", "/api/v1/runs", nil, 401},
		{"nobody reads counters", "", "GET", "/metrics", nil, 401},
		{"nobody writes", "", "POST", streamAt("mine-1", firstLine(text), 0), []byte(text), 401},
		{"a wrong one", read + "x", "GET", "/api/v1/runs", nil, 401},
		{"health is for all", "", "GET", "/healthz", nil, 200},
		{"the document is for all", "", "GET", "/api/v1/openapi.json", nil, 200},
		{"read reads", read, "GET", "/api/v1/runs", nil, 200},
		{"read does not write", read, "POST", streamAt("mine-1", firstLine(text), 0), []byte(text), 403},
		{"write does not read", write, "GET", "/api/v1/runs", nil, 403},
		{"write writes", write, "POST", streamAt("other", firstLine(other), 0), []byte(other), 200},
		{"its own run", mine, "POST", streamAt("mine-1", firstLine(text), 0), []byte(text), 200},
		{"not another", mine, "POST", streamAt("other", firstLine(other), 0), []byte(other), 403},
		{"not another by what a line says", mine, "POST", streamAt("mine-1", firstLine(other), 0), []byte(other), 422},
		{"nor a note on it", mine, "PUT", "/api/v1/runs/other/note", map[string]string{"note": "x"}, 403},
		{"reading by POST", read, "POST", "/api/v1/series", map[string]any{"runs": []string{"other"}, "names": []string{"loss"}}, 200},
		{"all of it", admin, "PUT", "/api/v1/runs/other/note", map[string]string{"note": "x"}, 200},
	}
	s.token = write
	s.post(streamAt("other", firstLine(other), 0), []byte(other), nil)
	s.hasRun("other", 2)
	for _, c := range cases {
		s.token = c.token
		if a := s.do(c.method, c.path, c.body); a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
	}
}

func TestATokenThatIsRevokedIsWorthless(t *testing.T) {
	tokens := newTokens(t)
	token, secret := add(t, tokens, ScopeRead)
	b, err := os.ReadFile(tokens.path)
	if err != nil || strings.Contains(string(b), strings.TrimPrefix(secret, tokenPrefix)) {
		t.Fatalf("the file has the secret: %v", err)
	}
	if info, err := os.Stat(tokens.path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the file: %v %v", info.Mode(), err)
	}
	elsewhere, err := OpenTokens(tokens.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := elsewhere.find(secret, time.Now()); !ok {
		t.Error("the token is not found")
	}
	if err := tokens.Revoke(token.ID); err != nil {
		t.Fatal(err)
	}
	if _, ok := elsewhere.find(secret, time.Now().Add(time.Hour)); ok {
		t.Error("the token is still good")
	}
	if err := tokens.Revoke(token.ID); err == nil {
		t.Error("revoked twice")
	}
	for _, scope := range []string{"", "everything", "write:runs/", "write:runs/[", "write:other/x"} {
		if _, _, err := tokens.Add("x", []string{scope}, time.Now()); err == nil {
			t.Errorf("scope %q is taken", scope)
		}
	}
}

func TestABrowserHoldsItsTokenInACookie(t *testing.T) {
	tokens := newTokens(t)
	_, secret := add(t, tokens, ScopeRead)
	s := newSite(t, Options{Tokens: tokens, Secure: true})
	if a := s.do("POST", "/api/v1/session/open", map[string]string{"token": "wrong"}); a.status != 401 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	a := s.do("POST", "/api/v1/session/open", map[string]string{"token": secret})
	cookie := a.header.Get("Set-Cookie")
	for _, part := range []string{"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie lacks %s: %s", part, strings.ReplaceAll(cookie, secret, "..."))
		}
	}
	with := func(r *http.Request) { r.AddCookie(&http.Cookie{Name: sessionCookie, Value: secret}) }
	var info wire.SessionInfo
	s.read(s.do("GET", "/api/v1/session", nil, with), &info)
	if info.Open || info.Name != "test" || len(info.Scopes) != 1 {
		t.Errorf("%+v", info)
	}
	if a := s.do("GET", "/api/v1/runs", nil, with); a.status != 200 {
		t.Errorf("%d", a.status)
	}
}

func TestForeignNamesAndOriginsAreRefused(t *testing.T) {
	s := newSite(t, Options{Hosts: []string{"logs.example"}})
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	cases := []struct {
		name   string
		edit   func(*http.Request)
		path   string
		status int
	}{
		{"its address", host("127.0.0.1:80"), "/api/v1/runs", 200},
		{"its IPv6 address", host("[::1]:80"), "/api/v1/runs", 200},
		{"localhost", host("localhost:7654"), "/api/v1/runs", 200},
		{"a name that was given", host("LOGS.example."), "/api/v1/runs", 200},
		{"a name that leads here", host("evil.example"), "/api/v1/runs", 421},
		{"its own origin", header("Origin", s.url), "/api/v1/runs", 200},
		{"another origin", header("Origin", "http://evil.example"), "/api/v1/runs", 403},
		{"another port", header("Origin", "http://127.0.0.1:1"), "/api/v1/runs", 403},
		{"no origin at all", header("Origin", "null"), "/api/v1/runs", 403},
		{"a page of another site", header("Sec-Fetch-Site", "cross-site"), "/api/v1/runs", 403},
		{"a link from another site", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), "/", 200},
		{"a link to the API", header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), "/api/v1/runs", 403},
	}
	for _, c := range cases {
		a := s.do("GET", c.path, nil, c.edit)
		if a.status != c.status {
			t.Errorf("%s: %d %s", c.name, a.status, a.body)
		}
		if a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: headers are missing: %v", c.name, a.header)
		}
	}
}

func TestNothingLeadsOutOfTheRoot(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.jsonl"), []byte(stream("secret", 3)), 0o644); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "runs", "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := stream("linked", 2)
	for link, to := range map[string]string{
		"dir":         outside,
		"file.jsonl":  filepath.Join(outside, "secret.jsonl"),
		"runs/linked": outside,
		"runs/inside/" + metrics.StreamID([]byte(firstLine(stream("inside", 2)))) + ".jsonl": filepath.Join(outside, "written.jsonl"),
	} {
		if err := os.Symlink(to, filepath.Join(root, filepath.FromSlash(link))); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, Options{Root: root})
	s.find.scan()
	if runs := s.store.Runs(); len(runs) != 0 {
		t.Errorf("%d runs from outside", len(runs))
	}
	for _, slug := range []string{"linked", "inside"} {
		text := stream(slug, 2)
		if a := s.do("POST", streamAt(slug, firstLine(text), 0), []byte(text)); a.status != 403 {
			t.Errorf("%s: %d %s", slug, a.status, a.body)
		}
	}
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	const log = "datagen_checkpoints/p/e/log.lance"
	if err := os.Symlink(outside, filepath.Join(root, filepath.FromSlash(log), "out")); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if a := s.do(method, "/api/v1/objects?key="+log+"/out/secret.jsonl", []byte("x")); a.status/100 != 4 {
			t.Errorf("%s through a link: %d %s", method, a.status, a.body)
		}
	}
	for _, slug := range []string{"..", ".", "%2e%2e", "..%5C..", "~", "C:", "CON", ".hidden"} {
		a := s.do("POST", streamAt(slug, firstLine(text), 0), []byte{})
		if a.status == 500 {
			t.Errorf("slug %q: %d %s", slug, a.status, a.body)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 {
		t.Errorf("outside of the root there are %d files: %v", len(entries), err)
	}
	for _, path := range []string{"/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/api/v1/runs/..%2f..%2fetc"} {
		if a := s.do("GET", path, nil); strings.Contains(string(a.body), "root:") {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// TestATokenForOneExperimentWritesNothingElse tries keys that would be another
// experiment's, or other logs, and what only looks like its own.
func TestATokenForOneExperimentWritesNothingElse(t *testing.T) {
	tokens := newTokens(t)
	_, mine := add(t, tokens, ScopeRead, "write:datagen/p/mine")
	_, all := add(t, tokens, ScopeRead, ScopeWrite)
	s := newSite(t, Options{Tokens: tokens})
	s.token = all
	for _, name := range []string{"mine", "other"} {
		s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": name}, nil)
	}
	s.token = mine
	const at = "/api/v1/objects?key=datagen_checkpoints/p/"
	for key, status := range map[string]int{
		"mine/log.lance/data/x": 204, "mine/coordination/writers/x": 204,
		"other/log.lance/data/x": 403, "other/coordination/x": 403,
		"mine/run.jsonl": 404, "mine/search.atj": 404, "mine/deep/run.jsonl": 404, "mine/log.lance": 404,
		"mine/deep/datagen_checkpoints/q/e/log.lance/x": 404, "mine/log.lance/../../other/log.lance/x": 404,
		"mine/log.lance%2f..%2f..%2fother%2flog.lance%2fx": 404, "mine%5clog.lance%5cx": 404,
	} {
		for _, method := range []string{"PUT", "DELETE"} {
			if a := s.do(method, at+key, []byte("x")); a.status != status {
				t.Errorf("%s %s: %d %s", method, key, a.status, a.body)
			}
		}
	}
	s.do("PUT", at+"mine/coordination/run.jsonl", []byte(stream("victim", 2)))
	s.find.scan()
	if runs := s.store.Runs(); len(runs) != 0 || s.index.pending() > 0 {
		t.Errorf("%d runs are among the files of an experiment", len(runs))
	}
}

func TestMarkupStaysText(t *testing.T) {
	s := newSite(t, Options{})
	const evil = `<img src=x onerror="alert(1)">`
	open, err := metrics.NewOpen(evil, evil, metrics.Meta(evil, evil))
	if err != nil {
		t.Fatal(err)
	}
	note, err := metrics.Failed(evil).Event(1)
	if err != nil {
		t.Fatal(err)
	}
	s.write("a.jsonl", string(note.Append(open.Append(nil))))
	s.hasRun(evil, 2)
	for _, path := range []string{"/api/v1/runs", "/api/v1/runs/" + "%3Cimg%20src=x%20onerror=%22alert(1)%22%3E", "/api/v1/keys"} {
		a := s.do("GET", path, nil)
		if a.status != 200 || a.header.Get("Content-Type") != "application/json" || !json.Valid(a.body) {
			t.Errorf("%s: %d %s %s", path, a.status, a.header.Get("Content-Type"), a.body)
		}
	}
}

func TestTheDashboardIsServedWhereverAViewIs(t *testing.T) {
	ui := fstest.MapFS{"index.html": {Data: []byte("<title>page</title>")}, "assets/a-1234.js": {Data: []byte("code")}, "icon.svg": {Data: []byte("<svg/>")}}
	s := newSite(t, Options{UI: ui})
	for path, want := range map[string]string{
		"/": "<title>page</title>", "/runs/a%2Fb": "<title>page</title>", "/studies/x/trials": "<title>page</title>", "/index.html": "<title>page</title>",
		"/assets/a-1234.js": "code", "/icon.svg": "<svg/>",
	} {
		if a := s.do("GET", path, nil); a.status != 200 || string(a.body) != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for path, status := range map[string]int{"/assets/gone.js": 404, "/api/v1/nothing": 404, "/api/": 404} {
		if a := s.do("GET", path, nil); a.status != status {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	if a := s.do("POST", "/runs/x", nil); a.status != 405 {
		t.Errorf("%d", a.status)
	}
	if a := s.do("GET", "/assets/a-1234.js", nil); !strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Error(a.header)
	}
}
