package datagen

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/foldlog/foldlog/objstore"
)

// pinsIn counts the pins of a log.
func pinsIn(t testing.TB, mem objstore.Store) (n int) {
	t.Helper()
	for info, err := range mem.List(t.Context(), objstore.ListOptions{}) {
		check(t, err)
		if strings.Contains(info.Key, "/_pins/") && strings.HasSuffix(info.Key, "/held.json") {
			n++
		}
	}
	return n
}

// scattered is a log with items in many fragments of the base and as many generations.
func scattered(t *testing.T, mem objstore.Store, items int) (*Log, *Writer) {
	t.Helper()
	l := newLog(t, mem)
	for i := range items / 2 {
		w := newWriter(t, l)
		endItem(t, w, fmt.Sprintf("merged-%d", i))
		check(t, w.Close(t.Context()))
	}
	w, err := l.NewWriter(t.Context(), WriterOptions{MergeAfter: -1, MaxLive: -1})
	check(t, err)
	for i := range items / 2 {
		endItem(t, w, fmt.Sprintf("live-%d", i))
	}
	return l, w
}

func endItem(t *testing.T, w *Writer, key string) {
	t.Helper()
	s, err := w.Open(t.Context(), key, CreateOptions{})
	check(t, err)
	check(t, s.CheckpointEnd(t.Context(), step(0), []Change{set("x", 1)}, EndCompleted))
}

// TestPassesArePinnedFromTheirStart looks for a pin at every read of a data file.
func TestPassesArePinnedFromTheirStart(t *testing.T) {
	const items = 10
	mem := objstore.NewMemory()
	_, w := scattered(t, mem, items)
	defer w.Close(t.Context())
	for name, pass := range map[string]func(*View) (int, error){
		"All": func(v *View) (n int, _ error) {
			for _, err := range v.All(t.Context()) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n / 4, nil
		},
		"Folds": func(v *View) (n int, _ error) {
			for _, err := range v.Folds(t.Context()) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"Items": func(v *View) (n int, _ error) {
			for _, err := range v.Items(t.Context(), ItemQuery{}) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"Copy": func(v *View) (int, error) {
			n, err := v.Copy(t.Context(), objstore.NewMemory(), nil)
			return int(n) / 4, err
		},
		"Overview": func(v *View) (int, error) {
			o, err := v.Overview(t.Context())
			return o.Items, err
		},
		"Classes": func(v *View) (int, error) {
			c, err := v.Classes(t.Context())
			return c.Len(), err
		},
		"Unfinished": func(v *View) (int, error) {
			u, err := v.Unfinished(t.Context())
			if err != nil {
				return 0, err
			}
			defer u.Close()
			return u.Classes().Len(), nil
		},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, read only %t", name, readOnly), func(t *testing.T) {
				var armed atomic.Bool
				var reads, bare atomic.Int64
				s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
					switch {
					case !armed.Load():
					case readOnly && strings.HasPrefix(c.Op, "put"):
						return objstore.Fate{Err: objstore.ErrDenied}
					case strings.Contains(c.Key, "/data/"):
						reads.Add(1)
						if pinsIn(t, mem) == 0 {
							bare.Add(1)
						}
					}
					return objstore.Fate{}
				})
				v, err := newLog(t, s).View(t.Context())
				check(t, err)
				armed.Store(true)
				n, err := pass(v)
				if err != nil || n != items {
					t.Errorf("%d items of %d: %v", n, items, err)
				}
				if reads.Load() == 0 || !readOnly && bare.Load() > 0 {
					t.Errorf("%d of %d reads without a pin", bare.Load(), reads.Load())
				}
				if left := pinsIn(t, mem); left > 0 {
					t.Errorf("%d pins are left", left)
				}
			})
		}
	}
}

