package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// The page on the API lists every call, by the document that the server serves:
// FOLDLOG_BLESS=1 writes the list anew.

const (
	apiPage   = "../docs/http-api.md"
	callsFrom = "<!-- calls -->\n"
	callsTo   = "<!-- end of calls -->\n"
)

// calls is the list as the page has it.
func calls(t *testing.T, s *Server) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/api/v1/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct {
			Summary, Description string
			Tags                 []string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	byTag := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			op := doc.Paths[path][method]
			if len(op.Tags) != 1 || op.Summary == "" {
				t.Errorf("%s %s has the tags %v and the summary %q", method, path, op.Tags, op.Summary)
				continue
			}
			byTag[op.Tags[0]] = append(byTag[op.Tags[0]], fmt.Sprintf("| `%s %s` | %s |\n", strings.ToUpper(method), strings.TrimPrefix(path, "/api/v1"), op.Summary))
		}
	}
	var b strings.Builder
	for _, tag := range slices.Sorted(maps.Keys(byTag)) {
		fmt.Fprintf(&b, "\n### %s%s\n\n| call | |\n|---|---|\n", strings.ToUpper(tag[:1]), tag[1:])
		for _, line := range byTag[tag] {
			b.WriteString(line)
		}
	}
	return b.String() + "\n"
}

func TestThePageListsEveryCall(t *testing.T) {
	s := newSite(t, Options{})
	page, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), callsFrom)
	list, after, ok2 := strings.Cut(rest, callsTo)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no list of calls", apiPage)
	}
	want := calls(t, s.Server)
	if list == want {
		return
	}
	if os.Getenv("FOLDLOG_BLESS") == "" {
		t.Fatalf("the list of calls is not that of the document; FOLDLOG_BLESS=1 writes it anew:\n%s", want)
	}
	if err := os.WriteFile(apiPage, []byte(before+callsFrom+want+callsTo+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
