package datagen

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
)

// Index holds what lists of items need in memory, and takes in what is new in a log
// without reading the rest again. It is a projection: it can be thrown away at any
// time, stored with Save and read with Log.LoadIndex. It keeps about 180 bytes of each
// item. It is safe for concurrent use; questions are answered while it is updated, and
// it is updated while it is stored.
type Index struct {
	log *Log

	updating sync.Mutex // one update at a time; over what follows
	upTo     map[memwal.ID]uint64
	frags    map[uint64]bool

	// steady is held while the index changes, and while it is stored: what changes it
	// counts itself in wanted, for which storing gives way.
	steady sync.Mutex
	wanted atomic.Int32

	mu       sync.RWMutex // over what follows
	sum      *Summary
	rows     chunks[indexRow] // by the numbers of the summary
	items    itemTable
	kins     []kin
	tags     []string // each spelling once
	tagged   map[string]uint32
	version  uint64
	counts   *counting // of all items, nil until somebody asks
	overview *Overview // of this version, nil if it was not asked for

	orders orders
}

// indexRow is what a summary does not keep of an item.
type indexRow struct {
	id      string
	touched uint64 // the version in which it changed last
	tags    uint32
	kin     uint32 // the number of its kin plus one, 0 for a root
}

// kin is where an item is in a tree that it is not the root of.
type kin struct{ root, parent string }

// NewIndex returns an empty index of the log.
func (l *Log) NewIndex() *Index {
	x := &Index{log: l}
	x.reset()
	return x
}

func (x *Index) reset() {
	x.sum, x.upTo, x.frags = &Summary{}, map[memwal.ID]uint64{}, nil
	x.tags, x.tagged, x.counts, x.overview = []string{""}, map[string]uint32{"": 0}, nil, nil
}

// Version counts the updates that changed something. A version that is higher has all
// that a lower one has.
func (x *Index) Version() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.version
}

// StartAt sets the version of an index that nobody has asked yet, so that its versions
// are above those of another one that is lost.
func (x *Index) StartAt(version uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version = version
}

// Len is how many items there are.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.sum.Len()
}

