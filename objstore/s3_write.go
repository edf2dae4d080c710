package objstore

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/foldlog/foldlog/internal/sleep"
)

// s3Cause turns an answer of the server into an error of this package.
func s3Cause(err error) error {
	resp := minio.ToErrorResponse(err)
	switch {
	case err == nil:
		return nil
	case resp.Code == minio.NoSuchBucket:
		return errors.Join(ErrNoBucket, err)
	case resp.Code == "RequestTimeTooSkewed":
		return errors.Join(ErrDenied, ErrClock, err)
	case slices.Contains(badCredentials, resp.Code), resp.StatusCode == http.StatusUnauthorized, resp.StatusCode == http.StatusForbidden:
		return errors.Join(ErrDenied, err)
	case resp.Code == minio.NoSuchKey, resp.StatusCode == http.StatusNotFound:
		return errors.Join(ErrNotFound, err)
	case resp.StatusCode == http.StatusPreconditionFailed:
		return errors.Join(errPrecondition, err)
	case !mayPass(resp.StatusCode):
		return errors.Join(ErrRefused, err)
	}
	if at := (*url.Error)(nil); errors.As(err, &at) {
		return at.Err // it names the server, and the error around this one the object
	}
	return err
}

// errPrecondition: the key of a conditional write is taken.
var errPrecondition = errors.New("precondition failed")

// badCredentials are answers about credentials that are not of status 401 or 403.
var badCredentials = []string{"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "XAdminUserNotFound"}

// mayPass tells the statuses, 0 for none, after which a call may succeed when it is made
// again.
func mayPass(status int) bool {
	return status < 300 || status >= 500 || status == http.StatusConflict || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

// passing reports whether a failed call may succeed when it is made again.
func passing(err error) bool {
	for _, final := range []error{ErrNotFound, ErrTooLarge, ErrDenied, ErrNoBucket, ErrRefused, errShortRange} {
		if errors.Is(err, final) {
			return false
		}
	}
	return true
}

// retry makes a call that may be repeated until it succeeds, fails for good, or
// has been tried often enough.
func (s *S3) retry(ctx context.Context, call func() error) error {
	for try := 1; ; try++ {
		err := s3Cause(call())
		if err == nil || !passing(err) || try >= s.opts.Attempts || ctx.Err() != nil {
			return err
		}
		if sleep.For(ctx, backoff(s.opts.Backoff, try)) != nil {
			return err
		}
	}
}

// backoff doubles a first pause with every try, up to 64 times as long, and takes a
// random part between half and all of that.
func backoff(first time.Duration, try int) time.Duration {
	d := first << min(try-1, 6)
	return d/2 + rand.N(d/2+1)
}

// PutIfAbsent implements [Store]. It writes until the outcome is known. Any failure is
// settled by reading back, a key that is taken too: it may be our own write, whose answer
// was lost, that took it.
func (s *S3) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return wrap("put if absent", key, err)
	}
	return wrap("put if absent", key, s.putIfAbsent(ctx, key, data))
}

func (s *S3) putIfAbsent(ctx context.Context, key string, data []byte) error {
	var opts minio.PutObjectOptions
	opts.SetMatchETagExcept("*")
	open := false // a write may have arrived, or be on its way still
	for try := 1; ; try++ {
		err := s3Cause(s.putOnce(ctx, key, data, opts))
		if err == nil {
			return nil
		}
		taken := errors.Is(err, errPrecondition)
		if !taken && !passing(err) {
			return inDoubt(open, err)
		}
		open = open || taken || minio.ToErrorResponse(err).StatusCode != http.StatusConflict
		got, back := s.get(ctx, key, int64(len(data)))
		switch {
		case back == nil && bytes.Equal(got, data):
			return nil
		case back == nil || errors.Is(back, ErrTooLarge):
			return ErrExists
		}
		if try >= s.opts.Attempts || sleep.For(ctx, backoff(s.opts.Backoff, try)) != nil {
			return inDoubt(open, err)
		}
	}
}

func inDoubt(open bool, err error) error {
	if open {
		return errors.Join(ErrAmbiguous, err)
	}
	return err
}

