// Package s3test gives tests a bucket on a real S3 server, versitygw, started on
// loopback over a temporary directory. It is found by FOLDLOG_VERSITYGW, on the PATH,
// or where go install puts it.
package s3test

import (
	"bytes"
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
	makeBucket(t, server.addr, bucket)
	return "http://" + server.addr, bucket
}

func makeBucket(t testing.TB, addr, bucket string) {
	t.Helper()
	client, err := minio.New(addr, &minio.Options{Creds: credentials.NewStaticV4(AccessKey, SecretKey, ""), Region: Region})
	if err == nil {
		err = client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
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
	m, err := newMortal(bin)
	if err != nil {
		return err
	}
	server.addr, server.stop = m.addr, m.stop
	return nil
}

// Mortal is a server of its own that can be killed and started again, with everything that
// it has stored. It is for one goroutine.
type Mortal struct {
	bin, addr, dir string
	cmd            *exec.Cmd
	ended          chan struct{}
}

// NewMortal starts one, which lives until the end of the test, if there is a server to
// test with ([Running]). It has an empty bucket.
func NewMortal(t testing.TB) (m *Mortal, endpoint, bucket string) {
	t.Helper()
	bin, err := find()
	for range 5 { // another process may be quicker to take the port
		if err == nil {
			if m, err = newMortal(bin); err == nil {
				break
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	makeBucket(t, m.addr, "bucket")
	return m, "http://" + m.addr, "bucket"
}

func newMortal(bin string) (*Mortal, error) {
	addr, err := proctest.Address()
	if err != nil {
		return nil, err
	}
	m := &Mortal{bin: bin, addr: addr}
	if m.dir, err = os.MkdirTemp("", "foldlog-s3-"); err != nil {
		return nil, err
	}
	if err := m.Start(); err != nil {
		m.stop()
		return nil, err
	}
	return m, nil
}

// Start starts a server that was killed, and waits until it answers.
func (m *Mortal) Start() error {
	m.cmd = exec.Command(m.bin, "--port", m.addr, "--quiet", "posix", m.dir)
	m.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	var log bytes.Buffer
	m.cmd.Stdout, m.cmd.Stderr = &log, &log
	if err := m.cmd.Start(); err != nil {
		return err
	}
	cmd, ended := m.cmd, make(chan struct{})
	m.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
	if !answers(m.addr, ended) {
		m.Kill()
		return fmt.Errorf("%s does not answer: %s", m.bin, log.String())
	}
	return nil
}

// Kill kills the server.
func (m *Mortal) Kill() {
	if m.ended != nil {
		_ = m.cmd.Process.Kill()
		<-m.ended
		m.ended = nil
	}
}

func (m *Mortal) stop() {
	m.Kill()
	_ = os.RemoveAll(m.dir)
}

// answers waits until the server does, or has ended.
func answers(addr string, ended <-chan struct{}) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-ended:
			return false
		case <-time.After(50 * time.Millisecond):
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return true
		}
	}
	return false
}