// Overview is the log at a glance. It is shared and must not be changed.
func (x *Index) Overview() Overview {
	x.mu.RLock()
	o := x.overview
	x.mu.RUnlock()
	if o != nil {
		return *o
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.overview == nil {
		o := x.counting().overview()
		x.overview = &o
	}
	return *x.overview
}

// counting counts all items, the first time. The caller holds the lock.
func (x *Index) counting() *counting {
	if x.counts == nil {
		x.counts = x.sum.counting()
		x.sum.all(x.counts.item)
	}
	x.counts.widen()
	return x.counts
}

// Update takes in what the log has beyond the index, and reports whether that was
// anything. The first time, and when very much is new, it passes over the whole log.
func (x *Index) Update(ctx context.Context) (changed bool, err error) {
	x.updating.Lock()
	defer x.updating.Unlock()
	before := x.Version()
	v, err := x.log.View(ctx)
	if err != nil {
		return false, err
	}
	if x.frags != nil {
		err = v.read(ctx, func(m *memwal.View) error { return x.more(ctx, m) })
	}
	if x.frags == nil || errors.Is(err, errTooMuch) {
		err = x.build(ctx, v)
	}
	if err != nil {
		return false, fmt.Errorf("update index: %w", err)
	}
	return x.Version() != before, nil
}

// build passes over the whole log. Readers go on with what there was.
func (x *Index) build(ctx context.Context, v *View) error {
	fresh := x.log.NewIndex()
	fresh.version = x.Version() + 1
	p := newPass(v, indexColumns, func(e *Event) error { fresh.event(e); return nil }, fresh.batch)
	err := v.held(ctx, func(m *memwal.View) error {
		if err := p.run(ctx, m); err != nil {
			return err
		}
		r, err := fresh.reach(m)
		fresh.upTo, fresh.frags = r.upTo, r.frags
		return err
	})
	if err != nil {
		return err
	}
	fresh.counting()
	defer x.changing()()
	x.upTo, x.frags = fresh.upTo, fresh.frags
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sum, x.rows, x.items, x.kins = fresh.sum, fresh.rows, fresh.items, fresh.kins
	x.tags, x.tagged, x.version, x.overview = fresh.tags, fresh.tagged, fresh.version, nil
	x.counts = fresh.counts
	return nil
}

// changing waits until the index is not being stored, and keeps it from that until the
// end that is returned.
func (x *Index) changing() (end func()) {
	x.wanted.Add(1)
	x.steady.Lock()
	x.wanted.Add(-1)
	return x.steady.Unlock
}

// indexColumns are those that an index needs.
func indexColumns(table *arrow.Schema) []string {
	return append(SummaryColumns(table), fields[colTags].Name)
}

// batch takes in rows that are all new.
func (x *Index) batch(rec arrow.RecordBatch) error {
	return eachMoment(rec, func(r *momentReader, i int, h itemHash) {
		n := x.row(h, r.item.Value(i))
		m := r.moment(i)
		if m.kind == ItemCreated {
			x.created(n, m.seq, alias(r.text[colRoot].arr, i), alias(r.text[colParent].arr, i), alias(r.text[colTags].arr, i))
		}
		x.sum.add(x.sum.at(n), m, r.names(i, h))
	})
}

// event takes in an event that is new.
func (x *Index) event(e *Event) {
	h := hashItem(e.Item)
	n := x.row(h, e.Item)
	m := momentOf(e)
	if m.kind == ItemCreated {
		x.created(n, m.seq, e.Root, e.Parent, string(e.Tags))
	}
	x.sum.add(x.sum.at(n), m, namesOf(e, h))
}

// row is the number of an item, which has changed.
func (x *Index) row(h itemHash, id string) uint32 {
	n, ok := x.items.find(h, id, &x.rows)
	if !ok {
		n = x.sum.next()
		x.rows.add().id = strings.Clone(id)
		x.items.add(h, n, &x.rows)
	}
	x.rows.at(n).touched = x.version
	return n
}

// created takes over what the creation of an item says, the latest one.
func (x *Index) created(n uint32, seq int64, root, parent, tags string) {
	if seq < x.sum.at(n).created {
		return
	}
	row := x.rows.at(n)
	if row.kin > 0 || parent != "" || root != row.id {
		x.relate(row, kin{x.own(root), x.own(parent)})
	}
	i, ok := x.tagged[tags]
	if !ok {
		i = uint32(len(x.tags))
		own := strings.Clone(tags)
		x.tags = append(x.tags, own)
		x.tagged[own] = i
	}
	row.tags = i
}

// relate says where a row is in its tree.
func (x *Index) relate(row *indexRow, k kin) {
	if row.kin == 0 {
		x.kins = append(x.kins, k)
		row.kin = uint32(len(x.kins))
	}
	x.kins[row.kin-1] = k
}

// kin is where a row is in its tree.
func (x *Index) kin(row *indexRow) kin {
	if row.kin == 0 {
		return kin{root: row.id}
	}
	return x.kins[row.kin-1]
}

// own is a string that aliases nothing, that of the item of this name if there is one.
func (x *Index) own(id string) string {
	if id == "" {
		return ""
	}
	if n, ok := x.items.find(hashItem(id), id, &x.rows); ok {
		return x.rows.at(n).id
	}
	return strings.Clone(id)
}

// reach is what of a state an index has taken in.
type reach struct {
	upTo  map[memwal.ID]uint64
	frags map[uint64]bool
}

// reach is that of an index which has taken in a state besides what it had.
func (x *Index) reach(m *memwal.View) (r reach, err error) {
	merged, _, err := m.Base().MergeProgress()
	if err != nil {
		return r, err
	}
	r = reach{maps.Clone(x.upTo), map[uint64]bool{}}
	for id, n := range merged {
		r.upTo[id] = max(r.upTo[id], n)
	}
	for _, src := range m.Sources() {
		if p := src.Place; p != (memwal.Place{}) {
			r.upTo[p.Shard] = max(r.upTo[p.Shard], p.Generation)
		}
	}
	for _, frag := range m.Base().Fragments() {
		r.frags[frag.ID] = true
	}
	return r, nil
}

// errTooMuch ends an update that is better made anew.
var errTooMuch = errors.New("too much is new")

// maxNews is how many new events an update takes in one by one.
const maxNews = 500_000

// more takes in what a state has beyond the last one. Of the base only fragments that
// are new are read, and only if generations were merged unseen.
func (x *Index) more(ctx context.Context, m *memwal.View) error {
	merged, _, err := m.Base().MergeProgress()
	if err != nil {
		return err
	}
	var news []Event
	missed := false
	for id, n := range merged {
		missed = missed || n > x.upTo[id]
	}
	if missed {
		if news, err = x.fragments(ctx, m.Base()); err != nil {
			return err
		}
	}
	for _, src := range m.Sources() {
		if p := src.Place; p == (memwal.Place{}) || p.Generation <= x.upTo[p.Shard] {
			continue
		}
		g, err := x.log.cache.get(ctx, src)
		if err != nil {
			return err
		}
		for i := range g.events {
			if e := &g.events[i]; !x.has(e.Item, e.Seq) {
				news = append(news, *e)
			}
		}
		if len(news) > maxNews {
			return errTooMuch
		}
	}
	r, err := x.reach(m)
	if err != nil || len(news) == 0 && maps.Equal(r.upTo, x.upTo) && maps.Equal(r.frags, x.frags) {
		return err
	}
	defer x.changing()()
	x.take(news)
	x.upTo, x.frags = r.upTo, r.frags
	return nil
}

// has reports whether an item's event was taken in: of an item it is always those up
// to some sequence, since they are acknowledged in their order.
func (x *Index) has(item string, seq int64) bool {
	n, ok := x.items.find(hashItem(item), item, &x.rows)
	return ok && sequence(seq) <= x.sum.at(n).last
}

// fragments are the events of new fragments that are new.
func (x *Index) fragments(ctx context.Context, d *lance.Dataset) ([]Event, error) {
	ids := []uint64{}
	for _, frag := range d.Fragments() {
		if !x.frags[frag.ID] {
			ids = append(ids, frag.ID)
		}
	}
	var news []Event
	opts := lance.ScanOptions{Columns: append(indexColumns(d.Schema()), fields[colEventID].Name), Fragments: ids}
	for rec, err := range d.Scan(ctx, opts) {
		if err != nil {
			return nil, err
		}
		items, ok1 := rec.Column(slices.Index(opts.Columns, fields[colItem].Name)).(texts)
		seqs, ok2 := rec.Column(slices.Index(opts.Columns, fields[colSeq].Name)).(*array.Int64)
		if !ok1 || !ok2 {
			return nil, ErrSchema
		}
		i := 0
		for e, err := range Decode(rec) {
			if err != nil {
				return nil, err
			}
			if !x.has(items.Value(i), seqs.Value(i)) {
				news = append(news, e)
			}
			i++
		}
		if len(news) > maxNews {
			return nil, errTooMuch
		}
	}
	return news, nil
}

// takenAtOnce is how many events are taken in while readers wait.
const takenAtOnce = 10_000

// take adds events, each once and those of an item in their order.
func (x *Index) take(news []Event) {
	slices.SortFunc(news, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Item, b.Item), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	news = slices.CompactFunc(news, func(a, b Event) bool { return a.ID == b.ID && a.Item == b.Item && a.Seq == b.Seq })
	for part := range slices.Chunk(news, takenAtOnce) {
		x.takePart(part)
	}
}

func (x *Index) takePart(news []Event) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.version++
	x.overview = nil
	counts := x.counting()
	for len(news) > 0 {
		item := news[0].Item
		if n, ok := x.items.find(hashItem(item), item, &x.rows); ok {
			counts.count(x.sum.at(n), -1)
		}
		for len(news) > 0 && news[0].Item == item {
			x.event(&news[0])
			news = news[1:]
		}
		counts.widen()
		n, _ := x.items.find(hashItem(item), item, &x.rows)
		counts.item(x.sum.at(n))
	}
}

