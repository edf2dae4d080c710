package lance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/rough"
	"github.com/foldlog/foldlog/objstore"
)

// standing is what was told of a row.
type standing int

const (
	there standing = iota + 1
	gone
	inDoubt // it may be there or not
)

// stressor commits with a rough store of its own.
type stressor struct {
	store *rough.Store
	rand  *rand.Rand
	rows  map[int]standing // of its own numbers
	next  int
}

// latest opens the table, however often that takes.
func (p *stressor) latest() *Dataset {
	for {
		if d, err := Open(context.Background(), p.store, OpenOptions{}); err == nil {
			return d
		}
	}
}

func (p *stressor) append() {
	n := p.next
	p.next++
	_, err := p.latest().Append(context.Background(), Batches(lancetest.Batch(n, n+1)))
	switch {
	case err == nil:
		p.rows[n] = there
	case errors.Is(err, objstore.ErrAmbiguous):
		p.rows[n] = inDoubt
	default:
		p.rows[n] = gone
	}
}

// delete deletes one of its rows that is there.
func (p *stressor) delete() {
	for n, is := range p.rows {
		if is != there {
			continue
		}
		_, err := p.latest().Delete(context.Background(), []Condition{{Column: "seq", Op: Equal, Value: n}})
		switch {
		case err == nil:
			p.rows[n] = gone
		case errors.Is(err, objstore.ErrAmbiguous):
			p.rows[n] = inDoubt
		}
		return
	}
}

func (p *stressor) run(until time.Time) {
	for time.Now().Before(until) || p.next%1000 < 10 {
		switch k := p.rand.IntN(20); {
		case k < 13:
			p.append()
		case k < 18:
			p.delete()
		default:
			_, _, _ = p.latest().Compact(context.Background(), CompactOptions{})
		}
	}
}

// TestSoakWhatWasToldOfCommitsIsRead has several that append, delete and compact on stores
// that are slow, fail and lose answers, and then holds what each call told against the rows.
func TestSoakWhatWasToldOfCommitsIsRead(t *testing.T) {
	last, seed := proctest.Lasts(t, 500*time.Millisecond), proctest.Seed(t)
	mem := objstore.NewMemory()
	filled(t, mem, 1, 1)
	var all sync.WaitGroup
	var stressors []*stressor
	for i := range 5 {
		p := &stressor{rand: rand.New(rand.NewPCG(seed, uint64(i))), rows: map[int]standing{}, next: (i + 1) * 100_000}
		p.store = rough.New(mem, rough.Options{Seed: seed + uint64(i), Slow: 200, Delay: 2 * time.Millisecond, Read: 2, Write: 10, Lost: 10, Late: 10})
		stressors = append(stressors, p)
		all.Go(func() { p.run(time.Now().Add(last)) })
	}
	all.Wait()
	for _, p := range stressors {
		p.store.Calm()
	}
	d, err := Open(t.Context(), mem, OpenOptions{})
	ok(t, err)
	read := map[int]int{}
	for rec, err := range d.Scan(t.Context(), ScanOptions{Columns: []string{"seq"}}) {
		ok(t, err)
		for _, n := range rec.Column(0).(*array.Int64).Int64Values() {
			read[int(n)]++
		}
	}
	told := map[standing]int{}
	for i, p := range stressors {
		for n, is := range p.rows {
			told[is]++
			if is == there && read[n] != 1 || is == gone && read[n] != 0 || read[n] > 1 {
				t.Errorf("row %d of %d was told to be %d, and is there %d times", n, i, is, read[n])
			}
		}
	}
	t.Logf("there, gone, in doubt: %s", fmt.Sprint(told[there], told[gone], told[inDoubt]))
	if told[there] == 0 || told[gone] == 0 {
		t.Errorf("told of rows: %v", told)
	}
	same(t, "verification", nil, faults(t, d))
}
