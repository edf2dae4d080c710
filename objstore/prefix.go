package objstore

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Prefix returns the part of a store below a directory: every key is prefixed
// with dir and a slash. An empty dir is the store itself.
func Prefix(s Store, dir string) Store {
	dir = strings.Trim(dir, "/")
	if dir == "" {
		return s
	}
	return &prefixed{store: s, dir: dir + "/"}
}

type prefixed struct {
	store Store
	dir   string
}

var (
	_ Store   = (*prefixed)(nil)
	_ Sweeper = (*prefixed)(nil)
)

func (p *prefixed) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return p.store.Get(ctx, p.dir+key, limit)
}

func (p *prefixed) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	return p.store.GetRange(ctx, p.dir+key, off, n)
}

func (p *prefixed) Stat(ctx context.Context, key string) (Info, error) {
	info, err := p.store.Stat(ctx, p.dir+key)
	info.Key = strings.TrimPrefix(info.Key, p.dir)
	return info, err
}

func (p *prefixed) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	opts.Prefix = p.dir + opts.Prefix
	if opts.StartAfter != "" {
		opts.StartAfter = p.dir + opts.StartAfter
	}
	return func(yield func(Info, error) bool) {
		for info, err := range p.store.List(ctx, opts) {
			info.Key = strings.TrimPrefix(info.Key, p.dir)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (p *prefixed) Put(ctx context.Context, key string, data []byte) error {
	return p.store.Put(ctx, p.dir+key, data)
}

func (p *prefixed) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return p.store.PutIfAbsent(ctx, p.dir+key, data)
}

func (p *prefixed) Create(ctx context.Context, key string) (Writer, error) {
	return p.store.Create(ctx, p.dir+key)
}

func (p *prefixed) Delete(ctx context.Context, key string) error {
	return p.store.Delete(ctx, p.dir+key)
}

// Sweep does nothing if the store below has nothing to sweep.
func (p *prefixed) Sweep(ctx context.Context, prefix string, age time.Duration) (int, error) {
	if sw, ok := p.store.(Sweeper); ok {
		return sw.Sweep(ctx, p.dir+prefix, age)
	}
	return 0, nil
}
