package journal

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/fsx"
)

// halted is a file system whose next call of a kind stands still once armed.
type halted struct {
	fsx.FS
	armed        atomic.Bool
	stands, goOn chan struct{}
}

func halt(fsys fsx.FS, op, suffix string) *halted {
	h := &halted{stands: make(chan struct{}), goOn: make(chan struct{})}
	h.FS = fsx.NewFault(fsys, func(c fsx.Call) fsx.Fate {
		if c.Op == op && strings.HasSuffix(c.Path, suffix) && h.armed.CompareAndSwap(true, false) {
			close(h.stands)
			<-h.goOn
		}
		return fsx.Fate{}
	})
	return h
}

func TestRefreshDoesNotWaitForWhatIsBeingPublished(t *testing.T) {
	for name, at := range map[string]struct{ op, suffix string }{
		"before the head is there": {"rename", "s.atj"},
		"after the head is there":  {"syncdir", "/j"},
	} {
		t.Run(name, func(t *testing.T) {
			h := halt(newMem(t), at.op, at.suffix)
			m := new(ids)
			w, err := Create(t.Context(), memPath, memOptions(h), m)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			mustPut(t, w, "a")
			h.armed.Store(true)
			done := make(chan error)
			go func() { done <- put(t.Context(), w, "b") }()
			<-h.stands
			if err := w.Refresh(t.Context()); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"a"}, m.all); diff != "" {
				t.Errorf("the machine holds more or less than what was told (-want +got):\n%s", diff)
			}
			close(h.goOn)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if err := w.Refresh(t.Context()); err != nil || !slices.Equal(m.all, []string{"a", "b"}) {
				t.Errorf("after all that: %v, %v", m.all, err)
			}
		})
	}
}

func TestRefreshSeesWhatOthersWereTold(t *testing.T) {
	mem := newMem(t)
	m := new(ids)
	w, err := Create(t.Context(), memPath, memOptions(mem), m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	other, err := OpenWriter(t.Context(), memPath, memOptions(mem), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var want []string
	for _, name := range []string{"a", "b", "c", "d"} {
		mustPut(t, other, name)
		want = append(want, name)
		if err := w.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, m.all); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		name += " answered"
		mustPut(t, w, name)
		want = append(want, name)
	}
}

func TestRefreshSeesAGroupWhoseRenameWentUnheard(t *testing.T) {
	mem := newMem(t)
	lost := errors.New("lost")
	var armed atomic.Bool
	fsys := fsx.NewFault(mem, func(c fsx.Call) fsx.Fate {
		if c.Op == "rename" && strings.HasSuffix(c.Path, "s.atj") && armed.CompareAndSwap(true, false) {
			return fsx.Fate{Err: lost, Done: true}
		}
		return fsx.Fate{}
	})
	m := new(ids)
	w, err := Create(t.Context(), memPath, memOptions(fsys), m)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "a")
	armed.Store(true)
	mustPut(t, w, "b")
	if armed.Load() {
		t.Fatal("nothing went wrong")
	}
	if err := w.Refresh(t.Context()); err != nil || !slices.Equal(m.all, []string{"a", "b"}) {
		t.Errorf("%v, %v", m.all, err)
	}
}
