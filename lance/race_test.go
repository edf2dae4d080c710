package lance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/s3test"
	"github.com/foldlog/foldlog/objstore"
)

// stores are empty stores of every kind that several handles can share.
func stores(t *testing.T) map[string]objstore.Store {
	t.Helper()
	_, local := lancetest.LocalTable(t)
	out := map[string]objstore.Store{"memory": objstore.NewMemory(), "local": local}
	if s3test.Running(t) {
		endpoint, bucket := s3test.Bucket(t)
		s, err := objstore.OpenS3(objstore.S3Options{
			Endpoint: endpoint, Bucket: bucket, Region: s3test.Region, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
		})
		ok(t, err)
		out["s3"] = objstore.Prefix(s, "some/log.lance")
	}
	return out
}

// TestFirstWritersMeet opens a table that does not exist from many sides at once, and
// each appends a row.
func TestFirstWritersMeet(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			const writers = 16
			var wg sync.WaitGroup
			for i := range writers {
				wg.Go(func() {
					d, err := OpenOrCreate(t.Context(), s, lancetest.Schema)
					if err == nil {
						_, err = d.Append(t.Context(), Batches(lancetest.Batch(i, i+1)))
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			d, err := Open(t.Context(), s, OpenOptions{})
			ok(t, err)
			if d.Version() != writers+1 {
				t.Errorf("version %d", d.Version())
			}
			same(t, "rows", sorted(expect(0, writers)), sorted(collect(t, d.Scan(t.Context(), ScanOptions{}))))
		})
	}
}

// TestHundredsOfCommittersAllGetThrough: no number of lost races is too many.
func TestHundredsOfCommittersAllGetThrough(t *testing.T) {
	committers := 500
	if testing.Short() {
		committers = 50
	}
	d := filled(t, objstore.NewMemory(), 1, 1)
	var wg sync.WaitGroup
	for i := range committers {
		rec := lancetest.Batch(i+1, i+2)
		wg.Go(func() {
			if _, err := d.Append(t.Context(), Batches(rec)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	d, err := d.Latest(t.Context())
	ok(t, err)
	if d.Rows() != int64(committers+1) {
		t.Errorf("%d rows", d.Rows())
	}
}

// TestMaintenanceAndWritersDoNotLoseRows appends, merges, deletes, indexes, compacts
// and cleans up at once, and then looks for every row.
func TestMaintenanceAndWritersDoNotLoseRows(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			d := filled(t, s, 200, 20)
			rounds := 6
			var wg sync.WaitGroup
			run := func(what string, op func(d *Dataset, i int) error) {
				wg.Go(func() {
					for i := range rounds {
						d, err := d.Latest(t.Context())
						if err == nil {
							err = op(d, i)
						}
						if err != nil {
							t.Errorf("%s: %v", what, err)
						}
					}
				})
			}
			run("append", func(d *Dataset, i int) error {
				_, err := d.Append(t.Context(), Batches(lancetest.Batch(1000+10*i, 1010+10*i)))
				return err
			})
			run("merge", func(d *Dataset, i int) error {
				_, _, err := d.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(2000+5*i, 2010+5*i)), KeepExisting: true})
				return err
			})
			run("replace", func(d *Dataset, i int) error {
				_, _, err := d.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(100, 105))})
				return err
			})
			run("delete", func(d *Dataset, i int) error {
				_, err := d.Delete(t.Context(), []Condition{{Column: "seq", Op: Equal, Value: i}})
				return err
			})
			run("index", func(d *Dataset, _ int) error {
				d, err := d.CreateIndex(t.Context(), "id")
				if err == nil {
					_, err = d.RefreshIndexes(t.Context())
				}
				return err
			})
			run("compact", func(d *Dataset, _ int) error {
				_, _, err := d.Compact(t.Context(), CompactOptions{})
				return err
			})
			run("clean up", func(d *Dataset, _ int) error {
				_, err := d.CleanUp(t.Context(), CleanUpOptions{})
				return err
			})
			wg.Wait()
			d, err := d.Latest(t.Context())
			ok(t, err)
			all := append(expect(rounds, 200), expect(1000, 1000+10*rounds)...)
			all = sorted(append(all, expect(2000, 2005+5*rounds)...))
			same(t, "rows", all, sorted(collect(t, d.Scan(t.Context(), ScanOptions{}))))
			same(t, "verification", nil, faults(t, d))
			if x := d.Indexes(); len(x) != 1 {
				t.Errorf("indexes %+v", x)
			}
		})
	}
}

