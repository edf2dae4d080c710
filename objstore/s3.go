package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Defaults of [S3Options].
const (
	// DefaultS3Attempts is how often a call is tried.
	DefaultS3Attempts = 6
	// DefaultS3Backoff is the pause after the first failure; it doubles, with
	// jitter.
	DefaultS3Backoff = 100 * time.Millisecond
	// DefaultS3PartSize is the size of a part of a multipart upload, in bytes:
	// what one [Writer] holds in memory.
	DefaultS3PartSize = 16 << 20
)

// S3Options configures [OpenS3]. Empty fields come from the environment that other
// S3 programs read: AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION or
// AWS_DEFAULT_REGION, and for credentials AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
// and AWS_SESSION_TOKEN, the shared credentials file, or the machine's role.
type S3Options struct {
	// Bucket must exist.
	Bucket string
	// Endpoint is a URL; empty is Amazon's.
	Endpoint string
	// Region is sent with every signature; empty is asked from the server.
	Region string
	// AccessKey, SecretKey and SessionToken are credentials given outright.
	AccessKey, SecretKey, SessionToken string
	// Attempts bounds tries per call; zero is DefaultS3Attempts.
	Attempts int
	// Backoff is the first pause between tries; zero is DefaultS3Backoff.
	Backoff time.Duration
	// PartSize is in bytes, at least 5 MiB; zero is DefaultS3PartSize.
	PartSize int64
	// Transport carries the requests; nil is the client's default.
	Transport http.RoundTripper
}

// S3 is a store in a bucket of an S3-compatible server that honours If-None-Match
// and If-Match on writes.
type S3 struct {
	client *minio.Client
	core   minio.Core
	opts   S3Options
}

var (
	_ Store   = (*S3)(nil)
	_ Swapper = (*S3)(nil)
	_ Sweeper = (*S3)(nil)
)

// OpenS3 returns the store in a bucket. It makes no request.
func OpenS3(opts S3Options) (*S3, error) {
	opts = opts.withEnvironment()
	if opts.Bucket == "" {
		return nil, errors.New("open s3: no bucket named")
	}
	if opts.PartSize < 5<<20 {
		return nil, fmt.Errorf("open s3: part size of %d bytes is below 5 MiB", opts.PartSize)
	}
	u, err := url.Parse(opts.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("open s3: endpoint %q is not an http or https URL", opts.Endpoint)
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds:      opts.credentials(),
		Secure:     u.Scheme == "https",
		Region:     opts.Region,
		Transport:  opts.Transport,
		MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("open s3: %w", err)
	}
	return &S3{client: client, core: minio.Core{Client: client}, opts: opts}, nil
}

func firstEnv(value string, names ...string) string {
	for _, name := range names {
		if value == "" {
			value = os.Getenv(name)
		}
	}
	return value
}

func (o S3Options) withEnvironment() S3Options {
	o.Endpoint = firstEnv(o.Endpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
	if o.Endpoint == "" {
		o.Endpoint = "https://s3.amazonaws.com"
	}
	o.Region = firstEnv(o.Region, "AWS_REGION", "AWS_DEFAULT_REGION")
	if o.Attempts == 0 {
		o.Attempts = DefaultS3Attempts
	}
	if o.Backoff == 0 {
		o.Backoff = DefaultS3Backoff
	}
	if o.PartSize == 0 {
		o.PartSize = DefaultS3PartSize
	}
	return o
}

func (o S3Options) credentials() *credentials.Credentials {
	if o.AccessKey != "" {
		return credentials.NewStaticV4(o.AccessKey, o.SecretKey, o.SessionToken)
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{},
	})
}

// Get implements [Store].
func (s *S3) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, _, err := s.get(ctx, key, limit)
	return b, wrap("get", key, err)
}

