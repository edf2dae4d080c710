package metrics

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStreamIdsAreSixteenHexDigits(t *testing.T) {
	id := StreamID([]byte("first line\n"))
	if id != StreamID([]byte("first line")) || CheckStreamID(id) != nil {
		t.Errorf("id %q", id)
	}
	for _, bad := range []string{"", "..", id[1:], id + "0", "../" + id[3:], "ABCDEF0123456789"} {
		if err := CheckStreamID(bad); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestStreamsAreFoundAnywhereUnderARoot(t *testing.T) {
	root := t.TempDir()
	inLayout := StreamPath(root, "my run", "0123456789abcdef")
	loose := filepath.Join(root, "deep", "er", "loose.jsonl")
	for _, path := range []string{inLayout, loose, filepath.Join(root, ".foldlog", "cache.jsonl"), filepath.Join(root, "notes.txt")} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, nil, 0o644))
	}
	got, err := FindStreams(root)
	must(t, err)
	if diff := cmp.Diff([]string{loose, inLayout}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := FindStreams(filepath.Join(root, "no")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
}
