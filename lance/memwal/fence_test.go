package memwal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

func TestAFencedWriterCannotAcknowledge(t *testing.T) {
	store := objstore.NewMemory()
	table := newTable(t, store, small)
	first := newWriter(t, table, manual)
	ok(t, first.Append(t.Context(), kv("a", 1)))
	second := newWriter(t, table, WriterOptions{Shard: first.Shard(), MergeAfter: -1})
	if second.Epoch() != 2 {
		t.Errorf("epoch %d", second.Epoch())
	}
	want(t, first.Append(t.Context(), kv("b", 1)), ErrFenced)
	want(t, first.Append(t.Context(), kv("b", 1)), ErrFenced)
	ok(t, second.Append(t.Context(), kv("c", 1)))
	same(t, "rows", []string{"a=1", "c=1"}, read(t, table, lance.ScanOptions{}))
	_, err := table.Adopt(t.Context(), first.Shard(), MergeOptions{KeepExisting: true})
	ok(t, err)
	want(t, second.Append(t.Context(), kv("d", 1)), ErrFenced)
	_, err = table.NewWriter(t.Context(), WriterOptions{Shard: first.Shard()})
	want(t, err, ErrSealed)
	same(t, "adopted", []string{"a=1", "c=1"}, read(t, table, lance.ScanOptions{}))
	shards, err := table.Shards(t.Context())
	ok(t, err)
	if d := cmp.Diff([]ShardInfo{{ID: first.Shard(), Version: 8, Epoch: 3, Sealed: true, Generations: 2}}, shards); d != "" {
		t.Error(d)
	}
	stats, err := table.Collect(t.Context(), CollectOptions{Now: time.Now().Add(2 * time.Hour)})
	ok(t, err)
	if stats.Shards != 1 || stats.Generations != 4 { // two of the fenced were never named
		t.Errorf("%+v", stats)
	}
	same(t, "collected", []string{"a=1", "c=1"}, read(t, table, lance.ScanOptions{}))
}

// TestASleeperCannotTakeANumberThatWasCleanedUp: the owner sleeps before its put until
// the shard has been claimed and the number was used and cleaned up.
func TestASleeperCannotTakeANumberThatWasCleanedUp(t *testing.T) {
	mem := objstore.NewMemory()
	table := newTable(t, mem, small)
	first := newWriter(t, table, manual)
	ok(t, first.Append(t.Context(), kv("a", 1)))
	second := newWriter(t, table, WriterOptions{Shard: first.Shard(), MergeAfter: -1})
	for i := range 2 * keepStates {
		ok(t, second.Append(t.Context(), kv(fmt.Sprintf("key-%d", i), i)))
	}
	_, err := table.Collect(t.Context(), CollectOptions{Now: time.Now().Add(2 * time.Hour)})
	ok(t, err)
	next := first.shard.state.version + 1
	if _, err := mem.Stat(t.Context(), manifestKey(first.Shard(), next)); !errors.Is(err, objstore.ErrNotFound) {
		t.Fatalf("version %d was not cleaned up: %v", next, err)
	}
	first.shard.fresh = time.Now().Add(-2 * time.Hour)
	want(t, first.Append(t.Context(), kv("late", 1)), ErrFenced)
	ok(t, second.Append(t.Context(), kv("b", 1)))
	rows := read(t, table, lance.ScanOptions{})
	if len(rows) != 2*keepStates+2 || slices.Contains(rows, "late=1") {
		t.Errorf("rows %v", rows)
	}
}

// TestAFailedFlushIsNotSkipped: the error is the callers', and the next flush takes
// the number.
func TestAFailedFlushIsNotSkipped(t *testing.T) {
	for _, what := range []string{"data/", "_versions/", "bloom", "page_data", "page_lookup"} {
		t.Run(what, func(t *testing.T) {
			full := errors.New("store is full")
			fail := false
			mem := objstore.NewMemory()
			store := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
				if fail && strings.Contains(c.Key, "_gen_2/") && strings.Contains(c.Key, what) {
					return objstore.Fate{Err: full}
				}
				return objstore.Fate{}
			})
			table := newTable(t, store, small)
			w := newWriter(t, table, manual)
			ok(t, w.Append(t.Context(), kv("a", 1)))
			fail = true
			want(t, w.Append(t.Context(), kv("b", 1)), full)
			fail = false
			ok(t, w.Append(t.Context(), kv("c", 1)))
			ok(t, w.Append(t.Context(), kv("b", 2)))
			same(t, "rows", []string{"a=1", "b=2", "c=1"}, read(t, table, lance.ScanOptions{}))
			s, err := latestState(t.Context(), mem, w.Shard())
			ok(t, err)
			for i, g := range s.generations {
				if g.number != uint64(i+1) {
					t.Errorf("generation %d has number %d", i, g.number)
				}
			}
		})
	}
}

