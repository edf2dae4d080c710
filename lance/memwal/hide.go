package memwal

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/lance"
)

// hider knows the keys of the generations that a scan has passed.
type hider struct {
	v    *View
	sets []*keySet
	// all is the union of the sets, once it pays to have it.
	all map[string]struct{}
	// few says that hardly any rows will be asked for; asked counts lookups in sets.
	few   bool
	asked int
}

// manyLookups is from how many lookups in single sets on the union pays.
const manyLookups = 1 << 16

// pass adds the generations up to the n-th, which are newer than what comes after.
func (h *hider) pass(ctx context.Context, n int) error {
	from := len(h.sets)
	if n <= from {
		return nil
	}
	h.sets = append(h.sets, make([]*keySet, n-from)...)
	err := parallel.Each(n-from, ioWorkers, func(i int) (err error) {
		h.sets[from+i], err = h.v.gens[from+i].keySet(ctx, h.v.table, h.v.key)
		return err
	})
	if err == nil && (!h.few || h.all != nil) {
		h.unite(h.sets[from:])
	}
	return err
}

func (h *hider) unite(sets []*keySet) {
	if h.all == nil {
		h.all = map[string]struct{}{}
	}
	for _, set := range sets {
		for k := range set.has {
			h.all[k] = struct{}{}
		}
	}
}

// hides reports whether a generation that was passed has a key.
func (h *hider) hides(key []byte) bool {
	if h.all == nil && h.asked > manyLookups {
		h.unite(h.sets)
	}
	if h.all != nil {
		_, ok := h.all[string(key)]
		return ok
	}
	h.asked += len(h.sets)
	for _, set := range h.sets {
		if _, ok := set.has[string(key)]; ok {
			return true
		}
	}
	return false
}

// selective reports whether a filter leaves few rows.
func selective(filter []lance.Condition) bool {
	return slices.ContainsFunc(filter, func(c lance.Condition) bool { return c.Op == lance.Equal || c.Op == lance.In })
}

// minHidden is how many rows the base must have for each key of a generation before it
// pays to look the keys up instead of reading all of the base's.
const minHidden = 64

// hiddenRows finds the rows of the base whose keys are in a generation or in more, by the
// base's index on the key. It is not known where there is no such index, where that would
// be no faster, and where the filter leaves few rows anyway.
func (v *View) hiddenRows(ctx context.Context, opts lance.ScanOptions, more map[string]bool) (rows map[uint64]bool, known bool, err error) {
	if len(v.gens) == 0 && len(more) == 0 {
		return nil, true, nil
	}
	if selective(opts.Filter) {
		return nil, false, nil
	}
	indexed := slices.ContainsFunc(v.base.Indexes(), func(x lance.IndexInfo) bool {
		return x.Kind == "btree" && slices.Equal(x.Columns, []string{v.key}) && x.Unindexed*8 <= x.Fragments
	})
	if !indexed {
		return nil, false, nil
	}
	keys, err := v.allKeys(ctx, more)
	if err != nil || int64(len(keys))*minHidden > v.base.Rows() {
		return nil, false, err
	}
	rows = map[uint64]bool{}
	find := lance.ScanOptions{Columns: []string{}, WithRowAddress: true, Filter: []lance.Condition{{Column: v.key, Op: lance.In, Values: keys}}}
	for rec, err := range v.base.Scan(ctx, find) {
		if err != nil {
			return nil, false, err
		}
		for _, a := range rec.Column(0).(*array.Uint64).Uint64Values() {
			rows[a] = true
		}
	}
	return rows, true, nil
}

// allKeys are the keys of all generations, and more, in order.
func (v *View) allKeys(ctx context.Context, more map[string]bool) ([]any, error) {
	var keys []string
	for k := range more {
		keys = append(keys, k)
	}
	for _, src := range v.gens {
		set, err := src.keySet(ctx, v.table, v.key)
		if err != nil {
			return nil, err
		}
		for k := range set.has {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	out := make([]any, len(keys))
	for i, k := range keys {
		out[i] = k
	}
	return out, nil
}
