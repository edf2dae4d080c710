package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
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

// S3 is a store in a bucket of an S3-compatible server that honours If-None-Match on
// writes.
type S3 struct {
	client *minio.Client
	core   minio.Core
	opts   S3Options
}

var (
	_ Store   = (*S3)(nil)
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
	b, err := s.get(ctx, key, limit)
	return b, wrap("get", key, err)
}

func (s *S3) get(ctx context.Context, key string, limit int64) (b []byte, err error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	err = s.retry(ctx, func() error {
		body, stat, _, err := s.core.GetObject(ctx, s.opts.Bucket, key, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close()
		if stat.Size > limit {
			return ErrTooLarge
		}
		b, err = io.ReadAll(io.LimitReader(body, limit+1))
		if err == nil && int64(len(b)) > limit {
			err = ErrTooLarge
		}
		size := stat.Size
		if err == nil && size < 0 { // without a length nothing tells an answer that was cut
			var o minio.ObjectInfo
			o, err = s.client.StatObject(ctx, s.opts.Bucket, key, minio.StatObjectOptions{})
			size = o.Size
		}
		if err == nil && int64(len(b)) < size {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return b, err
}

// GetRange implements [Store].
func (s *S3) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, wrap("get range", key, err)
	}
	if off < 0 || n < 0 || n > math.MaxInt64-off {
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
	body, stat, header, err := s.core.GetObject(ctx, s.opts.Bucket, key, opts)
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusRequestedRangeNotSatisfiable {
			err = errShortRange
		}
		return nil, err
	}
	defer body.Close()
	// Whatever answers with the whole object, as some proxies do, begins elsewhere.
	if off > 0 && !strings.HasPrefix(header.Get("Content-Range"), fmt.Sprintf("bytes %d-", off)) {
		return nil, fmt.Errorf("%w: the answer is not the range that was asked for", ErrRefused)
	}
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
	return Info{Key: o.Key, Size: o.Size, Modified: o.LastModified}
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

// List implements [Store]. A listing that fails is gone on with from where it stood.
func (s *S3) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if opts.Delimiter {
			s.listFolded(ctx, opts, yield)
			return
		}
		for going := true; going; {
			from := opts.StartAfter
			err := s.retry(ctx, func() error {
				return s.listed(ctx, opts, func(info Info) bool {
					opts.StartAfter = info.Key
					going = yield(info, nil)
					return going
				})
			})
			if err == nil {
				return
			}
			if opts.StartAfter == from {
				yield(Info{}, wrap("list", opts.Prefix, err))
				return
			}
		}
	}
}

// listFolded gathers the listing, in which a page's prefixes come after its objects.
func (s *S3) listFolded(ctx context.Context, opts ListOptions, yield func(Info, error) bool) {
	var infos []Info
	err := s.retry(ctx, func() error {
		infos = infos[:0]
		return s.listed(ctx, opts, func(info Info) bool {
			infos = append(infos, info)
			return true
		})
	})
	if err != nil {
		yield(Info{}, wrap("list", opts.Prefix, err))
		return
	}
	slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
	for _, info := range infos {
		if !yield(info, nil) {
			return
		}
	}
}

// listed calls found with what the server lists until it says no.
func (s *S3) listed(ctx context.Context, opts ListOptions, found func(Info) bool) error {
	for o := range s.client.ListObjectsIter(ctx, s.opts.Bucket, minio.ListObjectsOptions{
		Prefix: opts.Prefix, Recursive: !opts.Delimiter, StartAfter: opts.StartAfter,
	}) {
		if o.Err != nil {
			return o.Err
		}
		if o.Key > opts.StartAfter && !found(infoOf(o)) {
			return nil
		}
	}
	return ctx.Err()
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
		return s.putOnce(ctx, key, data, minio.PutObjectOptions{})
	}))
}

func (s *S3) putOnce(ctx context.Context, key string, data []byte, opts minio.PutObjectOptions) error {
	opts.DisableMultipart = true
	opts.ContentType = "application/octet-stream"
	_, err := s.client.PutObject(ctx, s.opts.Bucket, key, bytes.NewReader(data), int64(len(data)), opts)
	return err
}
