package datagen

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// DefaultPoll is how often [Log.Follow] looks for new events.
const DefaultPoll = 250 * time.Millisecond

// FollowOptions configures [Log.Follow]. The zero value is the default.
type FollowOptions struct {
	// Existing first yields the events that the log already has.
	Existing bool
	// Poll is how often to look; zero is DefaultPoll.
	Poll time.Duration
	// Quiet, if there, is called each time that everything so far has been yielded.
	Quiet func()
}

// Follow yields events as they are acknowledged, each once and those of an item in
// their order, until the context ends. Memory follows the number of items.
func (l *Log) Follow(ctx context.Context, opts FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if opts.Poll == 0 {
			opts.Poll = DefaultPoll
		}
		f := &follower{log: l, last: map[string]int64{}, upTo: map[memwal.ID]uint64{}, yield: yield, silent: !opts.Existing}
		for {
			err := f.poll(ctx)
			switch {
			case errors.Is(err, errEnough):
				return
			case ctx.Err() != nil:
				return
			case err != nil:
				yield(Event{}, fmt.Errorf("follow log: %w", err))
				return
			}
			f.silent = false
			if opts.Quiet != nil {
				opts.Quiet()
			}
			if err := sleep.For(ctx, opts.Poll); err != nil {
				return
			}
		}
	}
}

// follower knows what it has yielded: of every item up to which sequence, of every
// shard up to which generation, and which fragments of the base.
type follower struct {
	log    *Log
	last   map[string]int64
	upTo   map[memwal.ID]uint64
	frags  map[uint64]bool
	yield  func(Event, error) bool
	silent bool
}

func (f *follower) poll(ctx context.Context) error {
	v, err := f.log.View(ctx)
	if err != nil {
		return err
	}
	return v.read(ctx, func(m *memwal.View) error { return f.state(ctx, m) })
}

// state yields what a state has that was not yielded. Of the base only fragments that
// are new need be read, and only if generations were merged unseen.
func (f *follower) state(ctx context.Context, m *memwal.View) error {
	var fresh []Event
	base := m.Base()
	merged, _, err := base.MergeProgress()
	if err != nil {
		return err
	}
	missed := f.frags == nil
	for id, n := range merged {
		missed = missed || n > f.upTo[id]
	}
	if missed {
		if fresh, err = f.base(ctx, base, fresh); err != nil {
			return err
		}
	}
	upTo := map[memwal.ID]uint64{}
	for _, src := range m.Sources() {
		if p := src.Place; p != (memwal.Place{}) && p.Generation > f.upTo[p.Shard] {
			g, err := f.log.cache.get(ctx, src)
			if err != nil {
				return err
			}
			fresh = f.unseen(fresh, g.events)
			upTo[p.Shard] = max(upTo[p.Shard], p.Generation)
		}
	}
	f.note(base, merged, upTo)
	return f.deliver(fresh)
}

// note remembers what was read.
func (f *follower) note(base *lance.Dataset, merged map[[16]byte]uint64, upTo map[memwal.ID]uint64) {
	for id, n := range upTo {
		f.upTo[id] = max(f.upTo[id], n)
	}
	for id, n := range merged {
		f.upTo[id] = max(f.upTo[id], n)
	}
	f.frags = map[uint64]bool{}
	for _, frag := range base.Fragments() {
		f.frags[frag.ID] = true
	}
}

func (f *follower) unseen(out, events []Event) []Event {
	for i := range events {
		if last, ok := f.last[events[i].Item]; !ok || events[i].Seq > last {
			out = append(out, events[i])
		}
	}
	return out
}

// base reads the events of new fragments that were not seen in generations. Their
// places are found first, in two columns, since most were.
func (f *follower) base(ctx context.Context, d *lance.Dataset, out []Event) ([]Event, error) {
	ids := []uint64{}
	for _, frag := range d.Fragments() {
		if !f.frags[frag.ID] {
			ids = append(ids, frag.ID)
		}
	}
	opts := lance.ScanOptions{Columns: []string{"item_id", "item_seq"}, WithRowAddress: true, Fragments: ids}
	if f.silent { // nothing is yielded, and the whole rows are of no use
		return f.skim(ctx, d, opts)
	}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return nil, err
		}
		addrs, err := f.addresses(rec)
		if err != nil {
			return nil, err
		}
		if len(addrs) == 0 {
			continue
		}
		rows, err := d.Take(ctx, addrs, LightColumns(d.Schema()))
		if err != nil {
			return nil, err
		}
		for e, err := range Decode(rows) {
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// addresses are those of the rows that were not yielded.
func (f *follower) addresses(rec arrow.RecordBatch) ([]uint64, error) {
	items, ok1 := rec.Column(0).(texts)
	seqs, ok2 := rec.Column(1).(*array.Int64)
	addrs, ok3 := rec.Column(2).(*array.Uint64)
	if !ok1 || !ok2 || !ok3 {
		return nil, ErrSchema
	}
	var out []uint64
	for i := range int(rec.NumRows()) {
		if last, ok := f.last[items.Value(i)]; !ok || seqs.Value(i) > last {
			out = append(out, addrs.Value(i))
		}
	}
	return out, nil
}

// skim makes events that carry only what note needs.
func (f *follower) skim(ctx context.Context, d *lance.Dataset, opts lance.ScanOptions) ([]Event, error) {
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return nil, err
		}
		for e, err := range Decode(rec) {
			if err != nil {
				return nil, err
			}
			f.seen(&e)
		}
	}
	return nil, nil
}

func (f *follower) seen(e *Event) {
	if last, ok := f.last[e.Item]; !ok || e.Seq > last {
		f.last[e.Item] = e.Seq
	}
}

// deliver yields events by their time, but those of an item by their sequence, whatever
// the clocks of their writers said. What comes twice is yielded once.
func (f *follower) deliver(events []Event) error {
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(cmp.Compare(a.Item, b.Item), inOrder(a, b)) })
	events = slices.CompactFunc(events, func(a, b Event) bool { return a.ID == b.ID && a.Equal(&b) })
	at := make([]time.Time, len(events))
	order := make([]int, len(events))
	for i := range events {
		at[i], order[i] = events[i].Time, i
		if i > 0 && events[i-1].Item == events[i].Item && at[i].Before(at[i-1]) {
			at[i] = at[i-1]
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return at[a].Compare(at[b]) })
	for _, i := range order {
		e := &events[i]
		f.seen(e)
		if !f.silent && !f.yield(*e, nil) {
			return errEnough
		}
	}
	return nil
}
