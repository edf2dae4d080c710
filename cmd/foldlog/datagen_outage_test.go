package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/s3test"
)

// TestABucketThatRefusesIsNoOutage has commands end at once, with what to do about it.
func TestABucketThatRefusesIsNoOutage(t *testing.T) {
	if !s3test.Running(t) {
		t.Skip("versitygw is missing")
	}
	endpoint, bucket := s3test.Bucket(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"p.yaml": "pipeline: p\nsteps:\n  - {step: s, run: \"true\"}\n", "items.jsonl": "1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	denied, missing := []string{"access denied", "hint: check the credentials"}, []string{"no such bucket", "hint: check the name of the bucket"}
	run, status := []string{"run", "p.yaml", "--items", "items.jsonl"}, []string{"status", "p/main"}
	for _, tc := range []struct {
		args           []string
		bucket, secret string
		want           []string
	}{
		{run, bucket, "wrong", denied},
		{run, "nothing", s3test.SecretKey, missing},
		{run, bucket, s3test.SecretKey, []string{"1 completed"}},
		{status, bucket, "wrong", denied},
		{status, "nothing", s3test.SecretKey, missing},
		{status, bucket, s3test.SecretKey, []string{"1 completed"}},
	} {
		name := fmt.Sprint(tc.args[0], " of ", tc.bucket, " with ", tc.secret)
		cmd := exec.CommandContext(t.Context(), "foldlog", append(append([]string{"datagen"}, tc.args...), "--root", "s3://"+tc.bucket)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "AWS_ENDPOINT_URL="+endpoint, "AWS_REGION="+s3test.Region,
			"AWS_ACCESS_KEY_ID="+s3test.AccessKey, "AWS_SECRET_ACCESS_KEY="+tc.secret)
		out, _ := cmd.CombinedOutput()
		for _, want := range tc.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: %s", name, out)
			}
		}
		if strings.Contains(string(out), "tried again") {
			t.Errorf("%s is waited out: %s", name, out)
		}
	}
}
