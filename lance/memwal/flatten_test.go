package memwal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func TestAFlattenedTableHasWhatTheViewHasAndNoShards(t *testing.T) {
	s, to := objstore.NewMemory(), objstore.NewMemory()
	table, want := lived(t, s)
	v, err := table.View(t.Context())
	ok(t, err)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), kv("later", 1))) // than the view
	d, err := v.Flatten(t.Context(), to, MergeOptions{}, lance.CopyOptions{})
	ok(t, err)
	if d.Rows() != int64(len(want)) || len(d.Indexes()) == 0 {
		t.Errorf("%d rows of %d, indexes %v", d.Rows(), len(want), d.Indexes())
	}
	flat, err := Open(t.Context(), to)
	ok(t, err)
	same(t, "rows of the copy", want, read(t, flat, lance.ScanOptions{}))
	shards, err := flat.Shards(t.Context())
	ok(t, err)
	if len(shards) > 0 {
		t.Errorf("the copy has shards %v", shards)
	}
	if _, err := v.Flatten(t.Context(), to, MergeOptions{}, lance.CopyOptions{}); !errors.Is(err, lance.ErrExists) {
		t.Errorf("over a table: %v", err)
	}
	_, err = flat.VerifyVersions(t.Context(), 0, func(err error) { t.Error(err) })
	ok(t, err)
	next := newWriter(t, flat, manual)
	ok(t, next.Append(t.Context(), kv("new", 1)))
	_, err = next.Merge(t.Context())
	ok(t, err)
	same(t, "after going on", append(want, "new=1"), read(t, flat, lance.ScanOptions{}))
}

// TestTheNewestRowOfAKeyIsFlattened has one in each of several generations.
func TestTheNewestRowOfAKeyIsFlattened(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, manual)
	var want []string
	for round := range 4 {
		want = want[:0]
		for i := range 5 {
			ok(t, w.Append(t.Context(), kv(fmt.Sprint("key-", i), round*10+i)))
			want = append(want, fmt.Sprintf("key-%d=%d", i, round*10+i))
		}
	}
	v, err := table.View(t.Context())
	ok(t, err)
	for most, want := range map[int64]int{0: 1, 1: 1, 3: 3, 20: 20, 100: 20} {
		if n := together(v.gens, most); n != want {
			t.Errorf("%d generations of a row have up to %d rows", n, most)
		}
	}
	to := objstore.NewMemory()
	_, err = v.Flatten(t.Context(), to, MergeOptions{}, lance.CopyOptions{})
	ok(t, err)
	flat, err := Open(t.Context(), to)
	ok(t, err)
	same(t, "rows of the copy", want, read(t, flat, lance.ScanOptions{}))
}

// TestWhatIsCutShortOrDamagedIsNotFlattened fails every write in turn, and changes every
// data file.
func TestWhatIsCutShortOrDamagedIsNotFlattened(t *testing.T) {
	s := objstore.NewMemory()
	table, _ := lived(t, s)
	v, err := table.View(t.Context())
	ok(t, err)
	refused := func(to objstore.Store, what string) bool {
		_, err := v.Flatten(t.Context(), to, MergeOptions{}, lance.CopyOptions{})
		if err == nil {
			return false
		}
		if _, err := Open(t.Context(), to); err == nil {
			t.Errorf("there is a table though %s", what)
		}
		return true
	}
	cuts := 0
	for at, crashed := 1, true; crashed; at++ {
		to := objstore.NewMemory()
		crashed = false
		fault := objstore.NewFault(to, func(c objstore.Call) objstore.Fate {
			crash := c.Mutates() && c.N == at
			crashed = crashed || crash
			return objstore.Fate{Crash: crash}
		})
		_, err := v.Flatten(t.Context(), fault, MergeOptions{}, lance.CopyOptions{})
		if (err != nil) != crashed {
			t.Fatalf("cut at write %d: %v", at, err)
		}
		if _, err := Open(t.Context(), to); crashed && !errors.Is(err, lance.ErrNotFound) {
			t.Fatalf("cut at write %d: %v", at, err)
		}
		cuts = at
	}
	if cuts < 5 {
		t.Errorf("%d writes", cuts)
	}
	damaged := 0
	for info, err := range s.List(t.Context(), objstore.ListOptions{}) {
		ok(t, err)
		if !named(v.base, info.Key) {
			continue
		}
		damaged++
		good, err := s.Get(t.Context(), info.Key, 1<<20)
		ok(t, err)
		ok(t, s.Put(t.Context(), info.Key, bytes.Repeat([]byte{0xff}, len(good))))
		if !refused(objstore.NewMemory(), info.Key+" is damaged") {
			t.Errorf("%s is damaged, and was copied", info.Key)
		}
		ok(t, s.Put(t.Context(), info.Key, good))
	}
	if damaged < 3 || refused(objstore.NewMemory(), "nothing is damaged") {
		t.Errorf("%d files were damaged, and what is mended is refused", damaged)
	}
}

// named reports whether a key is that of a data file or an index of a version.
func named(d *lance.Dataset, key string) bool {
	if strings.HasPrefix(key, "_indices/") {
		return strings.HasSuffix(key, ".lance")
	}
	return slices.ContainsFunc(d.Fragments(), func(f lance.FragmentInfo) bool {
		return slices.ContainsFunc(f.Files, func(name string) bool { return strings.HasSuffix(key, name) && strings.HasPrefix(key, "data/") })
	})
}
