package study_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// startJournal makes a journal with one study.
func startJournal(t *testing.T, path string) (*study.Journal, study.StudyID) {
	t.Helper()
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	id, _, err := study.OpenOrCreate(t.Context(), j, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		t.Fatal(err)
	}
	return j, id
}

// TestSnapshotsShowTransactionsWhole looks at a journal all the time while what
// others publish, several operations at once, is taken in.
func TestSnapshotsShowTransactionsWhole(t *testing.T) {
	const ops, rounds = 5000, 6
	path := filepath.Join(t.TempDir(), "s.atj")
	w, id := startJournal(t, path)
	base := w.Snapshot().Seq()
	other, err := study.OpenJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	look := func(name string, snapshot func() *study.Snapshot) {
		looking.Go(func() {
			seen := uint64(0)
			for ctx.Err() == nil {
				seq := snapshot().Seq()
				if (seq-base)%ops != 0 || seq < seen {
					t.Errorf("%s shows operation %d after %d", name, seq-base, seen)
					return
				}
				seen = seq
			}
		})
	}
	look("a reader", r.Snapshot)
	look("a writer", other.Snapshot)
	for i := range rounds {
		err := w.Update(t.Context(), func(tx *study.Tx) error {
			for k := range ops {
				if err := tx.SetStudyUserAttr(id, fmt.Sprint("k", k%10), fmt.Append(nil, i)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, refresh := range []func(context.Context) error{r.Refresh, other.Refresh} {
			if err := refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	looking.Wait()
}

// TestReaderShowsWhatItHadUntilAnotherHistoryIsRead puts an older copy in the place of
// a journal: a reader shows the one or the other, and never nothing.
func TestReaderShowsWhatItHadUntilAnotherHistoryIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	w, id := startJournal(t, path)
	set := func(n int) {
		t.Helper()
		for i := range n {
			if err := w.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudyUserAttr(id, "k", fmt.Append(nil, i)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(100)
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set(1)
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, old, 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for ctx.Err() == nil {
				if seq := r.Snapshot().Seq(); seq != 101 && seq != 102 {
					t.Errorf("shows operation %d", seq)
					return
				}
			}
		})
	}
	if err := r.Refresh(t.Context()); err != nil || r.Resets() != 1 || r.Snapshot().Seq() != 101 {
		t.Errorf("%v, %d resets, at %d", err, r.Resets(), r.Snapshot().Seq())
	}
	stop()
	looking.Wait()
}