// tagsOf are the tags of an item, nil for none.
func (x *Index) tagsOf(row *indexRow) json.RawMessage {
	if row.tags == 0 {
		return nil
	}
	return json.RawMessage(x.tags[row.tags])
}

// item is the summary of a row.
func (x *Index) item(n uint32) ItemSummary {
	row := x.rows.at(n)
	k := x.kin(row)
	sum := x.sum.summary(row.id, x.sum.at(n))
	sum.Root, sum.Parent, sum.Tags = k.root, k.parent, x.tagsOf(row)
	return sum
}

// Item is what is known of an item; ok is false if there is none.
func (x *Index) Item(id string) (sum ItemSummary, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	n, ok := x.items.find(hashItem(id), id, &x.rows)
	if !ok {
		return ItemSummary{}, false
	}
	return x.item(n), true
}

// Class is what is to be done about a source key.
func (x *Index) Class(key string) Class {
	sum, ok := x.Item(key)
	switch {
	case !ok:
		return Fresh
	case sum.Status == StatusCompleted:
		return Finished
	case sum.Status == StatusFiltered:
		return Filtered
	}
	return Resumable
}

// Changed are the items that have changed since a version, most of them at most, and
// whether there are more.
func (x *Index) Changed(since uint64, most int) (items []ItemSummary, more bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for n := range uint32(x.rows.n) {
		if x.rows.at(n).touched <= since {
			continue
		}
		if len(items) == most {
			return items, true
		}
		items = append(items, x.item(n))
	}
	return items, false
}
