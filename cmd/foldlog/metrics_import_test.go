package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// eventFiles are the runs train and val, as TensorBoard has them.
const eventFiles = repository + "/metrics/tensorboard/testdata/runs"

func TestImportOfDirectories(t *testing.T) {
	for _, tc := range []struct {
		name string
		dirs []string
		want []string // ends of lines
	}{
		{"one", []string{"val"}, []string{`"slug":"tb","description":"","metadata":{}}`, `"value":1.0,"metadata":{}}`, `"slug":"tb"}`}},
		{"of two runs", []string{""}, []string{`"metadata":{}}`, `"value":1.0,"metadata":{"run":"val"}}`, `"value":2.0,"metadata":{"run":"train"}}`, `"slug":"tb"}`}},
		{"two", []string{"val", "train"}, []string{`"metadata":{}}`, `"value":1.0,"metadata":{}}`, `"metadata":{}}`, `"value":2.0,"metadata":{}}`, `"slug":"tb"}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := []string{"metrics", "import", "--slug", "tb"}
			for _, dir := range tc.dirs {
				args = append(args, filepath.Join(eventFiles, dir))
			}
			got := with("", nil, args...)
			lines := strings.Split(strings.TrimSuffix(got.stdout, "\n"), "\n")
			if len(lines) != len(tc.want) || got.status != 0 {
				t.Fatalf("status %d, %d lines:\n%s%s", got.status, len(lines), got.stdout, got.stderr)
			}
			for i, want := range tc.want {
				if !strings.HasSuffix(lines[i], want) {
					t.Errorf("line %d is %s, not ...%s", i+1, lines[i], want)
				}
			}
		})
	}
}

func TestImportReplacesItsOwnFileOnly(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.WriteFile(out, []byte("precious\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := with("", nil, "metrics", "import", filepath.Join(eventFiles, "val"), "--slug", "tb", "--out", out)
	if data, err := os.ReadFile(out); err != nil || string(data) != "precious\n" || got.status != 1 {
		t.Errorf("%q, %v, status %d", data, err, got.status)
	}
}
