package memwal

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// lived makes a table with merged and unmerged generations of two shards, a compaction,
// deletions and an index.
func lived(t *testing.T, s objstore.Store) (*Table, []string) {
	t.Helper()
	table := newTable(t, s, small)
	one, two := newWriter(t, table, manual), newWriter(t, table, manual)
	var want []string
	for i := range 12 {
		w := one
		if i%3 == 0 {
			w = two
		}
		ok(t, w.Append(t.Context(), kv(fmt.Sprintf("key-%02d", i), i)))
		want = append(want, fmt.Sprintf("key-%02d=%d", i, i))
		if i%4 == 3 && i < 8 {
			_, err := one.Merge(t.Context())
			ok(t, err)
		}
	}
	d, err := table.Base(t.Context())
	ok(t, err)
	d, _, err = d.Compact(t.Context(), lance.CompactOptions{})
	ok(t, err)
	_, err = d.CreateIndex(t.Context(), "k")
	ok(t, err)
	ok(t, one.Append(t.Context(), deleted("key-01")))
	return table, append(want[:1:1], want[2:]...)
}

func TestACopyHasWhatTheTableHas(t *testing.T) {
	s, to := objstore.NewMemory(), objstore.NewMemory()
	table, want := lived(t, s)
	stats, err := table.Copy(t.Context(), to, lance.CopyOptions{})
	ok(t, err)
	files := 0
	for _, err := range to.List(t.Context(), objstore.ListOptions{}) {
		ok(t, err)
		files++
	}
	copied, err := Open(t.Context(), to)
	ok(t, err)
	shards, err := copied.Shards(t.Context())
	ok(t, err)
	if files != stats.Files+len(shards) { // the hints of the shards are not of the source
		t.Errorf("%d files, said to be %d", files, stats.Files)
	}
	same(t, "rows of the copy", want, read(t, copied, lance.ScanOptions{}))
	_, err = copied.VerifyVersions(t.Context(), 0, func(err error) { t.Error(err) })
	ok(t, err)
	if _, err := table.Copy(t.Context(), to, lance.CopyOptions{}); !errors.Is(err, lance.ErrExists) {
		t.Errorf("over a table: %v", err)
	}
	w := newWriter(t, copied, WriterOptions{Shard: shards[0].ID, MergeAfter: -1})
	ok(t, w.Append(t.Context(), kv("new", 1)))
	_, err = w.Merge(t.Context())
	ok(t, err)
	same(t, "after going on", append(want, "new=1"), read(t, copied, lance.ScanOptions{}))
	same(t, "rows of the source", want, read(t, table, lance.ScanOptions{}))
}

// TestACopyThatIsCutShortIsNoTable fails every write in turn.
func TestACopyThatIsCutShortIsNoTable(t *testing.T) {
	table, _ := lived(t, objstore.NewMemory())
	for at := 1; ; at++ {
		to := objstore.NewMemory()
		fault := objstore.NewFault(to, func(c objstore.Call) objstore.Fate {
			return objstore.Fate{Crash: c.Mutates() && c.N == at}
		})
		_, err := table.Copy(t.Context(), fault, lance.CopyOptions{})
		if err == nil {
			return
		}
		if _, err := Open(t.Context(), to); !errors.Is(err, lance.ErrNotFound) {
			t.Fatalf("cut at write %d: %v", at, err)
		}
	}
}

// TestACopyDuringMaintenanceIsWhole merges, compacts, collects and cleans up, with no
// grace, at every read of a copy in turn.
func TestACopyDuringMaintenanceIsWhole(t *testing.T) {
	synctest.Test(t, aCopyDuringMaintenanceIsWhole)
}

func aCopyDuringMaintenanceIsWhole(t *testing.T) {
	for at := int32(1); ; at += 5 {
		mem := objstore.NewMemory()
		_, want := lived(t, mem)
		var n atomic.Int32
		hooked := objstore.NewFault(mem, func(objstore.Call) objstore.Fate {
			if n.Add(1) == at {
				upkeep(t, mem)
			}
			return objstore.Fate{}
		})
		source, err := Open(t.Context(), hooked)
		ok(t, err)
		to := objstore.NewMemory()
		_, err = source.Copy(t.Context(), to, lance.CopyOptions{})
		ok(t, err)
		copied, err := Open(t.Context(), to)
		ok(t, err)
		same(t, fmt.Sprintf("copy with maintenance at call %d", at), want, read(t, copied, lance.ScanOptions{}))
		if n.Load() < at {
			return
		}
	}
}

