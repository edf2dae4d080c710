package main

import (
	"os"
	"strings"
	"testing"
)

// TestAnInterruptEndsTheWaitForAServer begins with Ctrl-C pressed. Port 1 has no server.
func TestAnInterruptEndsTheWaitForAServer(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"pipeline.yaml": "pipeline: p\nsteps: [{step: s, run: 'true'}]\n",
		"items.jsonl":   "\"a\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const server = "http://127.0.0.1:1"
	for _, args := range [][]string{
		{"study", "create", server + "/x.atj"},
		{"study", "run", server + "/x.atj", "--trials", "1", "--", "true"},
		{"study", "ask", server + "/x.atj"},
		{"study", "show", server + "/x.atj"},
		{"datagen", "run", "pipeline.yaml", "--items", "items.jsonl", "--root", server},
		{"datagen", "status", server + "/p/main"},
	} {
		got := inJournals(interrupted(t), args...)
		if got.status != 130 || !strings.Contains(got.stderr, "interrupted by SIGINT\n") || strings.Contains(got.stderr, "letting the running steps finish") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
