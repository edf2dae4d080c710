package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// Store is the files of the datagen logs at a server. It has nothing else: keys below
// other directories are not found.
type Store struct{ c *Client }

var _ objstore.Store = (*Store)(nil)

// Store returns the files of the datagen logs at the server.
func (c *Client) Store() *Store { return &Store{c} }

const objectsPath = "/api/v1/objects"

func failed(op, key string, err error) error {
	if err == nil {
		return nil
	}
	var s *StatusError
	if errors.As(err, &s) {
		switch s.Status {
		case http.StatusNotFound:
			err = fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
		case http.StatusPreconditionFailed:
			err = objstore.ErrExists
		case http.StatusUnauthorized, http.StatusForbidden:
			err = fmt.Errorf("%w: %w", objstore.ErrDenied, err)
		case http.StatusInsufficientStorage: // there may be room again
		default:
			if errors.Is(err, ErrRefused) {
				err = fmt.Errorf("%w: %w", objstore.ErrRefused, err)
			}
		}
	}
	if hopeless(err) {
		err = fmt.Errorf("%w: %w", objstore.ErrRefused, err)
	}
	return &objstore.Error{Op: op, Key: key, Err: err}
}

func (s *Store) request(ctx context.Context, method, key string, header http.Header, body func() (io.Reader, int64)) (*http.Response, error) {
	if err := errors.Join(ctx.Err(), objstore.CheckKey(key)); err != nil {
		return nil, err
	}
	return s.c.send(ctx, &request{method: method, path: objectsPath, query: url.Values{"key": {key}}, header: header, body: body})
}

// Get implements [objstore.Store].
func (s *Store) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := s.read(ctx, key, nil, func(resp *http.Response) (int64, error) {
		if resp.ContentLength > limit {
			return 0, objstore.ErrTooLarge
		}
		return resp.ContentLength, nil
	})
	return b, failed("get", key, err)
}

// read reads an answer whose length is known, again if it is cut.
func (s *Store) read(ctx context.Context, key string, header http.Header, length func(*http.Response) (int64, error)) ([]byte, error) {
	for try := 1; ; try++ {
		resp, err := s.request(ctx, http.MethodGet, key, header, nil)
		if err != nil {
			return nil, err
		}
		b, err := readBody(resp, length)
		if !errors.Is(err, errCut) || ctx.Err() != nil || try == mostCuts {
			return b, err
		}
	}
}

func readBody(resp *http.Response, length func(*http.Response) (int64, error)) ([]byte, error) {
	defer resp.Body.Close()
	n, err := length(resp)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, fmt.Errorf("%w: an answer without a length", ErrRefused)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(resp.Body, b); err != nil {
		return nil, fmt.Errorf("%w: %w", errCut, err)
	}
	return b, nil
}

// GetRange implements [objstore.Store].
func (s *Store) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 {
		return nil, failed("get range", key, io.ErrUnexpectedEOF)
	}
	if n == 0 {
		info, err := s.Stat(ctx, key)
		if err == nil && off > info.Size {
			err = failed("get range", key, io.ErrUnexpectedEOF)
		}
		return []byte{}, err
	}
	header := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", off, off+n-1)}}
	b, err := s.read(ctx, key, header, func(resp *http.Response) (int64, error) {
		if resp.StatusCode != http.StatusPartialContent || resp.ContentLength != n {
			return 0, io.ErrUnexpectedEOF
		}
		return n, nil
	})
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusRequestedRangeNotSatisfiable {
		err = io.ErrUnexpectedEOF
	}
	return b, failed("get range", key, err)
}

// Stat implements [objstore.Store].
func (s *Store) Stat(ctx context.Context, key string) (objstore.Info, error) {
	resp, err := s.request(ctx, http.MethodHead, key, nil, nil)
	if err != nil {
		return objstore.Info{}, failed("stat", key, err)
	}
	defer resp.Body.Close()
	at, err := time.Parse(time.RFC3339Nano, resp.Header.Get("Foldlog-Modified"))
	if err != nil || resp.ContentLength < 0 {
		return objstore.Info{}, failed("stat", key, fmt.Errorf("%w: the answer is not one of a Foldlog server", ErrRefused))
	}
	return objstore.Info{Key: key, Size: resp.ContentLength, Modified: at}, nil
}

// objectLine is a line of a listing.
type objectLine struct {
	Key      string
	Size     int64
	Modified time.Time
	End      bool
}

