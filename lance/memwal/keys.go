package memwal

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/datafile"
)

// cacheBudget bounds what a table keeps of the columns of its generations, in bytes.
// What does not fit is read again each time.
const cacheBudget = 128 << 20

// keySet is the keys of a generation, and the addresses of its tombstones.
type keySet struct {
	has  map[string]struct{}
	dead map[uint64]bool
}

// valueSet is the values of a column of strings of a generation.
type valueSet map[string]struct{}

// account is what a generation keeps of the budget.
type account struct {
	mu     sync.Mutex
	cost   int64
	closed bool
}

// remember keeps something of a generation while the budget lasts.
func (src *source) remember(t *Table, cost int64, keep func()) {
	src.account.mu.Lock()
	defer src.account.mu.Unlock()
	if src.account.closed || t.cached.Add(cost) > cacheBudget {
		if !src.account.closed {
			t.cached.Add(-cost)
		}
		return
	}
	src.account.cost += cost
	keep()
}

// forgotten gives back what a generation has of the budget.
func (src *source) forgotten(t *Table) {
	src.account.mu.Lock()
	defer src.account.mu.Unlock()
	t.cached.Add(-src.account.cost)
	src.account.cost, src.account.closed = 0, true
}

// keySet reads the keys of a generation, once.
func (src *source) keySet(ctx context.Context, t *Table, key string) (*keySet, error) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.keys != nil {
		return src.keys, nil
	}
	set := &keySet{has: map[string]struct{}{}, dead: map[uint64]bool{}}
	opts := lance.ScanOptions{Columns: []string{key}, WithRowAddress: true}
	tombstones := len(src.d.Schema().FieldIndices(Tombstone)) > 0
	if tombstones {
		opts.Columns = append(opts.Columns, Tombstone)
	}
	cost := int64(0)
	for rec, err := range src.d.Scan(ctx, opts) {
		if err != nil {
			return nil, src.named(err)
		}
		n, err := addValues(set.has, rec.Column(0))
		if err != nil {
			return nil, err
		}
		cost += n
		if tombstones {
			dead, ok := rec.Column(1).(*array.Boolean)
			if !ok {
				return nil, src.named(fmt.Errorf("%w: tombstones of type %s", lance.ErrCorrupt, rec.Column(1).DataType()))
			}
			for i, a := range rec.Column(2).(*array.Uint64).Uint64Values() {
				if dead.Value(i) {
					set.dead[a] = true
				}
			}
		}
	}
	src.remember(t, cost, func() { src.keys = set })
	return set, nil
}

// mayMatch reports whether a generation may have rows for which a condition holds. Only
// equality with strings can say no.
func (src *source) mayMatch(ctx context.Context, t *Table, c lance.Condition) (bool, error) {
	values, ok := equalTo(c)
	if !ok {
		return true, nil
	}
	set, err := src.valueSet(ctx, t, c.Column)
	if set == nil || err != nil {
		return true, err
	}
	for _, v := range values {
		if _, ok := set[v]; ok {
			return true, nil
		}
	}
	return false, nil
}

// equalTo returns the strings that a condition compares with.
func equalTo(c lance.Condition) (values []string, ok bool) {
	list := c.Values
	switch c.Op {
	case lance.Equal:
		list = []any{c.Value}
	case lance.In:
	default:
		return nil, false
	}
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, false
		}
		values = append(values, s)
	}
	return values, true
}

// valueSet reads the values of a column of strings, once; nil if it is none.
func (src *source) valueSet(ctx context.Context, t *Table, column string) (valueSet, error) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if set, ok := src.values[column]; ok {
		return set, nil
	}
	at := src.d.Schema().FieldIndices(column)
	if len(at) != 1 || !strings.HasSuffix(src.d.Schema().Field(at[0]).Type.Name(), "utf8") {
		return nil, nil
	}
	set, cost := valueSet{}, int64(0)
	for rec, err := range src.d.Scan(ctx, lance.ScanOptions{Columns: []string{column}}) {
		if err != nil {
			return nil, src.named(err)
		}
		n, err := addValues(set, rec.Column(0))
		if err != nil {
			return nil, err
		}
		cost += n
	}
	src.remember(t, cost, func() {
		if src.values == nil {
			src.values = map[string]valueSet{}
		}
		src.values[column] = set
	})
	return set, nil
}

// valueCost is about what a value takes in a set beside its bytes.
const valueCost = 48

// addValues adds the values of an array of strings and returns what they cost.
func addValues[M ~map[string]struct{}](set M, a arrow.Array) (cost int64, err error) {
	view, ok := datafile.ViewBytes(a)
	if !ok {
		return 0, fmt.Errorf("values of type %s", a.DataType())
	}
	for i := range a.Len() {
		if !a.IsValid(i) {
			continue
		}
		v := view.At(i)
		if _, known := set[string(v)]; !known {
			set[string(v)] = struct{}{}
			cost += int64(len(v)) + valueCost
		}
	}
	return cost, nil
}
