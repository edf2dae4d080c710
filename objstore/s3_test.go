package objstore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/s3test"
)

// s3Bucket makes an empty bucket on the server.
func s3Bucket(t *testing.T) S3Options {
	t.Helper()
	endpoint, bucket := s3test.Bucket(t)
	return S3Options{
		Endpoint: endpoint, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
		Bucket: bucket, PartSize: 5 << 20, Backoff: time.Millisecond,
	}
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
	if !s3test.Running(t) {
		return
	}
	t.Run("lost answers of conditional writes are settled", lostAnswersOfConditionalWritesAreSettled)
	t.Run("transient failures are retried", transientFailuresAreRetried)
	t.Run("sweep gives up uploads of dead writers", sweepGivesUpUploadsOfDeadWriters)
	t.Run("the environment is heeded", s3TakesWhatTheEnvironmentGives)
	t.Run("a refusal after a lost answer leaves it open", aRefusalAfterALostAnswerLeavesItOpen)
	t.Run("the end of an object is final", theEndOfAnObjectIsFinal)
	t.Run("an upload whose completion was lost is there", anUploadWhoseCompletionWasLostIsThere)
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

// aRefusalAfterALostAnswerLeavesItOpen: the first write may still arrive when the second
// is refused, as when credentials expire meanwhile.
func aRefusalAfterALostAnswerLeavesItOpen(t *testing.T) {
	opts := s3Bucket(t)
	var puts atomic.Int64
	opts.Transport = transport(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPut {
			return http.DefaultTransport.RoundTrip(r)
		}
		if puts.Add(1) == 1 {
			return nil, errLost
		}
		return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	want(t, openS3(t, opts).PutIfAbsent(t.Context(), "k", []byte("ours")), ErrAmbiguous)
	if n := puts.Load(); n != 2 {
		t.Errorf("%d writes", n)
	}
	err := openS3(t, opts).PutIfAbsent(t.Context(), "k", []byte("ours")) // refused at once
	if err == nil || errors.Is(err, ErrAmbiguous) {
		t.Errorf("a write that was refused is %v", err)
	}
}

// theEndOfAnObjectIsFinal asks for bytes beyond it, once.
func theEndOfAnObjectIsFinal(t *testing.T) {
	opts := s3Bucket(t)
	ok(t, openS3(t, opts).Put(t.Context(), "k", []byte("value")))
	for _, off := range []int64{3, 5, 100, 1<<63 - 2} {
		var n atomic.Int64
		opts.Transport = &unreliable{func(*http.Request) (bool, bool) { n.Add(1); return false, false }}
		_, err := openS3(t, opts).GetRange(t.Context(), "k", off, 4)
		want(t, err, io.ErrUnexpectedEOF)
		if n := n.Load(); n > 1 {
			t.Errorf("asked %d times for bytes at %d of 5", n, off)
		}
	}
}

// anUploadWhoseCompletionWasLostIsThere: some servers know no such upload any more when
// its completion is asked for again.
func anUploadWhoseCompletionWasLostIsThere(t *testing.T) {
	opts := s3Bucket(t)
	var n atomic.Int64
	opts.Transport = transport(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method != http.MethodPost || !r.URL.Query().Has("uploadId"):
		case n.Add(1) == 1:
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
				err = errLost
			}
			return nil, err
		default:
			return &http.Response{StatusCode: http.StatusNotFound, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}
		return http.DefaultTransport.RoundTrip(r)
	})
	s := openS3(t, opts)
	w, err := s.Create(t.Context(), "big")
	ok(t, err)
	_, err = w.Write(make([]byte, 6<<20))
	ok(t, err)
	ok(t, w.Close())
	info, err := s.Stat(t.Context(), "big")
	ok(t, err)
	if info.Size != 6<<20 || n.Load() != 2 {
		t.Errorf("%d bytes after %d tries", info.Size, n.Load())
	}
}

// transport answers requests.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestS3CallsEndWithTheirContext: every request carries the caller's context.
func TestS3CallsEndWithTheirContext(t *testing.T) {
	type mark struct{}
	var foreign atomic.Int64
	s := openS3(t, S3Options{
		Bucket: "bucket", Endpoint: "http://127.0.0.1:1", Region: "r", AccessKey: "a", SecretKey: "s", Attempts: 1,
		Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.Context().Value(mark{}) == nil {
				foreign.Add(1)
			}
			return nil, errLost
		}),
	})
	ctx := context.WithValue(t.Context(), mark{}, true)
	for name, call := range map[string]func() error{
		"get":           func() error { _, err := s.Get(ctx, "k", 1); return err },
		"get range":     func() error { _, err := s.GetRange(ctx, "k", 0, 1); return err },
		"stat":          func() error { _, err := s.Stat(ctx, "k"); return err },
		"put":           func() error { return s.Put(ctx, "k", nil) },
		"put if absent": func() error { return s.PutIfAbsent(ctx, "k", nil) },
		"delete":        func() error { return s.Delete(ctx, "k") },
		"sweep":         func() error { _, err := s.Sweep(ctx, "", 0); return err },
		"list": func() (err error) {
			for _, err = range s.List(ctx, ListOptions{}) {
			}
			return err
		},
	} {
		want(t, call(), errLost)
		if foreign.Swap(0) != 0 {
			t.Errorf("%s: a request that its context does not end", name)
		}
	}
}
