package datagen

import (
	"container/list"
	"context"
	"sync"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// generation is a generation's events without the bytes of blobs. It never changes.
type generation struct {
	events []Event
	items  map[string][]int
	bytes  int64
}

// cache holds decoded generations, the ones used last, up to a size.
type cache struct {
	limit int64

	mu    sync.Mutex
	size  int64
	byID  map[memwal.Place]*list.Element
	order *list.List // of *cached, the one used last in front
}

type cached struct {
	place memwal.Place
	once  sync.Once
	gen   *generation
	err   error
	// counted says that its size is in that of the cache. The cache's lock guards it.
	counted bool
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, byID: map[memwal.Place]*list.Element{}, order: list.New()}
}

// get returns a generation, decoding it if need be, once for all who ask. A decode
// that fails is not kept.
func (c *cache) get(ctx context.Context, s memwal.Source) (*generation, error) {
	c.mu.Lock()
	el := c.byID[s.Place]
	if el == nil {
		el = c.order.PushFront(&cached{place: s.Place})
		c.byID[s.Place] = el
	} else {
		c.order.MoveToFront(el)
	}
	c.mu.Unlock()
	x := el.Value.(*cached)
	loaded := false
	x.once.Do(func() {
		x.gen, x.err = decodeGeneration(context.WithoutCancel(ctx), s.Data)
		loaded = true
	})
	if loaded {
		c.loaded(el, x)
	}
	return x.gen, x.err
}

// loaded counts an entry in and drops others.
func (c *cache) loaded(el *list.Element, x *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID[x.place] != el {
		return
	}
	if x.err != nil {
		c.drop(el)
		return
	}
	x.counted = true
	c.size += x.gen.bytes
	for back := c.order.Back(); back != nil && c.size > c.limit; {
		prev := back.Prev()
		if back != el && back.Value.(*cached).counted {
			c.drop(back)
		}
		back = prev
	}
}

func (c *cache) drop(el *list.Element) {
	x := el.Value.(*cached)
	if x.counted {
		c.size -= x.gen.bytes
	}
	c.order.Remove(el)
	delete(c.byID, x.place)
}

func decodeGeneration(ctx context.Context, d *lance.Dataset) (*generation, error) {
	g := &generation{items: map[string][]int{}}
	for rec, err := range d.Scan(ctx, lance.ScanOptions{Columns: LightColumns(d.Schema())}) {
		if err != nil {
			return nil, err
		}
		for e, err := range Decode(rec) {
			if err != nil {
				return nil, err
			}
			g.items[e.Item] = append(g.items[e.Item], len(g.events))
			g.events = append(g.events, e)
			g.bytes += eventBytes + valueBytes(&e)
		}
	}
	return g, nil
}

// eventBytes is about what a decoded event without a value takes in memory.
const eventBytes = 1 << 10
