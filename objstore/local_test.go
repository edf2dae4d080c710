package objstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

func memLocal(t *testing.T, fsys fsx.FS) *Local {
	t.Helper()
	s, err := OpenLocal("/data/table", LocalOptions{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWritesSurviveAPowerLossAtEveryCall kills the power before each call of a
// write: nothing that was acknowledged is lost, and nothing is ever there in part.
func TestWritesSurviveAPowerLossAtEveryCall(t *testing.T) {
	writes := map[string]func(*Local) error{
		"put":           func(l *Local) error { return l.Put(t.Context(), "a/b/k", []byte("value")) },
		"put if absent": func(l *Local) error { return l.PutIfAbsent(t.Context(), "a/b/k", []byte("value")) },
		"create": func(l *Local) error {
			w, err := l.Create(t.Context(), "a/b/k")
			if err != nil {
				return err
			}
			if _, err := w.Write([]byte("value")); err != nil {
				return err
			}
			return w.Close()
		},
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				mem := fsx.NewMem()
				fault := fsx.NewFault(mem, func(c fsx.Call) fsx.Fate { return fsx.Fate{Crash: c.Mutates() && c.N == at} })
				err := write(memLocal(t, fault))
				after := memLocal(t, mem.PowerLoss(nil))
				got, getErr := after.Get(t.Context(), "a/b/k", 100)
				switch {
				case err == nil && string(got) != "value":
					t.Fatalf("acknowledged, and gone after a power loss: %q, %v", got, getErr)
				case getErr == nil && string(got) != "value":
					t.Fatalf("crash at call %d left %q", at, got)
				case getErr != nil && !errors.Is(getErr, ErrNotFound):
					t.Fatal(getErr)
				}
				if again := write(after); again != nil {
					t.Fatalf("after a crash at call %d: %v", at, again)
				}
				if err == nil && fault.Changes() < at {
					return
				}
			}
		})
	}
}

// TestLinksWhoseAnswerIsLostAreSettled is the network file system that links, loses
// the answer and refuses the repetition.
func TestLinksWhoseAnswerIsLostAreSettled(t *testing.T) {
	for _, c := range []struct {
		name string
		fate fsx.Fate
		want error
	}{
		{"made", fsx.Fate{Err: os.ErrDeadlineExceeded, Done: true}, nil},
		{"made and repeated", fsx.Fate{Err: os.ErrExist, Done: true}, nil},
		{"not made", fsx.Fate{Err: os.ErrDeadlineExceeded}, os.ErrDeadlineExceeded},
		{"said to be taken, and it is not", fsx.Fate{Err: os.ErrExist}, ErrAmbiguous},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := fsx.NewFault(fsx.NewMem(), func(call fsx.Call) fsx.Fate {
				if call.Op == "link" {
					return c.fate
				}
				return fsx.Fate{}
			})
			err := memLocal(t, fsys).PutIfAbsent(t.Context(), "k", []byte("v"))
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

func TestAFailedSyncIsNotAcknowledged(t *testing.T) {
	for _, op := range []string{"sync", "syncdir", "write", "rename"} {
		full := errors.New("no space left")
		fsys := fsx.NewFault(fsx.NewMem(), func(c fsx.Call) fsx.Fate {
			if c.Op == op && strings.HasPrefix(c.Path, "/data/table") {
				return fsx.Fate{Err: full}
			}
			return fsx.Fate{}
		})
		if err := memLocal(t, fsys).Put(t.Context(), "k", []byte("v")); !errors.Is(err, full) {
			t.Errorf("%s: error %v", op, err)
		}
	}
}

func TestFileSystemsWithoutLinksAreNamed(t *testing.T) {
	mem := fsx.NewMem()
	mem.NoLinks = true
	err := memLocal(t, mem).PutIfAbsent(t.Context(), "k", []byte("v"))
	if !fsx.IsUnsupported(err) {
		t.Errorf("error %v", err)
	}
}

func TestSweepRemovesWhatDeadWritersLeft(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenLocal(dir, LocalOptions{NoSync: true})
	ok(t, err)
	w, err := s.Create(t.Context(), "a/dead")
	ok(t, err)
	_, err = w.Write([]byte("half"))
	ok(t, err)
	if n, err := s.Sweep(t.Context(), "a/", time.Hour); n != 0 || err != nil {
		t.Errorf("swept %d of the living, %v", n, err)
	}
	if n, err := s.Sweep(t.Context(), "a/", -time.Hour); n != 1 || err != nil {
		t.Errorf("swept %d, %v", n, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "a", "*"))
	ok(t, err)
	if len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestDeletingTheLastObjectRemovesItsDirectories(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	ok(t, s.Put(t.Context(), "a/b/c/k", nil))
	ok(t, s.Put(t.Context(), "a/other", nil))
	ok(t, s.Delete(t.Context(), "a/b/c/k"))
	if _, err := os.Stat(filepath.Join(dir, "a", "b")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a/b is still there: %v", err)
	}
	if _, err := s.Stat(t.Context(), "a/other"); err != nil {
		t.Error(err)
	}
}

// TestASyncThatFailedOnceIsNotTriedAgain: after a failed sync the system may forget what
// it had to write, so that the next one succeeds and proves nothing.
func TestASyncThatFailedOnceIsNotTriedAgain(t *testing.T) {
	for name, put := range map[string]func(context.Context, Store) error{
		"put if absent": func(ctx context.Context, s Store) error { return s.PutIfAbsent(ctx, "manifest/2", []byte("two")) },
		"stage":         stageAll,
	} {
		t.Run(name, func(t *testing.T) {
			var linked, failed atomic.Bool
			fsys := fsx.NewFault(fsx.NewMem(), func(c fsx.Call) fsx.Fate {
				if c.Op == "link" {
					linked.Store(true)
				}
				if c.Op == "syncdir" && linked.Load() && failed.CompareAndSwap(false, true) {
					return fsx.Fate{Err: errors.New("input/output error")}
				}
				return fsx.Fate{}
			})
			want(t, put(t.Context(), memLocal(t, fsys)), ErrAmbiguous)
		})
	}
}

// TestADirectoryThatAnotherMadeAgainIsSettledAgain: it was removed here, and who made it
// again died before its name was durable.
func TestADirectoryThatAnotherMadeAgainIsSettledAgain(t *testing.T) {
	mem := fsx.NewMem()
	s := memLocal(t, mem)
	ok(t, s.Put(t.Context(), "a/one", nil))
	ok(t, s.Delete(t.Context(), "a/one"))
	dying := fsx.NewFault(mem, func(c fsx.Call) fsx.Fate { return fsx.Fate{Crash: c.Op == "syncdir"} })
	want(t, memLocal(t, dying).Put(t.Context(), "a/two", nil), fsx.ErrCrashed)
	ok(t, s.Put(t.Context(), "a/three", []byte("kept")))
	_, err := memLocal(t, mem.PowerLoss(nil)).Get(t.Context(), "a/three", 10)
	ok(t, err)
}