// TestAPassOutlivesACleanUpOfAnyAge merges, compacts and removes every file that nobody
// holds between two events of the base.
func TestAPassOutlivesACleanUpOfAnyAge(t *testing.T) {
	if testing.Short() {
		return // a clean-up waits to see whether a pin is renewed
	}
	t.Parallel()
	const items = 12
	mem := objstore.NewMemory()
	l, live := scattered(t, mem, items)
	v, err := newLog(t, mem).View(t.Context())
	check(t, err)
	seen := map[string]bool{}
	cleaned := false
	for e, err := range v.All(t.Context()) {
		check(t, err)
		if seen[e.ID] {
			t.Errorf("event %s came twice", e.ID)
		}
		if !cleaned && strings.HasPrefix(e.Item, "merged-") { // from then on no newer state will do
			cleaned = true
			check(t, live.Close(t.Context()))
			maintain(t, l)
			if left, err := l.table.Base(t.Context()); err != nil || len(left.Fragments()) != 1 {
				t.Errorf("%d fragments: %v", len(left.Fragments()), err)
			}
		}
		seen[e.ID] = true
	}
	if len(seen) != 4*items {
		t.Errorf("%d events of %d", len(seen), 4*items)
	}
}

// TestACopyOutlivesACleanUpOfAnyAge merges, compacts and removes every file that nobody
// holds at the first read of data, while writers go on. A log that cannot be written to has
// no pins, and is copied as it is after that.
func TestACopyOutlivesACleanUpOfAnyAge(t *testing.T) {
	if testing.Short() {
		return // a clean-up waits to see whether a pin is renewed
	}
	for _, readOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("read only %t", readOnly), func(t *testing.T) { copyDuringCleanUp(t, readOnly) })
	}
}

func copyDuringCleanUp(t *testing.T, readOnly bool) {
	t.Parallel()
	const items = 8
	mem := objstore.NewMemory()
	l, live := scattered(t, mem, items)
	var armed atomic.Bool
	hooked := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if strings.Contains(c.Key, "/data/") && armed.CompareAndSwap(true, false) {
			endItem(t, live, "late")
			check(t, live.Close(t.Context()))
			maintain(t, l)
		}
		if readOnly && strings.HasPrefix(c.Op, "put") {
			return objstore.Fate{Err: objstore.ErrDenied}
		}
		return objstore.Fate{}
	})
	v, err := newLog(t, hooked).View(t.Context())
	check(t, err)
	armed.Store(true)
	to := objstore.NewMemory()
	told, all := int64(0), int64(-1)
	n, err := v.Copy(t.Context(), objstore.Prefix(to, Path("digits", "first")), func(done, total int64) { told, all = done, total })
	check(t, err)
	if armed.Load() {
		t.Fatal("no data was read")
	}
	want := items
	if readOnly {
		want++
	}
	if n != 4*int64(want) || told != all {
		t.Errorf("%d events of %d, told of %d bytes of %d", n, 4*want, told, all)
	}
	_, err = newLog(t, to).Verify(t.Context(), func(err error) { t.Error(err) })
	check(t, err)
	copied, err := newLog(t, to).View(t.Context())
	check(t, err)
	o, err := copied.Overview(t.Context())
	check(t, err)
	if o.Items != want || o.Status.Completed != want || o.Suspects != 0 {
		t.Errorf("the copy has %+v", o)
	}
}

// TestAPassThatCannotGoOnSaysWhy denies every read of a data file in turn, also those that
// come when rows were passed on.
func TestAPassThatCannotGoOnSaysWhy(t *testing.T) {
	mem := objstore.NewMemory()
	_, w := scattered(t, mem, 6)
	defer w.Close(t.Context())
	for denied := int64(1); ; denied++ {
		var reads atomic.Int64
		s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if strings.Contains(c.Key, "/data/") && reads.Add(1) >= denied {
				return objstore.Fate{Err: objstore.ErrDenied}
			}
			return objstore.Fate{}
		})
		v, err := newLog(t, s).View(t.Context())
		check(t, err)
		_, err = v.Overview(t.Context())
		if err == nil {
			if denied < 4 {
				t.Errorf("%d reads in all", denied-1)
			}
			return
		}
		if !errors.Is(err, objstore.ErrDenied) {
			t.Fatalf("read %d is denied: %v", denied, err)
		}
	}
}
