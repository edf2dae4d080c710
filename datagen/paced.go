package datagen

import (
	"context"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/objstore"
)

// paced is a store that is read and written at a bounded rate.
type paced struct {
	objstore.Store
	rate float64 // bytes a second

	mu   sync.Mutex
	free time.Time // when the next byte may go
}

func newPaced(s objstore.Store, rate int64) *paced { return &paced{Store: s, rate: float64(rate)} }

// pace waits until so many bytes more are within the rate.
func (p *paced) pace(ctx context.Context, n int64) {
	p.mu.Lock()
	now := time.Now()
	if p.free.Before(now) {
		p.free = now
	}
	wait := p.free.Sub(now)
	p.free = p.free.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	p.mu.Unlock()
	if wait > time.Millisecond {
		_ = sleep.For(ctx, wait)
	}
}

// Get implements objstore.Store.
func (p *paced) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	b, err := p.Store.Get(ctx, key, limit)
	p.pace(ctx, int64(len(b)))
	return b, err
}

// GetRange implements objstore.Store.
func (p *paced) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	p.pace(ctx, n)
	return p.Store.GetRange(ctx, key, off, n)
}

// Put implements objstore.Store.
func (p *paced) Put(ctx context.Context, key string, data []byte) error {
	p.pace(ctx, int64(len(data)))
	return p.Store.Put(ctx, key, data)
}

// Create implements objstore.Store.
func (p *paced) Create(ctx context.Context, key string) (objstore.Writer, error) {
	w, err := p.Store.Create(ctx, key)
	if err != nil {
		return nil, err
	}
	return &pacedWriter{w, ctx, p}, nil
}

// Sweep implements objstore.Sweeper if the store does.
func (p *paced) Sweep(ctx context.Context, prefix string, age time.Duration) (int, error) {
	if s, ok := p.Store.(objstore.Sweeper); ok {
		return s.Sweep(ctx, prefix, age)
	}
	return 0, nil
}

type pacedWriter struct {
	objstore.Writer
	ctx   context.Context
	store *paced
}

func (w *pacedWriter) Write(b []byte) (int, error) {
	w.store.pace(w.ctx, int64(len(b)))
	return w.Writer.Write(b)
}
