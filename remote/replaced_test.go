package remote_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// addTrials creates raw trials.
func addTrials(t *testing.T, s study.Storage, n int) {
	t.Helper()
	for range n {
		must(t, s.Update(t.Context(), func(tx *study.Tx) error { _, err := tx.CreateTrial(0, nil); return err }))
	}
}

// newJournal makes a journal with a study on disk, and leaves it open.
func newJournal(t *testing.T, path, name string) *study.Journal {
	t.Helper()
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	must(t, err)
	_, _, err = study.OpenOrCreate(t.Context(), j, study.Config{Name: name, Directions: []study.Direction{study.Minimize}})
	must(t, err)
	return j
}

// copyJournal puts a copy of a journal at another path.
func copyJournal(t *testing.T, from, to string) {
	t.Helper()
	must(t, os.CopyFS(to+".new.d", os.DirFS(from+".d")))
	if err := os.Rename(to+".d", to+fmt.Sprint(".old", rand.Uint64())); !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
	}
	must(t, os.Rename(to+".new.d", to+".d"))
	b, err := os.ReadFile(from)
	must(t, err)
	must(t, os.WriteFile(to+".new", b, 0o666))
	must(t, os.Rename(to+".new", to))
}

func onDisk(t *testing.T, path string) *study.Snapshot {
	t.Helper()
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	must(t, err)
	defer r.Close()
	return r.Snapshot()
}

func TestAnotherJournalInThePlaceOfOneIsNotMixedWithIt(t *testing.T) {
	for _, trials := range []int{0, 3, 9} { // less, as much and more than the one before
		for _, first := range []string{"read", "write"} {
			t.Run(fmt.Sprint(first, trials), func(t *testing.T) {
				root, c := newServer(t)
				path := filepath.Join(root, "s.atj")
				must(t, newJournal(t, path, "old").Close())
				mine, err := c.OpenJournal(t.Context(), "s.atj", nil)
				must(t, err)
				addTrials(t, mine, 3)

				other := newJournal(t, filepath.Join(root, "other.atj"), "new")
				addTrials(t, other, trials)
				must(t, other.Close())
				copyJournal(t, filepath.Join(root, "other.atj"), path)

				if first == "read" {
					wantErr(t, mine.Refresh(t.Context()), journal.ErrReplaced)
				}
				err = mine.Update(t.Context(), func(tx *study.Tx) error { _, err := tx.CreateTrial(0, nil); return err })
				wantErr(t, err, journal.ErrReplaced)
				wantErr(t, mine.Refresh(t.Context()), journal.ErrReplaced)
				if n := onDisk(t, path).NumTrials(); n != trials {
					t.Errorf("the other journal has %d trials, not %d", n, trials)
				}
				anew, err := c.OpenJournal(t.Context(), "s.atj", nil)
				must(t, err)
				addTrials(t, anew, 1)
				if st, err := anew.Snapshot().Study(0); err != nil || st.Config.Name != "new" || anew.Snapshot().NumTrials() != trials+1 {
					t.Errorf("%d trials: %v", anew.Snapshot().NumTrials(), err)
				}
			})
		}
	}
}

func TestAnOlderCopyOfAJournalIsReadAnew(t *testing.T) {
	for _, more := range []int{0, 3, 9} { // the copy is behind, as far and further
		for _, first := range []string{"read", "write"} {
			t.Run(fmt.Sprint(first, more), func(t *testing.T) {
				root, c := newServer(t)
				path, older := filepath.Join(root, "s.atj"), filepath.Join(t.TempDir(), "older.atj")
				must(t, newJournal(t, path, "s").Close())
				copyJournal(t, path, older)
				mine, err := c.OpenJournal(t.Context(), "s.atj", nil)
				must(t, err)
				addTrials(t, mine, 3)

				back, err := study.OpenJournal(t.Context(), older, journal.WriterOptions{})
				must(t, err)
				for range more {
					must(t, back.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudyUserAttr(0, "history", []byte(`"other"`)) }))
				}
				must(t, back.Close())
				copyJournal(t, older, path)

				want := 0
				if first == "read" {
					must(t, mine.Refresh(t.Context()))
				} else {
					addTrials(t, mine, 1)
					want = 1
				}
				disk := onDisk(t, path)
				for name, snap := range map[string]*study.Snapshot{"here": mine.Snapshot(), "on disk": disk} {
					st, err := snap.Study(0)
					must(t, err)
					if _, ok := st.Attr("history"); snap.NumTrials() != want || ok != (more > 0) || snap.Seq() != uint64(1+more+want) {
						t.Errorf("%s: %d trials, %d operations, %v", name, snap.NumTrials(), snap.Seq(), ok)
					}
				}
			})
		}
	}
}

func TestAnOlderCopyIsNoticedByWhatFollowsItsLongEnd(t *testing.T) {
	root, c := newServer(t)
	path := filepath.Join(root, "s.atj")
	j := newJournal(t, path, "s")
	big := append(append([]byte{'"'}, make([]byte, 3<<20)...), '"')
	for i := range big[1 : len(big)-1] {
		big[1+i] = 'x'
	}
	grow := func(s study.Storage, keys ...string) {
		for _, key := range keys {
			must(t, s.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudyUserAttr(0, key, big) }))
		}
	}
	grow(j, "a")
	must(t, j.Close())
	older := filepath.Join(t.TempDir(), "older.atj")
	copyJournal(t, path, older)
	mine, err := c.OpenJournal(t.Context(), "s.atj", nil)
	must(t, err)
	addTrials(t, mine, 1)
	back, err := study.OpenJournal(t.Context(), older, journal.WriterOptions{})
	must(t, err)
	grow(back, "b", "c", "d", "e") // more than the server keeps at hand
	must(t, back.Close())
	copyJournal(t, older, path)
	must(t, mine.Refresh(t.Context()))
	if mine.Snapshot().NumTrials() != 0 || !cmp.Equal(mine.Snapshot().Seq(), onDisk(t, path).Seq()) {
		t.Errorf("%d trials, %d operations", mine.Snapshot().NumTrials(), mine.Snapshot().Seq())
	}
}

func TestARefusalNamesTheJournal(t *testing.T) {
	root, c := newServer(t)
	path := filepath.Join(root, "s.atj")
	must(t, newJournal(t, path, "old").Close())
	mine, err := c.OpenJournal(t.Context(), "s.atj", nil)
	must(t, err)
	must(t, newJournal(t, filepath.Join(root, "other.atj"), "new").Close())
	copyJournal(t, filepath.Join(root, "other.atj"), path)
	err = mine.Refresh(t.Context())
	if errors.Is(err, remote.ErrAway) || err == nil || err.Error() != "s.atj: "+journal.ErrReplaced.Error() {
		t.Error(err)
	}
}