// TestACrashAtAnyCallLeavesATable kills deletes, index builds, compactions, merges and
// clean-ups at every changing call.
func TestACrashAtAnyCallLeavesATable(t *testing.T) {
	ops := map[string]func(d *Dataset) (*Dataset, error){
		"append": func(d *Dataset) (*Dataset, error) {
			return d.Append(t.Context(), Batches(lancetest.Batch(300, 310)))
		},
		"delete": func(d *Dataset) (*Dataset, error) {
			return d.Delete(t.Context(), []Condition{{Column: "group", Op: Equal, Value: "group-2"}})
		},
		"index":   func(d *Dataset) (*Dataset, error) { return d.CreateIndex(t.Context(), "group") },
		"refresh": func(d *Dataset) (*Dataset, error) { return d.RefreshIndexes(t.Context()) },
		"compact": func(d *Dataset) (*Dataset, error) {
			next, _, err := d.Compact(t.Context(), CompactOptions{})
			return next, err
		},
		"merge": func(d *Dataset) (*Dataset, error) {
			next, _, err := d.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(90, 210))})
			return next, err
		},
		"clean up": func(d *Dataset) (*Dataset, error) {
			_, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
			return d, err
		},
	}
	start := objstore.NewMemory()
	d := filled(t, start, 200, 50)
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	_, err = d.Append(t.Context(), Batches(lancetest.Batch(200, 205)))
	ok(t, err)
	for name, op := range ops {
		t.Run(name, func(t *testing.T) {
			after := start.Clone()
			d, err := Open(t.Context(), after, OpenOptions{})
			ok(t, err)
			before := sorted(collect(t, d.Scan(t.Context(), ScanOptions{})))
			next, err := op(d)
			ok(t, err)
			done := sorted(collect(t, next.Scan(t.Context(), ScanOptions{})))
			for at := 1; crashAt(t, start, at, op, before, done); at++ {
			}
		})
	}
}

// crashAt reports whether the operation made at least so many changing calls.
func crashAt(t *testing.T, start *objstore.Memory, at int, op func(*Dataset) (*Dataset, error), before, done []string) bool {
	t.Helper()
	reached := false
	for _, arrived := range []bool{false, true} {
		mem := start.Clone()
		fault := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			return objstore.Fate{Crash: c.Mutates() && c.N == at, Done: arrived}
		})
		d, err := Open(t.Context(), fault, OpenOptions{})
		ok(t, err)
		_, err = op(d)
		reached = reached || fault.Changes() >= at
		d, openErr := Open(t.Context(), mem, OpenOptions{})
		ok(t, openErr)
		rows := sorted(collect(t, d.Scan(t.Context(), ScanOptions{})))
		if err == nil || strings.Join(rows, "") != strings.Join(before, "") {
			same(t, fmt.Sprintf("crash at %d", at), done, rows)
		}
		same(t, fmt.Sprintf("crash at %d: verification", at), nil, faults(t, d))
		if err == nil || strings.Join(rows, "") != strings.Join(before, "") {
			continue
		}
		again, err := op(d)
		ok(t, err)
		same(t, fmt.Sprintf("crash at %d, and again", at), done, sorted(collect(t, again.Scan(t.Context(), ScanOptions{}))))
	}
	return reached
}

// TestASleeperCannotTakeANumberThatWasCleanedUp: a committer sleeps before its put
// until its number has been used, superseded and cleaned up.
func TestASleeperCannotTakeANumberThatWasCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMemory()
		filled(t, mem, 10, 10)
		slept := false
		s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if slept || c.Op != "put if absent" || !strings.HasPrefix(c.Key, versionsDir) {
				return objstore.Fate{}
			}
			slept = true
			others, err := Open(t.Context(), mem, OpenOptions{})
			for i := 0; i < 5 && err == nil; i++ {
				others, err = others.Append(t.Context(), Batches(lancetest.Batch(10+i, 11+i)))
			}
			if err == nil {
				time.Sleep(time.Hour)
				_, err = others.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, KeepAge: minKeepAge})
			}
			if err != nil {
				t.Error(err)
			}
			return objstore.Fate{}
		})
		d, err := Open(t.Context(), s, OpenOptions{})
		ok(t, err)
		_, err = d.Append(t.Context(), Batches(lancetest.Batch(90, 91)))
		want(t, err, ErrStale)
		if d, err = d.Latest(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "rows", expect(0, 15), collect(t, d.Scan(t.Context(), ScanOptions{})))
	})
}

func TestLostAnswersOfCommitsAreReported(t *testing.T) {
	for _, arrived := range []bool{true, false} {
		mem := objstore.NewMemory()
		filled(t, mem, 10, 10)
		lose := true
		s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if lose && strings.HasPrefix(c.Key, versionsDir) && c.Op == "put if absent" {
				return objstore.Fate{Err: objstore.ErrAmbiguous, Done: arrived}
			}
			return objstore.Fate{}
		})
		d, err := Open(t.Context(), s, OpenOptions{})
		ok(t, err)
		_, err = d.Append(t.Context(), Batches(lancetest.Batch(10, 20)))
		want(t, err, objstore.ErrAmbiguous)
		lose = false
		if d, err = d.Latest(t.Context()); err != nil {
			t.Fatal(err)
		}
		d, _, err = d.Merge(t.Context(), Merge{Rows: Batches(lancetest.Batch(10, 20)), KeepExisting: true})
		ok(t, err)
		same(t, "merged after the doubt", expect(0, 20), collect(t, d.Scan(t.Context(), ScanOptions{})))
	}
}

