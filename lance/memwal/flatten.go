package memwal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

// Flatten writes the view into another store as one table without shards, and returns
// that table. The files of the base, indexes included, are copied unchanged, the rows of
// generations are merged into the copy, and the whole is read back before the table
// becomes visible: until Flatten returns nil there is none. It is lance.ErrExists if there
// is one already. It needs memory for objstore.CopyPart bytes, a scan, and the keys of
// some generations. It does not pin the view: the caller does, with [View.Pin]. Progress
// gets the bytes of the base.
func (v *View) Flatten(ctx context.Context, to objstore.Store, merge MergeOptions, opts lance.CopyOptions) (*lance.Dataset, error) {
	d, err := v.flatten(ctx, to, merge, opts)
	if err != nil {
		return nil, fmt.Errorf("flatten: %w", err)
	}
	return d, nil
}

func (v *View) flatten(ctx context.Context, to objstore.Store, merge MergeOptions, opts lance.CopyOptions) (*lance.Dataset, error) {
	if _, err := lance.Open(ctx, to, lance.OpenOptions{}); !errors.Is(err, lance.ErrNotFound) {
		if err == nil {
			err = lance.ErrExists
		}
		return nil, err
	}
	hidden := &hiddenVersions{Store: to, versions: objstore.NewMemory()}
	if _, err := v.base.Copy(ctx, hidden, opts); err != nil {
		return nil, err
	}
	d, err := lance.Open(ctx, hidden, lance.OpenOptions{NoPin: true})
	if err != nil {
		return nil, err
	}
	for gens := v.gens; len(gens) > 0; {
		n := together(gens, rowsTogether)
		m := lance.Merge{Rows: oldestFirst(ctx, gens[len(gens)-n:]), KeepExisting: merge.KeepExisting, Differing: merge.Differing, Tombstone: Tombstone}
		if d, _, err = d.Merge(ctx, m); err != nil {
			return nil, err
		}
		gens = gens[:len(gens)-n]
	}
	var faults []error
	if _, err := d.Verify(ctx, func(err error) { faults = append(faults, err) }); err != nil || len(faults) > 0 {
		return nil, errors.Join(append(faults, err)...)
	}
	if err := hidden.publish(ctx, d.Version()); err != nil {
		return nil, err
	}
	return lance.Open(ctx, to, lance.OpenOptions{})
}

// rowsTogether bounds the keys that a merge into a copy has in memory.
const rowsTogether = 100_000

// together is how many of the last generations have no more rows than most, one at least.
func together(gens []*source, most int64) int {
	n, rows := 1, gens[len(gens)-1].d.Rows()
	for ; n < len(gens); n++ {
		if rows += gens[len(gens)-1-n].d.Rows(); rows > most {
			break
		}
	}
	return n
}

// oldestFirst yields the rows of generations, of which the newest of a shard come first.
func oldestFirst(ctx context.Context, gens []*source) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, src := range slices.Backward(gens) {
			for rec, err := range src.d.Scan(ctx, lance.ScanOptions{}) {
				if !yield(rec, src.named(err)) || err != nil {
					return
				}
			}
		}
	}
}

// hiddenVersions has the versions of a table in memory, so that whoever looks into the
// store sees none of them before it is published.
type hiddenVersions struct {
	objstore.Store
	versions *objstore.Memory
}

func (h *hiddenVersions) of(key string) objstore.Store {
	if strings.HasPrefix(key, format.VersionsDir) {
		return h.versions
	}
	return h.Store
}

// publish puts one version into the store, without those before it.
func (h *hiddenVersions) publish(ctx context.Context, version uint64) error {
	key := format.ManifestKey(version)
	b, err := h.versions.Get(ctx, key, 1<<40)
	if err == nil {
		err = h.Store.PutIfAbsent(ctx, key, b)
	}
	if errors.Is(err, objstore.ErrExists) {
		err = lance.ErrExists
	}
	return err
}

// Get implements objstore.Store.
func (h *hiddenVersions) Get(ctx context.Context, key string, limit int64) ([]byte, error) {
	return h.of(key).Get(ctx, key, limit)
}

// GetRange implements objstore.Store.
func (h *hiddenVersions) GetRange(ctx context.Context, key string, off, n int64) ([]byte, error) {
	return h.of(key).GetRange(ctx, key, off, n)
}

// Stat implements objstore.Store.
func (h *hiddenVersions) Stat(ctx context.Context, key string) (objstore.Info, error) {
	return h.of(key).Stat(ctx, key)
}

// List implements objstore.Store.
func (h *hiddenVersions) List(ctx context.Context, opts objstore.ListOptions) iter.Seq2[objstore.Info, error] {
	return h.of(opts.Prefix).List(ctx, opts)
}

// Put implements objstore.Store.
func (h *hiddenVersions) Put(ctx context.Context, key string, data []byte) error {
	return h.of(key).Put(ctx, key, data)
}

// PutIfAbsent implements objstore.Store.
func (h *hiddenVersions) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	return h.of(key).PutIfAbsent(ctx, key, data)
}

// Delete implements objstore.Store.
func (h *hiddenVersions) Delete(ctx context.Context, key string) error {
	return h.of(key).Delete(ctx, key)
}
