package datagen

import (
	"context"
	"slices"
	"sync"

	"github.com/foldlog/foldlog/lance"
)

// maxValueHashes bounds the memory of [values], in hashes of eight bytes.
const maxValueHashes = 4 << 20

// values knows which values young fragments of the base have in a column, so that a
// value is not looked for in fragments that no index covers yet and that do not have
// it. Fragments never change, except that rows are deleted.
type values struct {
	mu     sync.Mutex
	of     map[valuesKey]*hashes
	hashes int
}

type valuesKey struct{ column, file string }

// hashes are those of a fragment's values, in order, each once.
type hashes struct {
	once sync.Once
	all  []uint64
	ok   bool
}

// without returns what tells of a fragment that it does not have a value.
func (v *values) without(ctx context.Context, d *lance.Dataset, column, value string) func(uint64) bool {
	h := hashItem(value).lo
	var frags []lance.FragmentInfo
	return func(id uint64) bool {
		if frags == nil {
			frags = d.Fragments()
		}
		at := slices.IndexFunc(frags, func(f lance.FragmentInfo) bool { return f.ID == id })
		if at < 0 || len(frags[at].Files) == 0 || frags[at].Rows > maxValueHashes/4 {
			return false
		}
		x := v.get(valuesKey{column, frags[at].Files[0]})
		x.once.Do(func() { v.load(ctx, x, d, column, id) })
		_, has := slices.BinarySearch(x.all, h)
		return x.ok && !has
	}
}

func (v *values) get(key valuesKey) *hashes {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil || v.hashes > maxValueHashes {
		v.of, v.hashes = map[valuesKey]*hashes{}, 0 // indexed meanwhile, most of them
	}
	x := v.of[key]
	if x == nil {
		x = &hashes{}
		v.of[key] = x
	}
	return x
}

// load reads the values. If that fails the fragment is read by who asked.
func (v *values) load(ctx context.Context, x *hashes, d *lance.Dataset, column string, id uint64) {
	for rec, err := range d.Scan(context.WithoutCancel(ctx), lance.ScanOptions{Columns: []string{column}, Fragments: []uint64{id}}) {
		if err != nil {
			return
		}
		a, ok := rec.Column(0).(texts)
		if !ok {
			return
		}
		last := ""
		for i := range a.Len() {
			if s := a.Value(i); i == 0 || s != last {
				x.all, last = append(x.all, hashItem(s).lo), s
			}
		}
	}
	slices.Sort(x.all)
	x.all = slices.Clip(slices.Compact(x.all))
	x.ok = true
	v.mu.Lock()
	v.hashes += len(x.all)
	v.mu.Unlock()
}
