package lance

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/foldlog/foldlog/lance/internal/datafile"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// cacheBudget bounds what a dataset's handles keep in memory together, in bytes.
const cacheBudget = 64 << 20

// cache keeps parsed parts of immutable objects: file metadata, index pages,
// deletions. It is shared by the versions that come from one Open.
type cache struct {
	mu    sync.Mutex
	items map[string]*list.Element
	order list.List
	used  int64
	// commits holds a token: commits through handles of one Open take turns, for
	// racing each other would only cost them.
	commits chan struct{}
	// pins is what clean-ups through these handles have seen of pins.
	pins pins.Watch
}

type cacheItem struct {
	key   string
	value any
	cost  int64
}

func newCache() *cache {
	c := &cache{items: map[string]*list.Element{}, commits: make(chan struct{}, 1)}
	c.commits <- struct{}{}
	return c
}

func (c *cache) get(key string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cacheItem).value
}

func (c *cache) put(key string, value any, cost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok || cost > cacheBudget/4 {
		return
	}
	c.items[key] = c.order.PushFront(&cacheItem{key, value, cost})
	for c.used += cost; c.used > cacheBudget; {
		last := c.order.Remove(c.order.Back()).(*cacheItem)
		delete(c.items, last.key)
		c.used -= last.cost
	}
}

// cached returns what load makes of an immutable object, once.
func cached[T any](c *cache, key string, load func() (T, int64, error)) (T, error) {
	if v, ok := c.get(key).(T); ok {
		return v, nil
	}
	v, cost, err := load()
	if err == nil {
		c.put(key, v, cost)
	}
	return v, err
}

// object is a data file in a store.
type object struct {
	store objstore.Store
	key   string
}

// ReadRange implements datafile.Source.
func (o object) ReadRange(ctx context.Context, off, n int64) ([]byte, error) {
	b, err := o.store.GetRange(ctx, o.key, off, n)
	return b, missing(o.key, err)
}

// openFile opens a data or index file. A size of zero is asked from the store.
func (d *Dataset) openFile(ctx context.Context, key string, size int64) (*datafile.File, error) {
	return cached(d.cache, key, func() (*datafile.File, int64, error) {
		if size == 0 {
			info, err := d.store.Stat(ctx, key)
			if err != nil {
				return nil, 0, missing(key, err)
			}
			size = info.Size
		}
		var src datafile.Source = object{d.store, key}
		kept := int64(0)
		if size <= smallFile {
			b, err := d.whole(ctx, key, size)
			if err != nil {
				return nil, 0, err
			}
			src, kept = inMemory{b}, size
		}
		f, err := datafile.Open(ctx, src, size)
		if err != nil {
			return nil, 0, in(key, err)
		}
		return f, f.MetadataCost() + kept, nil
	})
}

// smallFile is up to what size a file is read at once and kept: that is cheaper than the
// many requests for its parts.
const smallFile = 64 << 10

func (d *Dataset) whole(ctx context.Context, key string, size int64) ([]byte, error) {
	b, err := d.store.Get(ctx, key, size)
	if errors.Is(err, objstore.ErrTooLarge) || err == nil && int64(len(b)) != size {
		err = &CorruptError{Path: key, Err: fmt.Errorf("%w: it has not the %d bytes that the manifest says", ErrCorrupt, size)}
	}
	return b, missing(key, err)
}

// inMemory is a data file that was read whole.
type inMemory struct{ b []byte }

// ReadRange implements datafile.Source.
func (m inMemory) ReadRange(_ context.Context, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || n > int64(len(m.b))-off {
		return nil, fmt.Errorf("%w: %d bytes at %d of %d", ErrCorrupt, n, off, len(m.b))
	}
	return bytes.Clone(m.b[off : off+n]), nil
}
