package lance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// pinTimes sets how long things take for one test.
func pinTimes(t *testing.T, times pins.Times) {
	before := pins.Default
	pins.Default = times
	t.Cleanup(func() { pins.Default = before })
}

func pinKeys(t *testing.T, s objstore.Store) (keys []string) {
	t.Helper()
	for info, err := range s.List(t.Context(), objstore.ListOptions{Prefix: pins.Root}) {
		ok(t, err)
		keys = append(keys, info.Key)
	}
	return keys
}

// pinned waits until a reader has its pin.
func pinned(t *testing.T, s objstore.Store) {
	t.Helper()
	for !slices.ContainsFunc(pinKeys(t, s), func(k string) bool { return strings.HasSuffix(k, "/beat.json") }) {
		time.Sleep(time.Millisecond)
	}
}

// replaced makes another handle replace every file of the table, and clean up at once
// with no grace.
func replaced(t *testing.T, s objstore.Store) CleanUpStats {
	t.Helper()
	d, err := Open(t.Context(), s, OpenOptions{})
	ok(t, err)
	d, stats, err := d.Compact(t.Context(), CompactOptions{})
	ok(t, err)
	if stats.Removed < 2 {
		t.Fatalf("%d fragments were put together", stats.Removed)
	}
	cleaned, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	return cleaned
}

// outlived scans a table of five fragments that is replaced and cleaned up after the
// first batch.
func outlived(t *testing.T, s objstore.Store, meanwhile func()) (rows []string, err error) {
	d := filled(t, s, 50, 10)
	for rec, err := range d.Scan(t.Context(), ScanOptions{}) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, lancetest.Text(rec)...)
		if meanwhile != nil {
			meanwhile()
			meanwhile = nil
		}
	}
	return rows, nil
}

func TestALongScanOutlivesACleanUpWithoutGrace(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			pinTimes(t, pins.Times{After: 0, Term: 15 * time.Second}) // in which every reader renews, however busy the machine
			test := func(t *testing.T) { aLongScanOutlivesACleanUpWithoutGrace(t, s) }
			if name == "memory" {
				synctest.Test(t, test)
			} else { // files and connections go by the real clock
				test(t)
			}
		})
	}
}

func aLongScanOutlivesACleanUpWithoutGrace(t *testing.T, s objstore.Store) {
	var stats CleanUpStats
	rows, err := outlived(t, s, func() {
		pinned(t, s)
		stats = replaced(t, s)
	})
	ok(t, err)
	same(t, "a scan across a clean-up", expect(0, 50), rows)
	if stats.Pinned == 0 || stats.Versions == 0 {
		t.Errorf("the clean-up had nothing to leave: %+v", stats)
	}
	if left := pinKeys(t, s); len(left) != 0 {
		t.Errorf("the scan left %v", left)
	}
	d, err := Open(t.Context(), s, OpenOptions{})
	ok(t, err)
	same(t, "faults", nil, faults(t, d))
	after, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	if after.Files < stats.Pinned || after.Pinned != 0 {
		t.Errorf("%d files were held, and %+v removed once they were not", stats.Pinned, after)
	}
}

// TestAShortScanWithoutAPinIsToldWhatIsGone shows that the pin is what saves the long one.
func TestAShortScanWithoutAPinIsToldWhatIsGone(t *testing.T) {
	s := objstore.NewMemory()
	_, err := outlived(t, s, func() { replaced(t, s) })
	want(t, err, ErrCorrupt)
	if left := pinKeys(t, s); len(left) != 0 {
		t.Errorf("a short scan left %v", left)
	}
}

// TestThePinOfADeadReaderExpires by the beat that stands still, and that of a living one
// does not, though its reader is slow.
func TestThePinOfADeadReaderExpires(t *testing.T) {
	synctest.Test(t, thePinOfADeadReaderExpires)
}

func thePinOfADeadReaderExpires(t *testing.T) {
	mem := objstore.NewMemory()
	d := filled(t, mem, 50, 10)
	alive, err := d.Pin(t.Context())
	ok(t, err)
	dying := objstore.NewFault(mem, func(objstore.Call) objstore.Fate { return objstore.Fate{} })
	other, err := Open(t.Context(), dying, OpenOptions{})
	ok(t, err)
	dead, err := other.Pin(t.Context())
	ok(t, err)
	dying.Crash()
	defer dead.Release()
	if stats := replaced(t, mem); stats.Pinned == 0 {
		t.Errorf("the living pin held nothing: %+v", stats)
	}
	if n := len(pinKeys(t, mem)); n != 2 {
		t.Errorf("%d objects of pins are left, want those of the living one", n)
	}
	same(t, "rows of the version that is pinned", expect(0, 50), collect(t, d.Scan(t.Context(), ScanOptions{})))
	alive.Release()
	d, err = d.Latest(t.Context())
	ok(t, err)
	stats, err := d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
	ok(t, err)
	if stats.Pinned != 0 || stats.Files == 0 {
		t.Errorf("after the release: %+v", stats)
	}
}