// TestLogEntriesStayForAGraceAfterTheirReplay: who read the manifest before has its rows in
// them only, as a copy that goes on. They are old themselves.
func TestLogEntriesStayForAGraceAfterTheirReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMemory()
		table := newTable(t, mem, small)
		w := newWriter(t, table, manual)
		ok(t, w.Append(t.Context(), kv("a", 1)))
		putWAL(t, mem, w.Shard(), 1, 1, kv("b", 2))
		ok(t, w.Close())
		time.Sleep(2 * DefaultGrace)
		before, err := latestState(t.Context(), mem, w.Shard())
		ok(t, err)
		ok(t, newWriter(t, table, WriterOptions{Shard: w.Shard(), MergeAfter: -1}).Close())
		_, err = table.Collect(t.Context(), CollectOptions{})
		ok(t, err)
		c := &copying{t: table, to: objstore.NewMemory()}
		ok(t, c.shard(t.Context(), before))
		if _, err := readWAL(t.Context(), c.to, w.Shard(), 1); err != nil {
			t.Errorf("a copy has not what the shard had: %v", err)
		}
		time.Sleep(2 * DefaultGrace)
		_, err = table.Collect(t.Context(), CollectOptions{})
		ok(t, err)
		_, err = readWAL(t.Context(), mem, w.Shard(), 1)
		want(t, err, objstore.ErrNotFound)
	})
}

// upkeep adopts every shard and removes all that can be removed.
func upkeep(t *testing.T, s objstore.Store) {
	table, err := Open(t.Context(), s)
	ok(t, err)
	shards, err := table.Shards(t.Context())
	ok(t, err)
	for _, shard := range shards {
		_, err := table.Adopt(t.Context(), shard.ID, MergeOptions{})
		ok(t, err)
	}
	_, err = table.Collect(t.Context(), CollectOptions{AnyAge: true})
	ok(t, err)
	d, err := table.Base(t.Context())
	ok(t, err)
	d, _, err = d.Compact(t.Context(), lance.CompactOptions{})
	ok(t, err)
	_, err = d.CleanUp(t.Context(), lance.CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
}

// TestErrorsNameTheGeneration breaks each file of a generation.
func TestErrorsNameTheGeneration(t *testing.T) {
	for _, part := range []string{"/data/", "/_versions/"} {
		s := objstore.NewMemory()
		table, _ := lived(t, s)
		broken := ""
		v, err := table.View(t.Context())
		ok(t, err)
		for info, err := range s.List(t.Context(), objstore.ListOptions{Prefix: v.gens[0].dir}) {
			ok(t, err)
			if strings.Contains(info.Key, part) {
				broken = info.Key
			}
		}
		b, err := s.Get(t.Context(), broken, 1<<20)
		ok(t, err)
		ok(t, s.Put(t.Context(), broken, b[:len(b)-3]))
		fresh, err := Open(t.Context(), s)
		ok(t, err)
		err = firstError(t, fresh)
		var c *lance.CorruptError
		where := fmt.Sprintf("generation %d of shard %s", v.gens[0].generation, v.gens[0].shard)
		if !errors.As(err, &c) || c.Path != broken || !strings.Contains(err.Error(), where) {
			t.Errorf("%s is broken, and the error is %v", broken, err)
		}
	}
}

func firstError(t *testing.T, table *Table) error {
	v, err := table.View(t.Context())
	if err != nil {
		return err
	}
	for _, err := range v.Scan(t.Context(), lance.ScanOptions{}) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestTheRealLanceReadsACopy(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	_, s := lancetest.LocalTable(t)
	table, want := lived(t, s)
	dir, to := lancetest.LocalTable(t)
	_, err := table.Copy(t.Context(), to, lance.CopyOptions{})
	ok(t, err)
	same(t, "as the real library reads the copy", want, shorten(realRows(t, real, lancetest.On(dir))))
}
