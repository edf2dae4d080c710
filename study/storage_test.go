package study_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/storagetest"
)

func TestMemoryConforms(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) study.Storage {
		s := study.NewMemory(study.MemoryOptions{})
		t.Cleanup(func() { s.Close() })
		return s
	})
}

func TestJournalConforms(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) study.Storage {
		s, err := study.CreateJournal(context.Background(), filepath.Join(t.TempDir(), "s.atj"), journal.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			s.Close()
			checkReplay(t, s)
		})
		return s
	})
}

// checkReplay reads the journal again from the beginning and compares.
func checkReplay(t *testing.T, s *study.Journal) {
	t.Helper()
	r, err := study.OpenJournalReader(s.Writer().Path(), journal.ReaderOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	defer r.Close()
	if diff := study.DiffSnapshots(s.Snapshot(), r.Snapshot()); diff != "" {
		t.Errorf("replay differs: (-written +replayed)\n%s", diff)
	}
}

// A28: the clock steps back by ten minutes between two operations.
func TestClockSteppingBackIsTolerated(t *testing.T) {
	now := time.UnixMilli(1_000_000_000)
	opts := journal.WriterOptions{Clock: func() time.Time { now = now.Add(-10 * time.Minute); return now }}
	s, err := study.CreateJournal(context.Background(), filepath.Join(t.TempDir(), "s.atj"), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, _, err := study.OpenOrCreate(context.Background(), s, study.Config{Name: name, Directions: []study.Direction{study.Maximize}}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	checkReplay(t, s)
}

// Two handles on one journal see each other's operations and fence each other.
func TestTwoHandlesShareOneJournal(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "s.atj")
	a, err := study.CreateJournal(ctx, path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := study.OpenJournal(ctx, path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := study.Config{Name: "a", Directions: []study.Direction{study.Minimize}}
	id, created, err := study.OpenOrCreate(ctx, a, c)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	if again, created, err := study.OpenOrCreate(ctx, b, c); err != nil || created || again != id {
		t.Fatal(again, created, err)
	}
	for i, s := range []study.Storage{a, b, a, b} {
		err := s.Update(ctx, func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			if ref.Number != uint64(i) {
				t.Errorf("number %d where %d is next", ref.Number, i)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Refresh(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := study.DiffSnapshots(a.Snapshot(), b.Snapshot()); diff != "" {
		t.Error(diff)
	}
}

// A5
func TestNumbersOfManyParallelCreatesAreDense(t *testing.T) {
	ctx := context.Background()
	s := study.NewMemory(study.MemoryOptions{})
	id, _, err := study.OpenOrCreate(ctx, s, study.Config{Name: "a", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		t.Fatal(err)
	}
	const workers, each = 32, 1000
	var seen [workers * each]atomic.Int32
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				err := s.Update(ctx, func(tx *study.Tx) error {
					ref, err := tx.CreateTrial(id, nil)
					if err == nil && ref.Number < workers*each {
						seen[ref.Number].Add(1)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for n := range seen {
		if got := seen[n].Load(); got != 1 {
			t.Fatalf("number %d was given %d times", n, got)
		}
	}
}
