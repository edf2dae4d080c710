package objstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/s3test"
)

// cutBody is an answer that ends in the middle, as one that was cut.
type cutBody struct {
	io.Reader
	io.Closer
}

func cut(resp *http.Response) {
	half := io.LimitReader(resp.Body, resp.ContentLength/2)
	resp.Body = cutBody{io.MultiReader(half, iotest.ErrReader(io.ErrUnexpectedEOF)), resp.Body}
}

// silentlyCut leaves out the length too: nothing in the answer says that there was more.
func silentlyCut(resp *http.Response) {
	resp.Body = cutBody{io.LimitReader(resp.Body, resp.ContentLength/2), resp.Body}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// fickle does something else to each request, by lot.
type fickle struct {
	mu   sync.Mutex
	rand *rand.Rand
	// storm is how many requests are still answered with 503.
	storm int
}

func (f *fickle) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	fate := f.rand.IntN(12)
	if fate == 0 && f.storm == 0 {
		f.storm = f.rand.IntN(4)
	}
	storm := f.storm > 0
	if storm {
		f.storm--
	}
	f.mu.Unlock()
	if storm {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if fate == 1 {
		return nil, errLost
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch {
	case fate == 2:
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return nil, errLost
	case r.Method != http.MethodGet || resp.StatusCode/100 != 2 || resp.ContentLength <= 0:
	case fate == 3:
		cut(resp)
	case fate == 4 && !r.URL.Query().Has("list-type"):
		silentlyCut(resp)
	case fate == 5:
		resp.Body = cutBody{iotest.OneByteReader(resp.Body), resp.Body}
	}
	return resp, nil
}

// TestOneOfManyWinsAKeyOverAFickleNetwork has several put each key if it is absent, over a
// network that loses requests and answers, cuts them and is refused in storms. Whoever is
// told that it won has its bytes there, and everybody reads them as they are.
func TestOneOfManyWinsAKeyOverAFickleNetwork(t *testing.T) {
	if !s3test.Running(t) {
		return
	}
	seed, opts := proctest.Seed(t), s3Bucket(t)
	opts.Attempts = 200
	const writers = 4
	keys := 12
	if testing.Short() {
		keys = 4
	}
	text := func(writer, key int) []byte {
		return bytes.Repeat(fmt.Appendf(nil, "%d of writer %d, ", key, writer), 1+50*(key%5))
	}
	var (
		all sync.WaitGroup
		won [writers][]error
	)
	for w := range writers {
		won[w] = make([]error, keys)
		mine := opts
		mine.Transport = &fickle{rand: rand.New(rand.NewPCG(seed, uint64(w)))}
		s := openS3(t, mine)
		all.Go(func() {
			for k := range keys {
				won[w][k] = s.PutIfAbsent(t.Context(), fmt.Sprint("key-", k), text(w, k))
			}
			for k := range keys {
				key := fmt.Sprint("key-", k)
				got, err := s.Get(t.Context(), key, 1<<20)
				if err != nil || !strings.HasPrefix(string(got), fmt.Sprintf("%d of writer", k)) {
					t.Errorf("%s: %q, %v", key, got, err)
					continue
				}
				part, err := s.GetRange(t.Context(), key, 3, int64(len(got)-3))
				if err != nil || !bytes.Equal(part, got[3:]) {
					t.Errorf("a part of %s: %q, %v", key, part, err)
				}
			}
		})
	}
	all.Wait()
	plain := openS3(t, opts)
	for k := range keys {
		got, err := plain.Get(t.Context(), fmt.Sprint("key-", k), 1<<20)
		ok(t, err)
		for w := range writers {
			err, is := won[w][k], bytes.Equal(got, text(w, k))
			if is && err != nil || !is && !errors.Is(err, ErrExists) {
				t.Errorf("writer %d was told of key %d: %v, whose bytes are its own: %v", w, k, err, is)
			}
		}
	}
}

// TestAnAnswerThatIsNotTheRangeIsRefused is about proxies that leave ranges out.
func TestAnAnswerThatIsNotTheRangeIsRefused(t *testing.T) {
	whole := transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusOK, Request: r, ContentLength: 10, Body: io.NopCloser(strings.NewReader("0123456789")),
			Header: http.Header{"Content-Length": {"10"}, "Etag": {`"e"`}, "Last-Modified": {"Mon, 02 Jan 2006 15:04:05 GMT"}},
		}, nil
	})
	s := openS3(t, S3Options{Bucket: "bucket", Endpoint: "http://127.0.0.1:1", Region: "r", AccessKey: "a", SecretKey: "s", Transport: whole})
	got, err := s.GetRange(t.Context(), "k", 4, 3)
	if want(t, err, ErrRefused); got != nil {
		t.Errorf("%q", got)
	}
	got, err = s.GetRange(t.Context(), "k", 0, 3)
	if ok(t, err); string(got) != "012" {
		t.Errorf("%q", got)
	}
}
