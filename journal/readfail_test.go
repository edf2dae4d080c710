package journal

import (
	"errors"
	"io/fs"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// readTrap fails the n-th call that only reads, or all from there on.
func readTrap(mem *fsx.Mem, n int64, cause error, lasting bool) (tr *fsx.Fault, armed *atomic.Bool, hit *atomic.Bool) {
	var calls atomic.Int64
	armed, hit = new(atomic.Bool), new(atomic.Bool)
	return fsx.NewFault(mem, func(c fsx.Call) fsx.Fate {
		if !armed.Load() || c.Mutates() {
			return fsx.Fate{}
		}
		if k := calls.Add(1); k == n || lasting && k > n {
			hit.Store(true)
			return fsx.Fate{Err: cause}
		}
		return fsx.Fate{}
	}), armed, hit
}

var readTroubles = []struct {
	name    string
	cause   error
	lasting bool
}{
	{"input/output error", syscall.EIO, false},
	{"input/output error for a while", syscall.EIO, true},
	{"not permitted", syscall.EACCES, true},
	{"too many open files", syscall.EMFILE, true},
}

// TestWhatCannotBeReadIsNotCorrupt fails every reading call of a reader and of a
// check: the error is the system's, and the same reader goes on afterwards.
func TestWhatCannotBeReadIsNotCorrupt(t *testing.T) {
	for _, tb := range readTroubles {
		t.Run(tb.name, func(t *testing.T) {
			s := newSpecimen(t)
			for n := int64(1); ; n++ {
				tr, armed, hit := readTrap(s.mem, n, tb.cause, tb.lasting)
				opts := ReaderOptions{FS: tr}
				armed.Store(true)
				r, err := OpenReader(memPath, opts)
				got := new(ids)
				if err == nil {
					err = r.Refresh(got)
				}
				armed.Store(false)
				if !hit.Load() {
					r.Close()
					break
				}
				var corrupt *CorruptError
				if !errors.Is(err, tb.cause) || errors.As(err, &corrupt) {
					t.Errorf("call %d: %v", n, err)
				}
				if r == nil {
					continue
				}
				if err := r.Refresh(got); err != nil || !slices.Equal(got.all, specimenIDs) {
					t.Errorf("call %d: afterwards %v, %v", n, got.all, err)
				}
				r.Close()
			}
			for n := int64(1); ; n++ {
				tr, armed, hit := readTrap(s.mem, n, tb.cause, tb.lasting)
				armed.Store(true)
				_, err := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: tr}}, func(f Finding) {
					if f.Severity == Fault {
						t.Errorf("call %d: found %v", n, f.Err)
					}
				})
				if !hit.Load() {
					break
				}
				if err == nil {
					t.Logf("call %d was not needed", n)
				}
			}
		})
	}
}

// TestWriterSurvivesWhatItCannotRead fails every reading call of an append.
func TestWriterSurvivesWhatItCannotRead(t *testing.T) {
	for _, tb := range readTroubles {
		t.Run(tb.name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); ; n++ {
				var o outcome
				mem := newMem(t)
				seed(t, mem, &o)
				tr, armed, hit := readTrap(mem, n, tb.cause, tb.lasting)
				m := new(ids)
				w, err := OpenWriter(t.Context(), memPath, memOptions(tr), m)
				if err != nil {
					t.Fatal(err)
				}
				armed.Store(true)
				err = put(t.Context(), w, "troubled-1", "troubled-2")
				armed.Store(false)
				o.tell(err, false, "troubled-1", "troubled-2")
				if err != nil && !errors.Is(err, tb.cause) && !errors.Is(err, fs.ErrPermission) {
					t.Errorf("call %d: %v", n, err)
				}
				if err := put(t.Context(), w, "next"); err != nil {
					t.Errorf("call %d: the next append: %v", n, err)
				}
				o.acked = append(o.acked, []string{"next"})
				o.check(t, m.all)
				w.Close()
				o.reopen(t, mem)
				if t.Failed() || !hit.Load() {
					break
				}
			}
		})
	}
}
