package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
)

const testAccess, testSecret = "objstore-test", "objstore-test-secret"

var server struct {
	once     sync.Once
	endpoint string
	err      error
	stop     func()
	buckets  atomic.Int64
}

func stopServer() {
	if server.stop != nil {
		server.stop()
	}
}

// findServer returns the path of versitygw: FOLDLOG_VERSITYGW, the PATH, or where
// go install puts it.
func findServer() (string, error) {
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

// startServer starts a real S3 server on loopback over a temporary directory.
func startServer() {
	bin, err := findServer()
	if err != nil {
		server.err = err
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		server.err = err
		return
	}
	addr := l.Addr().String()
	l.Close()
	dir, err := os.MkdirTemp("", "objstore-s3-")
	if err != nil {
		server.err = err
		return
	}
	cmd := exec.Command(bin, "--port", addr, "--quiet", "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+testAccess, "ROOT_SECRET_KEY="+testSecret)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if server.err = cmd.Start(); server.err != nil {
		return
	}
	server.stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	server.endpoint = "http://" + addr
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	server.err = fmt.Errorf("%s does not answer: %s", bin, log.String())
}

// haveServer reports whether there is a server to test with. In CI there must be.
func haveServer(t *testing.T) bool {
	t.Helper()
	server.once.Do(startServer)
	if server.err != nil {
		if os.Getenv("CI") != "" || os.Getenv("FOLDLOG_VERSITYGW") != "" {
			t.Fatalf("no S3 server: %v", server.err)
		}
		t.Logf("S3 is left out, there is no server: %v", server.err)
	}
	return server.err == nil
}

// s3Bucket makes an empty bucket on the server.
func s3Bucket(t *testing.T) S3Options {
	t.Helper()
	opts := S3Options{
		Endpoint: server.endpoint, Region: "us-east-1", AccessKey: testAccess, SecretKey: testSecret,
		Bucket: fmt.Sprintf("bucket-%d", server.buckets.Add(1)), PartSize: 5 << 20, Backoff: time.Millisecond,
	}
	s := openS3(t, opts)
	if err := s.client.MakeBucket(t.Context(), opts.Bucket, minio.MakeBucketOptions{}); err != nil {
		t.Fatal(err)
	}
	return opts
}

func openS3(t *testing.T, opts S3Options) *S3 {
	t.Helper()
	s, err := OpenS3(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	if !haveServer(t) {
		return
	}
	t.Run("lost answers of conditional writes are settled", lostAnswersOfConditionalWritesAreSettled)
	t.Run("transient failures are retried", transientFailuresAreRetried)
	t.Run("sweep gives up uploads of dead writers", sweepGivesUpUploadsOfDeadWriters)
	t.Run("the environment is heeded", s3TakesWhatTheEnvironmentGives)
}

// unreliable loses answers, or whole requests, of the calls that a rule picks.
type unreliable struct {
	rule func(*http.Request) (lost, done bool)
}

var errLost = errors.New("connection lost")

func (u *unreliable) RoundTrip(r *http.Request) (*http.Response, error) {
	lost, done := u.rule(r)
	if lost && !done {
		return nil, errLost
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if lost && err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errLost
	}
	return resp, err
}

// firstPut applies to the first n writes.
func firstPut(n int64, done bool) func(*http.Request) (bool, bool) {
	var seen atomic.Int64
	return func(r *http.Request) (bool, bool) {
		return r.Method == http.MethodPut && seen.Add(1) <= n, done
	}
}

func lostAnswersOfConditionalWritesAreSettled(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  func(*http.Request) (bool, bool)
		taken bool
		want  error
	}{
		{"the write arrived", firstPut(1, true), false, nil},
		{"the write got lost", firstPut(1, false), false, nil},
		{"several got lost", firstPut(3, false), false, nil},
		{"the key was taken", firstPut(1, true), true, ErrExists},
		{"the key was taken and the write got lost", firstPut(2, false), true, ErrExists},
		{"nothing ever arrives", firstPut(1000, false), false, ErrAmbiguous},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := s3Bucket(t)
			plain := openS3(t, opts)
			if c.taken {
				ok(t, plain.PutIfAbsent(t.Context(), "k", []byte("theirs")))
			}
			opts.Transport = &unreliable{c.rule}
			err := openS3(t, opts).PutIfAbsent(t.Context(), "k", []byte("ours"))
			if c.want == nil {
				ok(t, err)
				got, err := plain.Get(t.Context(), "k", 10)
				ok(t, err)
				if string(got) != "ours" {
					t.Errorf("holds %q", got)
				}
				return
			}
			want(t, err, c.want)
		})
	}
}

func transientFailuresAreRetried(t *testing.T) {
	opts := s3Bucket(t)
	var n atomic.Int64
	opts.Transport = &unreliable{func(*http.Request) (bool, bool) { return n.Add(1)%2 == 1, false }}
	s := openS3(t, opts)
	ok(t, s.Put(t.Context(), "a/k", []byte("value")))
	got, err := s.GetRange(t.Context(), "a/k", 1, 3)
	ok(t, err)
	if string(got) != "alu" {
		t.Errorf("read %q", got)
	}
	if keys := list(t, s, ListOptions{}); len(keys) != 1 {
		t.Errorf("listed %v", keys)
	}
	w, err := s.Create(t.Context(), "big")
	ok(t, err)
	_, err = w.Write(make([]byte, 11<<20))
	ok(t, err)
	ok(t, w.Close())
	ok(t, s.Delete(t.Context(), "a/k"))
}

func sweepGivesUpUploadsOfDeadWriters(t *testing.T) {
	s := openS3(t, s3Bucket(t))
	w, err := s.Create(t.Context(), "dead")
	ok(t, err)
	_, err = w.Write(make([]byte, 6<<20))
	ok(t, err)
	if n, err := s.Sweep(t.Context(), "", time.Hour); err != nil || n != 0 {
		t.Errorf("swept %d, %v of the living", n, err)
	}
	if n, err := s.Sweep(t.Context(), "", -time.Hour); err != nil || n != 1 {
		t.Errorf("swept %d, %v", n, err)
	}
}

func s3TakesWhatTheEnvironmentGives(t *testing.T) {
	opts := s3Bucket(t)
	t.Setenv("AWS_ENDPOINT_URL", opts.Endpoint)
	t.Setenv("AWS_REGION", opts.Region)
	t.Setenv("AWS_ACCESS_KEY_ID", opts.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", opts.SecretKey)
	s := openS3(t, S3Options{Bucket: opts.Bucket})
	ok(t, s.Put(context.Background(), "k", []byte("v")))
}

func TestS3OptionsAreChecked(t *testing.T) {
	for name, opts := range map[string]S3Options{
		"no bucket":       {Endpoint: "http://127.0.0.1:1"},
		"no URL":          {Endpoint: "127.0.0.1:1", Bucket: "b"},
		"part size small": {Endpoint: "http://127.0.0.1:1", Bucket: "b", PartSize: 1},
	} {
		if _, err := OpenS3(opts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