// Create implements [Store] with a multipart upload: at most one part is held in
// memory, and an object smaller than a part is one plain write.
func (s *S3) Create(ctx context.Context, key string) (Writer, error) {
	if err := CheckKey(key); err != nil {
		return nil, wrap("create", key, err)
	}
	return &s3Writer{ctx: ctx, store: s, key: key}, nil
}

type s3Writer struct {
	ctx    context.Context
	store  *S3
	key    string
	buf    []byte
	upload string
	parts  []minio.CompletePart
	size   int64
	err    error
	done   bool
}

func (w *s3Writer) Write(b []byte) (int, error) {
	if w.done {
		return 0, wrap("write", w.key, errClosed)
	}
	total := len(b)
	part := int(w.store.opts.PartSize)
	for len(b) > 0 && w.err == nil {
		if w.buf == nil {
			w.buf = make([]byte, 0, min(part, max(len(b), 64<<10)))
		}
		n := min(len(b), part-len(w.buf))
		w.buf = append(w.buf, b[:n]...)
		w.size += int64(n)
		b = b[n:]
		if len(w.buf) == part {
			w.err = w.flush()
		}
	}
	return total - len(b), wrap("write", w.key, w.err)
}

// flush uploads what is buffered as the next part.
func (w *s3Writer) flush() error {
	if w.upload == "" {
		err := w.store.retry(w.ctx, func() (err error) {
			w.upload, err = w.store.core.NewMultipartUpload(w.ctx, w.store.opts.Bucket, w.key,
				minio.PutObjectOptions{ContentType: "application/octet-stream"})
			return err
		})
		if err != nil {
			return err
		}
	}
	number := len(w.parts) + 1
	err := w.store.retry(w.ctx, func() error {
		p, err := w.store.core.PutObjectPart(w.ctx, w.store.opts.Bucket, w.key, w.upload, number,
			bytes.NewReader(w.buf), int64(len(w.buf)), minio.PutObjectPartOptions{})
		if err == nil {
			w.parts = append(w.parts, minio.CompletePart{PartNumber: number, ETag: p.ETag})
		}
		return err
	})
	w.buf = w.buf[:0]
	return err
}

// Close implements [Writer].
func (w *s3Writer) Close() error {
	if w.done {
		return wrap("close", w.key, errClosed)
	}
	err := w.err
	if err == nil && w.upload == "" {
		w.done = true
		return w.store.Put(w.ctx, w.key, w.buf)
	}
	if err == nil && len(w.buf) > 0 {
		err = w.flush()
	}
	if err == nil {
		err = w.complete()
	}
	if err != nil {
		return wrap("close", w.key, errors.Join(err, w.Abort()))
	}
	w.done = true
	return nil
}

// complete makes the parts an object. An upload that is not known any more was completed
// by an earlier try if the object is there with the right size.
func (w *s3Writer) complete() error {
	tried := false
	return w.store.retry(w.ctx, func() error {
		_, err := w.store.core.CompleteMultipartUpload(w.ctx, w.store.opts.Bucket, w.key, w.upload, w.parts, minio.PutObjectOptions{})
		if tried && errors.Is(s3Cause(err), ErrNotFound) {
			if info, back := w.store.Stat(w.ctx, w.key); back == nil && info.Size == w.size {
				return nil
			}
		}
		tried = true
		return err
	})
}

// Abort implements [Writer].
func (w *s3Writer) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	if w.upload == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), 10*time.Second)
	defer cancel()
	return wrap("abort", w.key, w.store.core.AbortMultipartUpload(ctx, w.store.opts.Bucket, w.key, w.upload))
}

// Sweep implements [Sweeper]: it gives up multipart uploads of writers that died.
func (s *S3) Sweep(ctx context.Context, prefix string, age time.Duration) (int, error) {
	swept := 0
	for up := range s.client.ListIncompleteUploads(ctx, s.opts.Bucket, prefix, true) {
		if up.Err != nil {
			return swept, wrap("sweep", prefix, s3Cause(up.Err))
		}
		if time.Since(up.Initiated) < age {
			continue
		}
		err := s3Cause(s.core.AbortMultipartUpload(ctx, s.opts.Bucket, up.Key, up.UploadID))
		if errors.Is(err, ErrNotFound) {
			continue // it ended meanwhile
		}
		if err != nil {
			return swept, wrap("sweep", prefix, err)
		}
		swept++
	}
	return swept, nil
}
