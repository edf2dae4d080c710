package objstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a store in memory, for tests and for tables that need not last.
// Wrap it in a [Fault] to see what becomes of a caller when calls fail.
type Memory struct {
	mu      sync.Mutex
	objects map[string]memObject
}

type memObject struct {
	data []byte
	info Info
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string]memObject{}} }

// Clone returns a copy of the present state, as a crashed process would leave it.
func (m *Memory) Clone() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Memory{objects: make(map[string]memObject, len(m.objects))}
	for k, o := range m.objects {
		c.objects[k] = o
	}
	return c
}

func (m *Memory) find(op, key string) (memObject, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.objects[key]
	if !ok {
		return o, wrap(op, key, ErrNotFound)
	}
	return o, nil
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap("get", key, err)
	}
	o, err := m.find("get", key)
	if err != nil {
		return nil, err
	}
	if o.info.Size > limit {
		return nil, wrap("get", key, ErrTooLarge)
	}
	return bytes.Clone(o.data), nil
}

// GetRange implements [Store].
func (m *Memory) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, wrap("get range", key, err)
	}
	o, err := m.find("get range", key)
	if err != nil {
		return nil, err
	}
	if off < 0 || n < 0 || off > o.info.Size || n > o.info.Size-off {
		return nil, wrap("get range", key, io.ErrUnexpectedEOF)
	}
	return bytes.Clone(o.data[off : off+n]), nil
}

// Stat implements [Store].
func (m *Memory) Stat(ctx context.Context, key string) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, wrap("stat", key, err)
	}
	o, err := m.find("stat", key)
	return o.info, err
}

// List implements [Store]. It yields the state at its beginning.
func (m *Memory) List(ctx context.Context, opts ListOptions) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		m.mu.Lock()
		infos := make([]Info, 0, len(m.objects))
		for key, o := range m.objects {
			if strings.HasPrefix(key, opts.Prefix) {
				infos = append(infos, o.info)
			}
		}
		m.mu.Unlock()
		slices.SortFunc(infos, func(a, b Info) int { return strings.Compare(a.Key, b.Key) })
		yieldListed(ctx, opts, infos, yield)
	}
}

// yieldListed applies StartAfter and Delimiter to a sorted list of keys with the
// right prefix.
func yieldListed(ctx context.Context, opts ListOptions, infos []Info, yield func(Info, error) bool) {
	last := ""
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			yield(Info{}, wrap("list", opts.Prefix, err))
			return
		}
		if opts.Delimiter {
			if i := strings.IndexByte(info.Key[len(opts.Prefix):], '/'); i >= 0 {
				info = Info{Key: info.Key[:len(opts.Prefix)+i+1]}
			}
		}
		if info.Key == last || info.Key <= opts.StartAfter {
			continue
		}
		last = info.Key
		if !yield(info, nil) {
			return
		}
	}
}

// Put implements [Store].
func (m *Memory) Put(ctx context.Context, key string, data []byte) error {
	return m.put(ctx, "put", key, data, func(memObject, bool) error { return nil })
}

// PutIfAbsent implements [Store].
func (m *Memory) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return m.put(ctx, "put if absent", key, data, func(old memObject, there bool) error {
		if there && !bytes.Equal(old.data, data) {
			return ErrExists
		}
		return nil
	})
}

func (m *Memory) put(ctx context.Context, op, key string, data []byte, check func(old memObject, there bool) error) error {
	if err := errors.Join(ctx.Err(), CheckKey(key)); err != nil {
		return wrap(op, key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old, there := m.objects[key]
	if err := check(old, there); err != nil {
		return wrap(op, key, err)
	}
	m.objects[key] = memObject{data: bytes.Clone(data), info: Info{Key: key, Size: int64(len(data)), Modified: time.Now()}}
	return nil
}

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, key string) (Writer, error) {
	if err := CheckKey(key); err != nil {
		return nil, wrap("create", key, err)
	}
	return &memWriter{ctx: ctx, store: m, key: key}, nil
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return wrap("delete", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

type memWriter struct {
	bytes.Buffer
	ctx   context.Context
	store *Memory
	key   string
	done  bool
}

func (w *memWriter) Write(b []byte) (int, error) {
	if w.done {
		return 0, wrap("write", w.key, errClosed)
	}
	return w.Buffer.Write(b)
}

func (w *memWriter) Close() error {
	if w.done {
		return wrap("close", w.key, errClosed)
	}
	w.done = true
	return w.store.Put(w.ctx, w.key, w.Bytes())
}

func (w *memWriter) Abort() error {
	w.done = true
	return nil
}
