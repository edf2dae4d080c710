package datagen

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errDisk = errors.New("no space left, or it cannot be read")

// badDisk fails at one of its calls, a write after half of its bytes.
type badDisk struct {
	spillDisk
	calls int // until it fails
}

func (d *badDisk) fails() bool {
	d.calls--
	return d.calls == 0
}

func (d *badDisk) WriteAt(b []byte, off int64) (int, error) {
	if d.fails() {
		n, _ := d.spillDisk.WriteAt(b[:len(b)/2], off)
		return n, errDisk
	}
	return d.spillDisk.WriteAt(b, off)
}

func (d *badDisk) ReadAt(b []byte, off int64) (int, error) {
	if d.fails() {
		return 0, errDisk
	}
	return d.spillDisk.ReadAt(b, off)
}

// onBadDisk is a file that fails at a call.
func onBadDisk(t *testing.T, calls int) *spillFile {
	t.Helper()
	f, err := newSpillFile()
	check(t, err)
	f.f = &badDisk{f.f, calls}
	return f
}

// TestWhatIsSpilledToABadDiskIsWholeOrAnError lets each call fail in turn of everything that
// spills.
func TestWhatIsSpilledToABadDiskIsWholeOrAnError(t *testing.T) {
	withTemporaryFiles(t)
	const items, each = 60, 3
	var events []Event
	for i := range items * each {
		name := fmt.Sprint("item-", i%items)
		events = append(events, Event{ID: fmt.Sprint(i), Item: name, Root: name, Seq: int64(i / items), Kind: ItemCreated})
	}
	for name, spills := range map[string]func(*spillFile) ([]string, error){
		"parts": func(f *spillFile) (got []string, err error) {
			p := &parts{most: little.weight, file: f}
			for i := range events {
				if err := p.add(&events[i]); err != nil {
					return nil, err
				}
			}
			return got, p.each(func(all iter.Seq2[Event, error]) error {
				for e, err := range all {
					if err != nil {
						return err
					}
					got = append(got, e.ID)
				}
				return nil
			})
		},
		"sorter": func(f *spillFile) (got []string, err error) {
			s := &sorter{most: 10, file: f}
			for i := range items {
				if err := s.add(ItemSummary{ID: fmt.Sprint("item-", i*7%items)}); err != nil {
					return nil, err
				}
			}
			for x, err := range s.all() {
				if err != nil {
					return nil, err
				}
				got = append(got, x.ID)
			}
			return got, nil
		},
		"tally": func(f *spillFile) ([]string, error) {
			y := newTally(20)
			y.file = f
			for i := range events {
				if err := y.event(&events[i]); err != nil {
					return nil, err
				}
			}
			o, err := y.overview()
			return []string{fmt.Sprintf("%+v", o)}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(calls int) ([]string, error) {
				f := onBadDisk(t, calls)
				defer f.close()
				return spills(f)
			}
			whole, err := run(-1)
			check(t, err)
			failed := 0
			for {
				got, err := run(failed + 1)
				if err == nil {
					if d := cmp.Diff(whole, got); d != "" {
						t.Errorf("after %d calls (-whole +got)\n%s", failed, d)
					}
					break
				}
				if failed++; !errors.Is(err, errDisk) {
					t.Fatalf("call %d: %v", failed, err)
				}
			}
			if failed < 2 {
				t.Errorf("%d calls were let fail", failed)
			}
		})
	}
	noTemporaryFiles(t)
}