func TestIncompatibleCommitsAreNamed(t *testing.T) {
	s := objstore.NewMemory()
	d := filled(t, s, 10, 10)
	txn := []byte{0xea, 0x06, 0x00} // project, field 109, empty
	ok(t, s.Put(t.Context(), transactionsDir+"foreign.txn", txn))
	next := *d
	next.m = d.m.Clone()
	next.m.Version++
	next.m.TransactionFile = "foreign.txn"
	ok(t, s.PutIfAbsent(t.Context(), manifestKey(next.m.Version), next.m.File()))
	_, err := d.Append(t.Context(), Batches(lancetest.Batch(10, 11)))
	want(t, err, ErrConflict)
	if err == nil || !strings.Contains(err.Error(), "project") {
		t.Errorf("error %v does not name the other's operation", err)
	}
}

func TestTaggedVersionsSurviveCleanUp(t *testing.T) {
	s := objstore.NewMemory()
	d := filled(t, s, 100, 10)
	ok(t, s.Put(t.Context(), "_refs/tags/keep.json", []byte(`{"branch":null,"version":3,"manifestSize":1}`)))
	d, _, err := d.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	_, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, Now: time.Now().Add(48 * time.Hour)})
	ok(t, err)
	old, err := d.At(t.Context(), 3)
	ok(t, err)
	same(t, "the tagged version", expect(0, 20), collect(t, old.Scan(t.Context(), ScanOptions{})))
	_, err = d.At(t.Context(), 4)
	want(t, err, ErrNotFound)
}

// TestMissingAndBrokenFilesAreNamed breaks every file of a table in turn.
func TestMissingAndBrokenFilesAreNamed(t *testing.T) {
	start := objstore.NewMemory()
	d := filled(t, start, 100, 50)
	d, err := d.CreateIndex(t.Context(), "id")
	ok(t, err)
	d, err = d.Delete(t.Context(), []Condition{{Column: "seq", Op: Less, Value: 5}})
	ok(t, err)
	named := map[string]bool{}
	nameFiles(d.m, named)
	for info, err := range start.List(t.Context(), objstore.ListOptions{}) {
		ok(t, err)
		if !is(named, info.Key) && info.Key != manifestKey(d.Version()) {
			continue
		}
		for what, broken := range map[string][]byte{"gone": nil, "empty": {}, "garbage": []byte(strings.Repeat("garbage", 50))} {
			s := start.Clone()
			if ok(t, s.Delete(t.Context(), info.Key)); broken != nil {
				ok(t, s.Put(t.Context(), info.Key, broken))
			}
			d, err := Open(t.Context(), s, OpenOptions{})
			var found []error
			if err != nil {
				found = append(found, err)
			} else if d.Version() == 5 {
				_, err = d.Verify(t.Context(), func(err error) { found = append(found, err) })
				ok(t, err)
			} else {
				continue // the manifest itself is gone: the version before is the latest
			}
			var corrupt *CorruptError
			if len(found) == 0 || !errors.As(errors.Join(found...), &corrupt) || !strings.HasPrefix(info.Key, strings.TrimSuffix(corrupt.Path, "page_data.lance")) {
				t.Errorf("%s is %s: found %v", info.Key, what, found)
			}
		}
	}
}

// TestACommitFromAVersionThatCleanUpHasPassedIsStale: nobody can say any more what came
// in between.
func TestACommitFromAVersionThatCleanUpHasPassedIsStale(t *testing.T) {
	s := objstore.NewMemory()
	old := filled(t, s, 10, 10)
	d := old
	var err error
	for i := range 3 {
		d, err = d.Append(t.Context(), Batches(lancetest.Batch(10+i, 11+i)))
		ok(t, err)
	}
	_, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	_, err = old.Append(t.Context(), Batches(lancetest.Batch(20, 21)))
	want(t, err, ErrStale)
}

// TestACompactionCommitsNoFilesThatCleanUpMayHaveTaken: what one attempt wrote serves the
// next as long as it is young.
func TestACompactionCommitsNoFilesThatCleanUpMayHaveTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMemory()
		filled(t, mem, 40, 10)
		commits := 0
		s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if c.Op != "put if absent" || !strings.HasPrefix(c.Key, versionsDir) {
				return objstore.Fate{}
			}
			if commits++; commits == 2 || commits == 4 { // of the rewrite, after the reservation
				time.Sleep(MaxCommitAge * 3 / 4)
				other, err := Open(t.Context(), mem, OpenOptions{})
				ok(t, err)
				_, err = other.Delete(t.Context(), []Condition{{Column: "seq", Op: Equal, Value: 30 + commits}})
				ok(t, err)
			}
			return objstore.Fate{}
		})
		d, err := Open(t.Context(), s, OpenOptions{})
		ok(t, err)
		d, stats, err := d.Compact(t.Context(), CompactOptions{TargetRows: 20})
		ok(t, err)
		if commits != 6 || stats.Added != 2 {
			t.Errorf("%d commits, %+v", commits, stats)
		}
		for _, f := range d.Fragments() {
			info, err := mem.Stat(t.Context(), dataDir+f.Files[0])
			ok(t, err)
			if age := d.Time().Sub(info.Modified); age > MaxCommitAge {
				t.Errorf("fragment %d was committed %v after it was written", f.ID, age)
			}
		}
	})
}
