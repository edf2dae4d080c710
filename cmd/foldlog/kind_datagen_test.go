package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestACopyOfADamagedDatagenLogSaysSo changes a byte of a blob, which only its checksum
// tells.
func TestACopyOfADamagedDatagenLogSaysSo(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args ...string) result { return inJournals(t.Context(), args...) }
	events := `{"item_id":"a","item_seq":0,"checkpoint_id":"c0","event_type":"ITEM_CREATED"}
{"item_id":"a","item_seq":1,"checkpoint_id":"c1","event_type":"FIELD_SET","step_name":"draw","step_index":0,"step_instance_id":"draw","field_name":"image","field_type":"blob","codec_version":1,"value_kind":"blob","value":"VGhlIGJ5dGVzIG9mIGFuIGltYWdlLg=="}
{"item_id":"a","item_seq":2,"checkpoint_id":"c1","event_type":"STEP_COMPLETED","step_name":"draw","step_index":0,"step_instance_id":"draw"}
`
	if err := os.WriteFile("events.jsonl", []byte(events), 0o666); err != nil {
		t.Fatal(err)
	}
	const log = "datagen_checkpoints/p/e/log.lance"
	for _, args := range [][]string{{"datagen", "init", "p/e"}, {"datagen", "append", "p/e", "events.jsonl"}, {"datagen", "merge", "p/e"}, {"cp", log, "sound.lance"}} {
		if got := run(args...); got.status != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
	}
	if changed := replaceUnder(t, log, "The bytes of an image.", "The bytes of an imagE."); changed == 0 {
		t.Fatal("no file has the bytes of the blob")
	}
	if got := run("verify", log); got.status != 1 {
		t.Fatalf("verify finds nothing: %+v", got)
	}
	got := run("cp", log, "copy.lance")
	if got.status != 1 || !strings.Contains(got.stderr, "copied 3 events, ") || !strings.Contains(got.stderr, "everything was copied, with 1 fault, the first: ") ||
		!strings.Contains(got.stderr, "\nhint: foldlog verify lists every fault") {
		t.Errorf("cp: %+v", got)
	}
	if got := run("cat", "copy.lance"); got.status != 0 || strings.Count(got.stdout, "\n") != 3 {
		t.Errorf("the copy: %+v", got)
	}
	into := run("cp", log, "sound.lance")
	if into.status != 1 || !strings.Contains(into.stderr, "a copy never overwrites") {
		t.Errorf("cp into a log: %+v", into)
	}
}

// replaceUnder changes the bytes of files and returns how many had them.
func replaceUnder(t *testing.T, dir, from, to string) (changed int) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(b, []byte(from)) {
			return err
		}
		changed++
		return os.WriteFile(path, bytes.ReplaceAll(b, []byte(from), []byte(to)), 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
	return changed
}
