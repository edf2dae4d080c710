package journal

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

func TestFollowerSeesEachOperationOnceInOrderWhileWritersAppend(t *testing.T) {
	path := emptyJournal(t)
	fsys := noSync{fsx.OS}
	const writers, each = 4, 50
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	seen := make([]*ids, 3)
	for i := range seen {
		seen[i] = new(ids)
		wg.Go(func() {
			r, err := OpenReader(path, ReaderOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Close()
			flush := func() error {
				if len(seen[i].all) == writers*each {
					cancel()
				}
				return nil
			}
			if err := r.Follow(ctx, time.Millisecond, seen[i], flush); err != nil {
				t.Error(err)
			}
			if err := r.Refresh(seen[i]); err != nil {
				t.Error(err)
			}
		})
	}
	putFromMany(t, path, func(int) WriterOptions { return WriterOptions{FS: fsys} }, writers, each)
	wg.Wait()
	want := readIDs(t, fsx.OS, path)
	for _, s := range seen {
		if !slices.Equal(s.all, want) || len(want) != writers*each {
			t.Errorf("a follower saw %d operations, the journal holds %d", len(s.all), len(want))
		}
	}
}

// counting counts resets.
type counting struct {
	ids
	resets int
}

func (c *counting) Reset() { c.ids.Reset(); c.resets++ }

// TestReaderStartsOverWhenHistoryWasTakenBack lets a power loss take a head away
// that readers had seen, and another history grow in its place.
func TestReaderStartsOverWhenHistoryWasTakenBack(t *testing.T) {
	for _, tt := range []struct {
		name string
		grow []string // what comes instead of the lost operation
	}{
		{"shorter", nil},
		{"as long", []string{"other"}},
		{"longer", []string{"other-1", "other-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMem(t)
			var o outcome
			seed(t, m, &o)
			kept, err := fsx.ReadFile(m, memPath, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			r, err := OpenReader(memPath, ReaderOptions{FS: m})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			live, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
			if err != nil {
				t.Fatal(err)
			}
			defer live.Close()
			mustPut(t, live, "lost")
			got := new(counting)
			if err := r.Refresh(got); err != nil || len(got.all) != 4 {
				t.Fatal(got.all, err)
			}
			(&specimen{t: t, mem: m}).write(memPath, kept)
			want := []string{"old-1", "old-2", "old-3"}
			if tt.grow != nil {
				w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range tt.grow {
					mustPut(t, w, id)
				}
				w.Close()
				want = append(want, tt.grow...)
			}
			if err := r.Refresh(got); err != nil || !slices.Equal(got.all, want) || got.resets != 1 {
				t.Errorf("read %v after %d resets, %v; want %v", got.all, got.resets, err, want)
			}
			mustPut(t, live, "after")
			want = append(want, "after")
			if all := live.m.(*ids).all; !slices.Equal(all, want) {
				t.Errorf("the writer that was open holds %v", all)
			}
			if err := r.Refresh(got); err != nil || !slices.Equal(got.all, want) {
				t.Errorf("read %v, %v", got.all, err)
			}
			verifySound(t, m, memPath)
		})
	}
}

func TestReaderBeginsAnewAfterItsMachineRefused(t *testing.T) {
	s := newSpecimen(t)
	r, err := OpenReader(memPath, ReaderOptions{FS: s.mem})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	refusal := errors.New("not now")
	got := new(ids)
	picky := applyFunc(func(rec *Record) error {
		if rec.Seq == 3 {
			return refusal
		}
		return got.Apply(rec)
	})
	if err := r.Refresh(picky); !errors.Is(err, refusal) {
		t.Fatal(err)
	}
	got.Reset() // as applyFunc cannot
	if err := r.Refresh(got); err != nil || !slices.Equal(got.all, specimenIDs) {
		t.Errorf("read %v, %v", got.all, err)
	}
}

// TestJournalThatGoesAwayAndComesBack takes parts of a journal away from a reader
// and a writer that have it open: each says what is missing, and goes on when it
// is back.
func TestJournalThatGoesAwayAndComesBack(t *testing.T) {
	for _, tt := range []struct {
		name  string
		moved []string
		want  error
	}{
		{"head", []string{memPath}, ErrHeadMissing},
		{"data directory", []string{memPath + ".d"}, ErrDataMissing},
		{"everything", []string{memPath, memPath + ".d"}, fs.ErrNotExist},
		{"the directory above", []string{"/j"}, fs.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMem(t)
			var o outcome
			seed(t, m, &o)
			w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			mustPut(t, w, "first")
			for _, p := range tt.moved {
				if err := m.Rename(p, "/"+strings.ReplaceAll(p, "/", "_")); err != nil {
					t.Fatal(err)
				}
			}
			if err := put(t.Context(), w, "lost"); !errors.Is(err, tt.want) {
				t.Errorf("append: %v, want %v", err, tt.want)
			}
			if r, err := OpenReader(memPath, ReaderOptions{FS: m}); err == nil {
				err = r.Refresh(new(ids))
				r.Close()
				if !errors.Is(err, tt.want) {
					t.Errorf("read: %v, want %v", err, tt.want)
				}
			}
			for _, p := range slices.Backward(tt.moved) {
				if err := m.Rename("/"+strings.ReplaceAll(p, "/", "_"), p); err != nil {
					t.Fatal(err)
				}
			}
			mustPut(t, w, "back")
			want := []string{"old-1", "old-2", "old-3", "first", "back"}
			if got := readIDs(t, m, memPath); !slices.Equal(got, want) {
				t.Errorf("journal holds %v", got)
			}
		})
	}
}

func TestJournalThatWasReplacedIsNotWrittenOver(t *testing.T) {
	m := newMem(t)
	var o outcome
	seed(t, m, &o)
	w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "mine")
	r, err := OpenReader(memPath, ReaderOptions{FS: m})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	opts := memOptions(m)
	opts.Worker = new(uint64(8))
	other, err := Create(t.Context(), "/j/other.atj", opts, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, other, "theirs")
	other.Close()
	if err := errors.Join(m.Rename("/j/other.atj", memPath), m.Rename(memPath+".d", "/j/mine.d"), m.Rename("/j/other.atj.d", memPath+".d")); err != nil {
		t.Fatal(err)
	}
	if err := put(t.Context(), w, "again"); !errors.Is(err, ErrReplaced) {
		t.Errorf("append: %v", err)
	}
	if err := r.Refresh(new(ids)); !errors.Is(err, ErrReplaced) {
		t.Errorf("read: %v", err)
	}
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"theirs"}) {
		t.Errorf("the other journal holds %v", got)
	}
}
