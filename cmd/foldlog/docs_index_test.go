package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheIndexHasEveryPage(t *testing.T) {
	var want []string
	for _, name := range documents(t) {
		if page, ok := strings.CutPrefix(filepath.ToSlash(name), "docs/"); ok && page != "README.md" {
			want = append(want, page)
		}
	}
	var got []string
	for _, m := range link.FindAllStringSubmatch(document(t, "docs/README.md"), -1) {
		got = append(got, m[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/README.md (-pages +links):\n%s", diff)
	}
}

// TestTheMapsHaveEveryFolder holds the tables of README.md and CONTRIBUTING.md
// against the folders with Go code: each is named, or named in the line of the folder
// that it is in.
func TestTheMapsHaveEveryFolder(t *testing.T) {
	maps := document(t, "README.md") + document(t, "CONTRIBUTING.md")
	folders := map[string]bool{}
	err := fs.WalkDir(os.DirFS(repository), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || name != "." && d.Name()[0] == '.'):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(name) == ".go" && !strings.Contains(name, "/internal/"):
			folders[path.Dir(name)] = true
		}
		return nil
	})
	if err != nil || len(folders) < 40 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	for folder := range folders {
		above, inside := path.Split(folder)
		line := regexp.MustCompile("(?m)^\\| .*`" + path.Clean(above) + "`.*`" + inside + "`.*$")
		if !strings.Contains(maps, "`"+folder+"`") && !line.MatchString(maps) {
			t.Errorf("no map has %s", folder)
		}
	}
}

var (
	requirement = regexp.MustCompile(`(?m)^\t([^\s]+) (v[^\s]+)$`) // those that others need end in a comment
	dependency  = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v[^ ]+) \\|")
)

func TestThePageOfDependenciesIsThatOfGoMod(t *testing.T) {
	of := func(text string, row *regexp.Regexp) map[string]string {
		found := map[string]string{}
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	want := of(document(t, "go.mod"), requirement)
	if len(want) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	if diff := cmp.Diff(want, of(document(t, "docs/dependencies.md"), dependency)); diff != "" {
		t.Errorf("docs/dependencies.md (-go.mod +page):\n%s", diff)
	}
}
