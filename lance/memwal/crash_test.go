package memwal

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// TestACrashAtAnyCallLosesNothing runs a life of a table, killed at every changing
// call in turn, before it takes effect and after.
func TestACrashAtAnyCallLosesNothing(t *testing.T) {
	for _, done := range []bool{false, true} {
		for at := 1; ; at++ {
			mem := objstore.NewMemory()
			fault := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
				return objstore.Fate{Crash: c.Mutates() && c.N == at, Done: done}
			})
			acked, finished := life(t, fault)
			table := newTable(t, mem, small)
			present := map[string]bool{}
			for _, r := range read(t, table, lance.ScanOptions{}) {
				if present[r] {
					t.Fatalf("crash at %d: %s is there twice", at, r)
				}
				present[r] = true
			}
			for _, r := range acked {
				if !present[r] {
					t.Fatalf("crash at %d: %s was acknowledged and is gone", at, r)
				}
			}
			again, ended := life(t, objstore.NewFault(mem, func(objstore.Call) objstore.Fate { return objstore.Fate{} }))
			if !ended {
				t.Fatalf("after a crash at %d the table cannot be used", at)
			}
			same(t, fmt.Sprintf("after a crash at %d", at), again, read(t, table, lance.ScanOptions{}))
			base, err := table.Base(t.Context())
			ok(t, err)
			_, err = base.Verify(t.Context(), func(err error) { t.Errorf("after a crash at %d: %v", at, err) })
			ok(t, err)
			if finished {
				break
			}
		}
	}
}

// life creates, appends, merges, indexes, compacts, adopts and cleans up, and returns
// what was acknowledged and whether it came to its end.
func life(t *testing.T, store objstore.Store) (acked []string, finished bool) {
	ctx := t.Context()
	if _, err := lance.OpenOrCreate(ctx, store, small); err != nil {
		return nil, false
	}
	table, err := Open(ctx, store)
	if err != nil {
		return nil, false
	}
	for round := range 2 {
		w, err := table.NewWriter(ctx, WriterOptions{MergeAfter: -1, MergeOptions: MergeOptions{KeepExisting: true}})
		if err != nil {
			return acked, false
		}
		defer w.Close()
		for i := range 3 {
			key := fmt.Sprintf("key-%d-%d", round, i)
			if err := w.Append(ctx, kv(key, i)); err != nil {
				return acked, false
			}
			acked = append(acked, fmt.Sprintf("%s=%d", key, i))
		}
		if _, err := w.Merge(ctx); err != nil {
			return acked, false
		}
		if err := w.Append(ctx, kv("last", 7)); err != nil {
			return acked, false
		}
		if round == 1 {
			acked = append(acked, "last=7")
		}
		if _, err := table.Adopt(ctx, w.Shard(), MergeOptions{KeepExisting: true}); err != nil {
			return acked, false
		}
		if !maintain(ctx, table) {
			return acked, false
		}
	}
	return acked, true
}

func maintain(ctx context.Context, table *Table) bool {
	d, err := table.Base(ctx)
	if err != nil {
		return false
	}
	if d, err = d.CreateIndex(ctx, "k"); err != nil {
		return false
	}
	if d, _, err = d.Compact(ctx, lance.CompactOptions{}); err != nil {
		return false
	}
	if _, err := table.Collect(ctx, CollectOptions{AnyAge: true}); err != nil {
		return false
	}
	_, err = d.CleanUp(ctx, lance.CleanUpOptions{KeepVersions: 2, AnyAge: true})
	return err == nil
}

// TestWritersShareABucket writes, merges and reads with a table per writer, as
// processes do, on a real S3 server.
func TestWritersShareABucket(t *testing.T) {
	if !s3test.Running(t) {
		return
	}
	endpoint, bucket := s3test.Bucket(t)
	open := func() objstore.Store {
		s, err := objstore.OpenS3(objstore.S3Options{
			Endpoint: endpoint, Bucket: bucket, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
		})
		ok(t, err)
		return objstore.Prefix(s, "experiment/log.lance")
	}
	var wg sync.WaitGroup
	for w := range 3 {
		table := newTable(t, open(), small)
		w0 := newWriter(t, table, WriterOptions{MergeAfter: 3, MergeOptions: MergeOptions{KeepExisting: true}})
		wg.Go(func() {
			for i := range 8 {
				if err := w0.Append(context.Background(), kv(fmt.Sprintf("%d-%d", w, i), i)); err != nil {
					t.Error(err)
				}
			}
			if _, err := w0.Merge(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	table := newTable(t, open(), small)
	if rows := read(t, table, lance.ScanOptions{}); len(rows) != 24 {
		t.Errorf("rows %v", rows)
	}
	base, err := table.Base(t.Context())
	ok(t, err)
	if base.Rows() != 24 {
		t.Errorf("%d rows are merged", base.Rows())
	}
	_, err = table.Verify(t.Context(), func(err error) { t.Error(err) })
	ok(t, err)
}
