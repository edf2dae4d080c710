package memwal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/lancetest"
	"github.com/foldlog/foldlog/internal/proctest"
	"github.com/foldlog/foldlog/internal/rough"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/objstore"
)

// fates are what was told of rows: that they are there, that they are not, or neither.
type fates struct {
	mu               sync.Mutex
	acked, not, open map[string]bool
}

func newFates() *fates {
	return &fates{acked: map[string]bool{}, not: map[string]bool{}, open: map[string]bool{}}
}

func (f *fates) told(row string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil:
		f.acked[row] = true
	case errors.Is(err, ErrUnsure):
		f.open[row] = true
	default:
		f.not[row] = true
	}
}

// various reports whether rows were acknowledged, and others left in doubt.
func (f *fates) various() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.acked) > 0 && len(f.open) > 0
}

// certain are the rows that must be there by now.
func (f *fates) certain() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.acked)
}

// judge holds what was read against what had been told before. What nobody was told of
// yet may be there.
func (f *fates) judge(t *testing.T, who string, must map[string]bool, rows []string) {
	t.Helper()
	there := map[string]int{}
	for _, r := range rows {
		there[r]++
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for r := range must {
		if there[r] != 1 {
			t.Errorf("%s: %s was acknowledged, and is there %d times", who, r, there[r])
		}
	}
	for r := range there {
		if f.not[r] {
			t.Errorf("%s: %s was told not to be there, and is", who, r)
		}
	}
}

// process is one that uses the table, with a store and handles of its own.
type process struct {
	t     *testing.T
	store *rough.Store
	rand  *rand.Rand
	fates *fates
	name  string
	until time.Time
}

// over reports whether the time is, in which something of everything must have been told.
func (p *process) over() bool { return time.Now().After(p.until) && p.fates.various() }

// table opens the table, however often that takes.
func (p *process) table() *Table {
	for {
		if table, err := Open(context.Background(), p.store); err == nil {
			return table
		}
	}
}

// write appends, merges and reads with one writer after the other, some of them of a
// shard that another one had, until the time is over.
func (p *process) write() {
	shard := ID{}
	for life := 0; !p.over(); life++ {
		table := p.table()
		w, err := table.NewWriter(context.Background(), WriterOptions{
			Shard: shard, Existing: shard != ID{}, MaxRows: 4, MergeAfter: 2 + p.rand.IntN(3), MaxLive: 4 + p.rand.IntN(4),
			MergeOptions: MergeOptions{KeepExisting: true},
		})
		if errors.Is(err, ErrSealed) {
			shard = ID{}
		}
		if err != nil {
			continue
		}
		p.life(table, w, life)
		if shard = w.Shard(); p.rand.IntN(3) == 0 {
			shard = ID{}
		}
	}
}

// life uses a writer until it is of no use, or for a while.
func (p *process) life(table *Table, w *Writer, life int) {
	appends := 5 + p.rand.IntN(30)
	seeds := [3]uint64{p.rand.Uint64(), p.rand.Uint64(), p.rand.Uint64()}
	var all sync.WaitGroup
	for g, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 0))
		all.Go(func() {
			for i := 0; i < appends && !p.over(); i++ {
				row := fmt.Sprintf("%s-%d-%d-%d", p.name, life, g, i)
				if err := p.one(w, r, row); errors.Is(err, ErrClosed) || errors.Is(err, ErrFenced) {
					return
				}
			}
		})
	}
	if p.rand.IntN(2) == 0 {
		all.Go(func() { _, _ = w.Merge(context.Background()) })
	}
	if p.rand.IntN(4) == 0 {
		all.Go(func() {
			time.Sleep(time.Duration(p.rand.IntN(5)) * time.Millisecond)
			_ = w.Close()
		})
	}
	all.Wait()
	must := p.fates.certain()
	if v, err := table.View(context.Background()); err == nil {
		if rows, err := rowsOf(v); err == nil {
			p.fates.judge(p.t, p.name+" after its appends", must, rows)
		}
	}
	_ = w.Close()
}

// one appends a row, now and then with a context that soon ends.
func (p *process) one(w *Writer, r *rand.Rand, row string) error {
	ctx := context.Background()
	if r.IntN(5) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(2000))*time.Microsecond)
		defer cancel()
	}
	err := w.Append(ctx, kv(row, 1))
	p.fates.told(row+"=1", err)
	return err
}