func TestAnUnsureAppendIsSettledByTheNextClaim(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		lose := false
		store := objstore.NewFault(objstore.NewMemory(), func(c objstore.Call) objstore.Fate {
			if lose && c.Op == "put if absent" && strings.Contains(c.Key, "/manifest/") {
				return objstore.Fate{Err: objstore.ErrAmbiguous, Done: arrived}
			}
			return objstore.Fate{}
		})
		table := newTable(t, store, small)
		w := newWriter(t, table, manual)
		ok(t, w.Append(t.Context(), kv("a", 1)))
		lose = true
		want(t, w.Append(t.Context(), kv("b", 1)), ErrUnsure)
		lose = false
		want(t, w.Append(t.Context(), kv("c", 1)), ErrUnsure)
		again := newWriter(t, table, WriterOptions{Shard: w.Shard(), MergeAfter: -1})
		ok(t, again.Append(t.Context(), kv("b", 1)))
		same(t, "rows", []string{"a=1", "b=1"}, read(t, table, lance.ScanOptions{}))
	}
}

// TestAShardThatWasRemovedTakesNoRows: its generations would begin from one again, which
// the table says it has merged.
func TestAShardThatWasRemovedTakesNoRows(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, manual)
	ok(t, w.Append(t.Context(), kv("a", 1)))
	_, err := table.Adopt(t.Context(), w.Shard(), MergeOptions{})
	ok(t, err)
	for range 2 { // the first drops what the shard names
		_, err = table.Collect(t.Context(), CollectOptions{AnyAge: true, Now: time.Now().Add(time.Minute)})
		ok(t, err)
	}
	_, err = table.Shard(t.Context(), w.Shard())
	want(t, err, objstore.ErrNotFound)
	again, err := table.NewWriter(t.Context(), WriterOptions{Shard: w.Shard(), MergeAfter: -1})
	if want(t, err, ErrSealed); err == nil {
		ok(t, again.Append(t.Context(), kv("b", 2)))
		same(t, "acknowledged", []string{"a=1", "b=2"}, read(t, table, lance.ScanOptions{}))
	}
}

// TestAClaimThatSleptCannotBeginAShardAnew: it found no shard, and sleeps before its put
// until another has the shard and has cleaned up the number.
func TestAClaimThatSleptCannotBeginAShardAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMemory()
		shard := NewID()
		slept := false
		table := newTable(t, objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if slept || c.Key != manifestKey(shard, 1) || !c.Mutates() {
				return objstore.Fate{}
			}
			slept = true
			other := newTable(t, mem, small)
			w, err := other.NewWriter(t.Context(), WriterOptions{Shard: shard, MergeAfter: -1})
			for i := 0; i < 2*keepStates && err == nil; i++ {
				err = w.Append(t.Context(), kv(fmt.Sprintf("key-%d", i), i))
			}
			ok(t, err)
			ok(t, w.Close())
			time.Sleep(2 * time.Hour)
			_, err = other.Collect(t.Context(), CollectOptions{})
			ok(t, err)
			return objstore.Fate{}
		}), small)
		w, err := table.NewWriter(t.Context(), WriterOptions{Shard: shard, MergeAfter: -1})
		if want(t, err, ErrFenced); err == nil {
			ok(t, w.Append(t.Context(), kv("late", 1)))
			ok(t, w.Close())
			if rows := read(t, table, lance.ScanOptions{}); !slices.Contains(rows, "late=1") {
				t.Errorf("an acknowledged row is not in %v", rows)
			}
		}
	})
}

// TestAMergeThatIsGivenUpDoesNotEndItsWriter ends the context of a merge at every call.
func TestAMergeThatIsGivenUpDoesNotEndItsWriter(t *testing.T) {
	for at := 1; ; at++ {
		n, merging := 0, false
		ctx, cancel := context.WithCancel(t.Context())
		table := newTable(t, objstore.NewFault(objstore.NewMemory(), func(objstore.Call) objstore.Fate {
			if merging {
				if n++; n == at {
					cancel()
				}
			}
			return objstore.Fate{}
		}), small)
		w := newWriter(t, table, manual)
		ok(t, w.Append(t.Context(), kv("a", 1)))
		merging = true
		_, _ = w.Merge(ctx)
		merging = false
		cancel()
		if err := w.Append(t.Context(), kv("b", 2)); err != nil {
			t.Fatalf("a merge that ends at call %d: %v", at, err)
		}
		same(t, "rows", []string{"a=1", "b=2"}, read(t, table, lance.ScanOptions{}))
		if n < at {
			return
		}
	}
}