// TestAPinAndACleanUpNeverMissEachOther takes a pin before and after each call of a
// clean-up: it fails, or everything that it pins is there.
func TestAPinAndACleanUpNeverMissEachOther(t *testing.T) {
	synctest.Test(t, aPinAndACleanUpNeverMissEachOther)
}

func aPinAndACleanUpNeverMissEachOther(t *testing.T) {
	var taken, refused int
	for at := 1; ; at++ {
		mem := objstore.NewMemory()
		old := filled(t, mem, 50, 10)
		d, _, err := old.Compact(t.Context(), CompactOptions{})
		ok(t, err)
		var pin *Pin
		n := 0
		hooked := objstore.NewFault(mem, func(objstore.Call) objstore.Fate {
			if n++; n == at {
				if pin, err = old.Pin(t.Context()); err != nil {
					want(t, err, ErrNotFound)
				}
			}
			return objstore.Fate{}
		})
		d, err = Open(t.Context(), hooked, OpenOptions{Version: d.Version()})
		ok(t, err)
		_, err = d.CleanUp(t.Context(), CleanUpOptions{KeepVersions: 1, AnyAge: true})
		ok(t, err)
		if n < at {
			break
		}
		if pin == nil {
			refused++
			continue
		}
		taken++
		same(t, "pinned rows", expect(0, 50), collect(t, old.Scan(t.Context(), ScanOptions{})))
		pin.Release()
	}
	if taken == 0 || refused == 0 {
		t.Errorf("%d pins were taken and %d refused", taken, refused)
	}
}

// TestGraceBeginsWhenAVersionIsNotTheLatestAnyMore cleans up just after a commit: the
// version before it is old, but a moment ago somebody may have opened it.
func TestGraceBeginsWhenAVersionIsNotTheLatestAnyMore(t *testing.T) {
	s := objstore.NewMemory()
	d := filled(t, s, 20, 10)
	later := time.Now().Add(20 * time.Minute)
	opts := CleanUpOptions{KeepVersions: 1, KeepAge: 30 * time.Minute, SafetyAge: MaxCommitAge, Now: later}
	stats, err := d.CleanUp(t.Context(), opts)
	ok(t, err)
	if stats.Versions != 0 {
		t.Errorf("%d versions were removed within their grace", stats.Versions)
	}
	opts.Now = later.Add(time.Hour)
	stats, err = d.CleanUp(t.Context(), opts)
	ok(t, err)
	if stats.Versions != 2 {
		t.Errorf("%d versions were removed, want those before the latest", stats.Versions)
	}
}

func TestAReaderThatCannotPinReadsOn(t *testing.T) {
	pinTimes(t, pins.Times{After: 0, Term: 30 * time.Millisecond})
	mem := objstore.NewMemory()
	filled(t, mem, 50, 10)
	denied := errors.New("read only")
	tried := make(chan struct{}, 100)
	s := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
		if c.Mutates() {
			select {
			case tried <- struct{}{}:
			default:
			}
			return objstore.Fate{Err: denied}
		}
		return objstore.Fate{}
	})
	d, err := Open(context.Background(), s, OpenOptions{})
	ok(t, err)
	var rows []string
	for rec, err := range d.Scan(t.Context(), ScanOptions{}) {
		ok(t, err)
		rows = append(rows, lancetest.Text(rec)...)
		if len(rows) <= 10 {
			<-tried
		}
	}
	same(t, "rows", expect(0, 50), rows)
}

func TestATableThatAnotherGuardsStaysSo(t *testing.T) {
	s := objstore.NewMemory()
	filled(t, s, 10, 10)
	d, err := Open(t.Context(), s, OpenOptions{NoPin: true})
	ok(t, err)
	next, err := d.Append(t.Context(), Batches(lancetest.Batch(10, 11)))
	ok(t, err)
	back, err := next.At(t.Context(), d.Version())
	ok(t, err)
	if !next.guarded || !back.guarded {
		t.Errorf("guarded: the next version %v, the one before %v", next.guarded, back.guarded)
	}
}