// rowsOf are the rows of a view; unlike read it may fail.
func rowsOf(v *View) (rows []string, err error) {
	for b, err := range v.Scan(context.Background(), lance.ScanOptions{}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, lancetest.Text(b.RecordBatch)...)
	}
	return shorten(rows), nil
}

// look reads all the time, with one handle and with fresh ones.
func (p *process) look() {
	table := p.table()
	for !p.over() {
		if p.rand.IntN(8) == 0 {
			table = p.table()
		}
		must := p.fates.certain()
		v, err := table.View(context.Background())
		if err != nil {
			continue
		}
		if rows, err := rowsOf(v); err == nil {
			p.fates.judge(p.t, p.name, must, rows)
		}
	}
}

// tend compacts, indexes and collects, and adopts shards, of living writers too.
func (p *process) tend() {
	ctx := context.Background()
	table := p.table()
	for !p.over() {
		time.Sleep(time.Duration(p.rand.IntN(10)) * time.Millisecond)
		switch p.rand.IntN(5) {
		case 0:
			if d, err := table.Base(ctx); err == nil {
				_, _, _ = d.Compact(ctx, lance.CompactOptions{})
			}
		case 1:
			if d, err := table.Base(ctx); err == nil {
				_, _ = d.CreateIndex(ctx, "k")
			}
		case 2:
			_, _ = table.Collect(ctx, CollectOptions{Now: time.Now().Add(2 * time.Hour)})
		default:
			shards, err := table.Shards(ctx)
			if err != nil || len(shards) == 0 {
				continue
			}
			s := shards[p.rand.IntN(len(shards))]
			_, _ = table.Adopt(ctx, s.ID, MergeOptions{KeepExisting: true})
		}
	}
}

// stress lets processes use a table on one store, until the time is over and nothing is on
// its way any more, and returns what they were told.
func stress(t *testing.T, under objstore.Store) *fates {
	last, seed := proctest.Lasts(t, time.Second), proctest.Seed(t)
	_, err := lance.Create(t.Context(), under, small)
	ok(t, err)
	f := newFates()
	until := time.Now().Add(last)
	var all sync.WaitGroup
	var stores []*rough.Store
	for i, run := range []func(*process){(*process).write, (*process).write, (*process).write, (*process).look, (*process).tend} {
		s := rough.New(under, rough.Options{Seed: seed + uint64(i), Slow: 200, Delay: 2 * time.Millisecond, Read: 2, Write: 10, Lost: 10, Late: 10})
		stores = append(stores, s)
		p := &process{t: t, store: s, rand: rand.New(rand.NewPCG(seed, uint64(i))), fates: f, name: fmt.Sprint("p", i), until: until}
		all.Go(func() { run(p) })
	}
	all.Wait()
	for _, s := range stores {
		s.Calm()
	}
	t.Logf("%d rows acknowledged, %d told not to be there, %d unsure", len(f.acked), len(f.not), len(f.open))
	return f
}

// TestWhatWasAcknowledgedIsThereUnderStress has processes write, merge, adopt, compact and
// collect on a rough store, and holds what they were told against what others read
// meanwhile and in the end.
func TestWhatWasAcknowledgedIsThereUnderStress(t *testing.T) {
	mem := objstore.NewMemory()
	f := stress(t, mem)
	table := newTable(t, mem, small)
	f.judge(t, "in the end", f.certain(), read(t, table, lance.ScanOptions{}))
	shards, err := table.Shards(t.Context())
	ok(t, err)
	for _, s := range shards {
		_, err := table.Adopt(t.Context(), s.ID, MergeOptions{KeepExisting: true})
		ok(t, err)
	}
	f.judge(t, "merged", f.certain(), read(t, newTable(t, mem, small), lance.ScanOptions{}))
	_, err = table.Verify(t.Context(), func(err error) { t.Error(err) })
	ok(t, err)
}

// TestTheRealLanceReadsWhatWasAcknowledgedUnderStress does so on disk.
func TestTheRealLanceReadsWhatWasAcknowledgedUnderStress(t *testing.T) {
	real, there := lancetest.Real(t)
	if !there {
		return
	}
	dir, s := lancetest.LocalTable(t)
	f := stress(t, s)
	same := map[string]bool{}
	var rows []string
	for _, r := range shorten(realRows(t, real, lancetest.On(dir))) {
		if !same[r] { // it tells copies in two shards apart
			rows = append(rows, r)
		}
		same[r] = true
	}
	f.judge(t, "the real library", f.certain(), rows)
	f.judge(t, "ours", f.certain(), read(t, newTable(t, s, small), lance.ScanOptions{}))
}