// List implements [objstore.Store]. A listing that is cut goes on where it was.
func (s *Store) List(ctx context.Context, opts objstore.ListOptions) iter.Seq2[objstore.Info, error] {
	return func(yield func(objstore.Info, error) bool) {
		for try := 1; ; try++ {
			before := opts.StartAfter
			done, err := s.list(ctx, &opts, yield)
			if done {
				return
			}
			if opts.StartAfter != before {
				try = 1
			}
			if err != nil && (try == mostCuts || ctx.Err() != nil || !errors.Is(err, errCut)) {
				yield(objstore.Info{}, failed("list", opts.Prefix, err))
				return
			}
		}
	}
}

func (s *Store) list(ctx context.Context, opts *objstore.ListOptions, yield func(objstore.Info, error) bool) (done bool, err error) {
	q := url.Values{"prefix": {opts.Prefix}, "after": {opts.StartAfter}}
	if opts.Delimiter {
		q.Set("delimiter", "true")
	}
	resp, err := s.c.send(ctx, &request{method: http.MethodGet, path: objectsPath, query: q})
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for {
		var line objectLine
		if err := dec.Decode(&line); err != nil {
			return false, fmt.Errorf("%w: %w", errCut, err)
		}
		if line.End {
			return true, nil
		}
		opts.StartAfter = line.Key
		if !yield(objstore.Info{Key: line.Key, Size: line.Size, Modified: line.Modified}, nil) {
			return true, nil
		}
	}
}

func bytesBody(data []byte) func() (io.Reader, int64) {
	return func() (io.Reader, int64) { return bytes.NewReader(data), int64(len(data)) }
}

// put makes a call that answers with nothing.
func (s *Store) put(ctx context.Context, method, key string, header http.Header, body func() (io.Reader, int64)) error {
	resp, err := s.request(ctx, method, key, header, body)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Put implements [objstore.Store].
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return failed("put", key, s.put(ctx, http.MethodPut, key, nil, bytesBody(data)))
}

// PutIfAbsent implements [objstore.Store]. The bytes under a key show who has won it, so
// that a call may be repeated.
func (s *Store) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	err := s.put(ctx, http.MethodPut, key, http.Header{"If-None-Match": {"*"}}, bytesBody(data))
	var status *StatusError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status) && status.Status == http.StatusPreconditionFailed, errors.Is(err, ErrAway), ctx.Err() != nil:
		err = s.settle(context.WithoutCancel(ctx), key, data, err)
	}
	return failed("put if absent", key, err)
}

// settle tells who has won a key after an answer that was lost, or says so.
func (s *Store) settle(ctx context.Context, key string, data []byte, cause error) error {
	got, err := s.Get(ctx, key, int64(len(data)))
	switch {
	case err == nil && bytes.Equal(got, data):
		return nil
	case err == nil || errors.Is(err, objstore.ErrTooLarge):
		return objstore.ErrExists
	}
	return errors.Join(objstore.ErrAmbiguous, cause, err)
}

// Delete implements [objstore.Store].
func (s *Store) Delete(ctx context.Context, key string) error {
	return failed("delete", key, s.put(ctx, http.MethodDelete, key, nil, nil))
}

// Create implements [objstore.Store]. The bytes are kept in a file until Close sends
// them.
func (s *Store) Create(ctx context.Context, key string) (objstore.Writer, error) {
	if err := errors.Join(ctx.Err(), objstore.CheckKey(key)); err != nil {
		return nil, failed("create", key, err)
	}
	f, err := os.CreateTemp("", "foldlog-*")
	if err != nil {
		return nil, failed("create", key, err)
	}
	return &storeWriter{store: s, ctx: ctx, key: key, f: f}, nil
}

type storeWriter struct {
	store *Store
	ctx   context.Context
	key   string
	f     *os.File
	size  int64
	ended bool
}

// Write implements io.Writer.
func (w *storeWriter) Write(b []byte) (int, error) {
	n, err := w.f.Write(b)
	w.size += int64(n)
	return n, err
}

// Close implements [objstore.Writer].
func (w *storeWriter) Close() error {
	if w.ended {
		return failed("create", w.key, os.ErrClosed)
	}
	err := w.store.put(w.ctx, http.MethodPut, w.key, nil,
		func() (io.Reader, int64) { return io.NewSectionReader(w.f, 0, w.size), w.size })
	return failed("create", w.key, errors.Join(err, w.Abort()))
}

// Abort implements [objstore.Writer].
func (w *storeWriter) Abort() error {
	if w.ended {
		return nil
	}
	w.ended = true
	return errors.Join(w.f.Close(), os.Remove(w.f.Name()))
}