func (s *S3) get(ctx context.Context, key string, limit int64) (b []byte, info Info, err error) {
	if err := CheckKey(key); err != nil {
		return nil, Info{}, err
	}
	err = s.retry(ctx, func() error {
		body, stat, _, err := s.core.GetObject(ctx, s.opts.Bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		info = infoOf(stat)
		if info.Key = key; stat.Size > limit {
			return ErrTooLarge
		}
		b, err = io.ReadAll(io.LimitReader(body, limit+1))
		if err == nil && int64(len(b)) > limit {
			err = ErrTooLarge
		}
		if err == nil && int64(len(b)) < stat.Size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return b, info, err
}

// GetRange implements [Store].
func (s *S3) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, wrap("get range", key, err)
	}
	if off < 0 || n < 0 {
		return nil, wrap("get range", key, io.ErrUnexpectedEOF)
	}
	if n == 0 { // a range of no bytes cannot be asked for
		info, err := s.Stat(ctx, key)
		if err == nil && off > info.Size {
			err = wrap("get range", key, io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	var b []byte
	err := s.retry(ctx, func() (err error) {
		b, err = s.getRange(ctx, key, off, n)
		return err
	})
	return b, wrap("get range", key, err)
}

// getRange trusts the server's length before the caller's, which may be hostile.
func (s *S3) getRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	var opts minio.GetObjectOptions
	if err := opts.SetRange(off, off+n-1); err != nil {
		return nil, err
	}
	body, stat, _, err := s.core.GetObject(ctx, s.opts.Bucket, key, opts)
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusRequestedRangeNotSatisfiable {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	defer body.Close()
	if stat.Size >= 0 && stat.Size < n {
		return nil, errShortRange
	}
	b := make([]byte, n)
	_, err = io.ReadFull(body, b)
	return b, err
}

// errShortRange tells an object's end, which is final, from a broken connection.
var errShortRange = fmt.Errorf("object ends within the range: %w", io.ErrUnexpectedEOF)

func infoOf(o minio.ObjectInfo) Info {
	return Info{Key: o.Key, Size: o.Size, Modified: o.LastModified, ETag: o.ETag}
}

// Stat implements [Store].
func (s *S3) Stat(ctx context.Context, key string) (info Info, err error) {
	if err := CheckKey(key); err != nil {
		return info, wrap("stat", key, err)
	}
	err = s.retry(ctx, func() error {
		o, err := s.client.StatObject(ctx, s.opts.Bucket, key, minio.StatObjectOptions{})
		info = infoOf(o)
		return err
	})
	return info, wrap("stat", key, err)
}

// List implements [Store]. A page that fails is asked for again from where the
// listing stood.
func (s *S3) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for {
			var page minio.ListBucketV2Result
			err := s.retry(ctx, func() (err error) {
				delimiter := ""
				if opts.Delimiter {
					delimiter = "/"
				}
				page, err = s.core.ListObjectsV2(s.opts.Bucket, opts.Prefix, opts.StartAfter, "", delimiter, 1000)
				return err
			})
			if err != nil {
				yield(Info{}, wrap("list", opts.Prefix, err))
				return
			}
			last, ok := yieldPage(page, opts.StartAfter, yield)
			if !ok || !page.IsTruncated || last == opts.StartAfter {
				return
			}
			opts.StartAfter = last
		}
	}
}

// yieldPage merges a page's objects and prefixes in key order and returns where
// the next page begins.
func yieldPage(page minio.ListBucketV2Result, after string, yield func(Info, error) bool) (string, bool) {
	objects, prefixes := page.Contents, page.CommonPrefixes
	for len(objects)+len(prefixes) > 0 {
		var info Info
		if len(prefixes) == 0 || len(objects) > 0 && objects[0].Key < prefixes[0].Prefix {
			info, objects = infoOf(objects[0]), objects[1:]
		} else {
			info, prefixes = Info{Key: prefixes[0].Prefix}, prefixes[1:]
		}
		if info.Key <= after {
			continue
		}
		after = info.Key
		if strings.HasSuffix(after, "/") {
			after += "\U0010ffff" // everything below the prefix has been told
		}
		if !yield(info, nil) {
			return after, false
		}
	}
	return after, true
}

// Delete implements [Store].
func (s *S3) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return wrap("delete", key, err)
	}
	err := s.retry(ctx, func() error {
		return s.client.RemoveObject(ctx, s.opts.Bucket, key, minio.RemoveObjectOptions{})
	})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return wrap("delete", key, err)
}

// Put implements [Store].
func (s *S3) Put(ctx context.Context, key string, data []byte) error {
	if err := CheckKey(key); err != nil {
		return wrap("put", key, err)
	}
	return wrap("put", key, s.retry(ctx, func() error {
		_, err := s.putOnce(ctx, key, data, minio.PutObjectOptions{})
		return err
	}))
}

func (s *S3) putOnce(ctx context.Context, key string, data []byte, opts minio.PutObjectOptions) (Info, error) {
	opts.DisableMultipart = true
	opts.ContentType = "application/octet-stream"
	up, err := s.client.PutObject(ctx, s.opts.Bucket, key, bytes.NewReader(data), int64(len(data)), opts)
	return Info{Key: key, Size: int64(len(data)), Modified: up.LastModified, ETag: up.ETag}, err
}