// TestAnAppendThatWaitsForRoomLearnsThatItsWriterIsFenced: no merge makes room any more.
func TestAnAppendThatWaitsForRoomLearnsThatItsWriterIsFenced(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, WriterOptions{MergeAfter: -1, MaxLive: 1})
	ok(t, w.Append(t.Context(), kv("a", 1)))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- w.Append(ctx, kv("b", 2)) }()
	<-w.kick // asked for while it waits
	newWriter(t, table, WriterOptions{Shard: w.Shard(), MergeAfter: -1})
	_, err := w.Merge(t.Context())
	want(t, err, ErrFenced)
	want(t, <-answer, ErrFenced)
	same(t, "rows", []string{"a=1"}, read(t, table, lance.ScanOptions{}))
}

// TestAShardThatMustExistIsNotMade though nothing of it was ever merged.
func TestAShardThatMustExistIsNotMade(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, manual)
	ok(t, table.Seal(t.Context(), w.Shard()))
	_, err := table.Collect(t.Context(), CollectOptions{AnyAge: true, Now: time.Now().Add(time.Minute)})
	ok(t, err)
	_, err = table.Shard(t.Context(), w.Shard())
	want(t, err, objstore.ErrNotFound)
	_, err = table.NewWriter(t.Context(), WriterOptions{Shard: w.Shard(), Existing: true, MergeAfter: -1})
	want(t, err, ErrSealed)
	_, err = table.Shard(t.Context(), w.Shard())
	want(t, err, objstore.ErrNotFound)
}

// TestABatchMayBeReleasedByACallerWhoGaveUp while it waits for room.
func TestABatchMayBeReleasedByACallerWhoGaveUp(t *testing.T) {
	table := newTable(t, objstore.NewMemory(), small)
	w := newWriter(t, table, WriterOptions{MergeAfter: -1, MaxLive: 1})
	ok(t, w.Append(t.Context(), kv("a", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-w.kick // asked for while it waits
		cancel()
	}()
	batch := kv("b", 2)
	want(t, w.Append(ctx, batch), ErrUnsure)
	batch.Release()
	_, err := w.Merge(t.Context())
	ok(t, err)
	for w.Generations() == 0 { // the batch that was given up comes first
		time.Sleep(time.Millisecond)
	}
	same(t, "rows", []string{"a=1", "b=2"}, read(t, table, lance.ScanOptions{}))
}

// TestAReaderThatStopsBetweenTwoManifestsMissesNone: when it goes on, the next one has been
// cleaned up, which does not make the one that it has read the latest.
func TestAReaderThatStopsBetweenTwoManifestsMissesNone(t *testing.T) {
	for name, warm := range map[string]bool{"that knew the shard": true, "that did not": false} {
		t.Run(name, func(t *testing.T) {
			mem := objstore.NewMemory()
			table := newTable(t, mem, small)
			w := newWriter(t, table, manual)
			ok(t, w.Append(t.Context(), kv("first", 0)))
			stop := false
			reader, err := Open(t.Context(), objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
				if stop && c.Key == manifestKey(w.Shard(), 5) {
					stop = false
					for i := range 2 * keepStates {
						ok(t, w.Append(t.Context(), kv(fmt.Sprintf("later-%d", i), i)))
					}
					_, err := table.Collect(t.Context(), CollectOptions{Now: time.Now().Add(2 * time.Hour)})
					ok(t, err)
				}
				return objstore.Fate{}
			}))
			ok(t, err)
			if warm {
				read(t, reader, lance.ScanOptions{})
			}
			for i := range 5 {
				ok(t, w.Append(t.Context(), kv(fmt.Sprintf("before-%d", i), i)))
			}
			stop = true
			rows := read(t, reader, lance.ScanOptions{})
			for i := range 5 {
				if row := fmt.Sprintf("before-%d=%d", i, i); !slices.Contains(rows, row) {
					t.Errorf("%s was acknowledged before, and is not in %v", row, rows)
				}
			}
			if stop {
				t.Error("it did not stop")
			}
		})
	}
}
