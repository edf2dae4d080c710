package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/s3test"
)

// TestTheGeneralVerbsKnowWhatLiesInABucket runs them as processes.
func TestTheGeneralVerbsKnowWhatLiesInABucket(t *testing.T) {
	if !s3test.Running(t) {
		t.Skip("versitygw is missing")
	}
	endpoint, bucket := s3test.Bucket(t)
	dir := t.TempDir()
	run := func(status int, in string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "foldlog", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(in)
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION="+s3test.Region,
			"AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3test.SecretKey)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Fatalf("%v: status %d: %s", args, got, out)
		}
		return string(out)
	}
	root := "s3://" + bucket + "/some/where"
	log := root + "/datagen_checkpoints/p/e/log.lance"
	run(0, "", "datagen", "init", "p/e", "--root", root)
	run(0, `{"item_id":"a","item_seq":0,"checkpoint_id":"c","event_type":"ITEM_CREATED","event_ts":"2026-01-01T00:00:00Z"}`,
		"datagen", "append", "p/e", "--root", root)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"ok      " + log + "  datagen log v1, 1 event, ", []string{"verify", log}},
		{`"kind": "datagen log"`, []string{"inspect", log, "--json"}},
		{`"item_id":"a"`, []string{"cat", log + "/"}},
		{`"item_id":"a"`, []string{"tail", log, "-n", "1"}},
		{"copied 1 event", []string{"cp", log, "copy.lance"}},
		{"ok      copy.lance  datagen log v1, 1 event, ", []string{"verify", "copy.lance"}},
	} {
		if out := run(0, "", tc.args...); !strings.Contains(out, tc.want) {
			t.Errorf("%v: %s", tc.args, out)
		}
	}
	run(1, "", "verify", root+"/nothing")
	for _, args := range [][]string{{"inspect", root + "/nothing"}, {"datagen", "status", "p/gone", "--root", root}} {
		if out := run(1, "", args...); !strings.Contains(out, "hint: ") || strings.Contains(out, "foldlog ls") {
			t.Errorf("%v: %s", args, out)
		}
	}
	if out := run(2, "", "cp", log, root+"/copy.lance"); !strings.Contains(out, "a bucket") {
		t.Errorf("cp into a bucket: %s", out)
	}
	if _, err := os.Stat(filepath.Join(dir, "s3:")); !os.IsNotExist(err) {
		t.Errorf("a directory named s3: %v", err)
	}
}
