package memwal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// beats counts the pins of a table that their readers have taken.
func beats(t *testing.T, s objstore.Store) (n int) {
	t.Helper()
	for info, err := range s.List(t.Context(), objstore.ListOptions{Prefix: pins.Root}) {
		ok(t, err)
		if strings.HasSuffix(info.Key, "/beat.json") {
			n++
		}
	}
	return n
}

// TestALongViewOutlivesMaintenanceWithoutGrace reads a view whose generations are merged
// and collected, and whose base is compacted and cleaned up, after its first batch.
func TestALongViewOutlivesMaintenanceWithoutGrace(t *testing.T) {
	before := pins.Default
	pins.Default.After = 0
	t.Cleanup(func() { pins.Default = before })
	synctest.Test(t, aLongViewOutlivesMaintenanceWithoutGrace)
}

func aLongViewOutlivesMaintenanceWithoutGrace(t *testing.T) {
	s := objstore.NewMemory()
	table := newTable(t, s, small)
	w := newWriter(t, table, manual)
	var want []string
	for i := range 12 {
		ok(t, w.Append(t.Context(), kv(fmt.Sprintf("key-%02d", i), i)))
		want = append(want, fmt.Sprintf("key-%02d=%d", i, i))
		if i%2 == 1 && i < 8 { // four fragments of the base, four generations
			_, err := w.Merge(t.Context())
			ok(t, err)
		}
	}
	reader, err := Open(t.Context(), s)
	ok(t, err)
	v, err := reader.View(t.Context())
	ok(t, err)
	var got []string
	var collected CollectStats
	for b, err := range v.Scan(t.Context(), lance.ScanOptions{}) {
		ok(t, err)
		if len(got) == 0 {
			for beats(t, s) < 2 {
				time.Sleep(time.Millisecond)
			}
			_, err := w.Merge(t.Context())
			ok(t, err)
			collected, err = table.Collect(t.Context(), CollectOptions{AnyAge: true})
			ok(t, err)
			d, err := table.Base(t.Context())
			ok(t, err)
			d, _, err = d.Compact(t.Context(), lance.CompactOptions{})
			ok(t, err)
			_, err = d.CleanUp(t.Context(), lance.CleanUpOptions{KeepVersions: 1, AnyAge: true})
			ok(t, err)
		}
		got = append(got, shorten(lancetest.Text(b.RecordBatch))...)
	}
	same(t, "rows across maintenance", want, slices.Sorted(slices.Values(got)))
	if collected.Pinned != 4 {
		t.Errorf("collecting left %d generations for the reader", collected.Pinned)
	}
	if n := beats(t, s); n != 0 {
		t.Errorf("the scan left %d pins", n)
	}
	after, err := table.Collect(t.Context(), CollectOptions{AnyAge: true})
	ok(t, err)
	if after.Generations != 4 {
		t.Errorf("%d generations were collected afterwards", after.Generations)
	}
	same(t, "rows afterwards", want, read(t, table, lance.ScanOptions{}))
}

// TestGraceBeginsWhenAGenerationIsDropped collects just after a merge: the generation is
// old, but a moment ago views named it.
func TestGraceBeginsWhenAGenerationIsDropped(t *testing.T) {
	synctest.Test(t, graceBeginsWhenAGenerationIsDropped)
}

func graceBeginsWhenAGenerationIsDropped(t *testing.T) {
	s := objstore.NewMemory()
	table := newTable(t, s, small)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), kv("a", 1)))
	time.Sleep(30 * time.Millisecond)
	written := time.Now()
	time.Sleep(30 * time.Millisecond)
	v, err := table.View(t.Context())
	ok(t, err)
	_, err = w.Merge(t.Context())
	ok(t, err)
	// The grace began before the merge, and after the generation was written.
	now := time.Now()
	stats, err := table.Collect(t.Context(), CollectOptions{Now: now, Grace: now.Sub(written), AnyAge: true})
	ok(t, err)
	if stats.Generations != 0 {
		t.Errorf("%d generations were removed that a view may name", stats.Generations)
	}
	same(t, "rows of the view", []string{"a=1"}, shorten(texts(t, v.Scan(t.Context(), lance.ScanOptions{}))))
	stats, err = table.Collect(t.Context(), CollectOptions{Now: now.Add(2 * time.Hour)})
	ok(t, err)
	if stats.Generations != 1 {
		t.Errorf("%d generations were removed after the grace", stats.Generations)
	}
}
