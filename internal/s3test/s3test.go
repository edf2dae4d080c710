// Package s3test gives tests a bucket on a real S3 server, versitygw, started on
// loopback over a temporary directory. It is found by FOLDLOG_VERSITYGW, on the PATH,
// or where go install puts it.
package s3test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/foldlog/foldlog/internal/proctest"
)

// The credentials and the region of the server.
const (
	AccessKey = "foldlog-test"
	SecretKey = "foldlog-test-secret"
	Region    = "us-east-1"
)

var server struct {
	once    sync.Once
	addr    string
	err     error
	stop    func()
	buckets atomic.Int64
}

// Stop ends the server. TestMain calls it after the tests.
func Stop() {
	if server.stop != nil {
		server.stop()
	}
}

// Running reports whether there is a server to test with. In CI there must be one.
func Running(t testing.TB) bool {
	t.Helper()
	server.once.Do(start)
	if server.err != nil {
		if os.Getenv("CI") != "" || os.Getenv("FOLDLOG_VERSITYGW") != "" {
			t.Fatalf("no S3 server: %v", server.err)
		}
		t.Logf("S3 is left out, there is no server: %v", server.err)
	}
	return server.err == nil
}

// Bucket makes an empty bucket on the running server and returns the server's URL and
// the bucket's name.
func Bucket(t testing.TB) (endpoint, bucket string) {
	t.Helper()
	bucket = fmt.Sprintf("bucket-%d", server.buckets.Add(1))
	client, err := minio.New(server.addr, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region})
	if err == nil {
		err = client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + server.addr, bucket
}

func find() (string, error) {
	if p := os.Getenv("FOLDLOG_VERSITYGW"); p != "" {
		return p, nil
	}
	if p, err := exec.LookPath("versitygw"); err == nil {
		return p, nil
	}
	out, err := exec.Command("go", "env", "GOPATH").Output()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(strings.TrimSpace(string(out)), "bin", "versitygw"))
}

func start() {
	bin, err := find()
	if err != nil {
		server.err = err
		return
	}
	for range 5 { // another process may be quicker to take the port
		if server.err = startAt(bin); server.err == nil {
			return
		}
	}
}

// patience is how long a server may take until it answers.
const patience = time.Minute

// startAt starts a server at an address of its own.
func startAt(bin string) error {
	var err error
	if server.addr, err = proctest.Address(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "foldlog-s3-")
	if err != nil {
		return err
	}
	cmd := exec.Command(bin, "--port", server.addr, "--quiet", "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop := func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = os.RemoveAll(dir)
	}
	if !answers(ended) {
		stop()
		return fmt.Errorf("%s does not answer: %s", bin, log.String())
	}
	server.stop = stop
	return nil
}

// answers waits until the server does, or has ended.
func answers(ended <-chan struct{}) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", server.addr); err == nil {
			_ = c.Close()
			return true
		}
	}
	return false
}
