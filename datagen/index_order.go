package datagen

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// orders are the whole orders of lists that were asked for in their middle, so that a
// reader who jumps about in a list of a million items waits for one sort.
type orders struct {
	mu   sync.Mutex
	kept []*indexOrder // the one asked for last is the last
}

// indexOrder is an order of rows, as of a version.
type indexOrder struct {
	query string
	once  sync.Once

	// Under the lock of the orders until the order is made, and not changed from then on.
	sum     *Summary // tells an index that was built anew from one that has grown
	rows    []uint32
	version uint64
	done    bool
	made    time.Time
	took    time.Duration
}

const (
	// keptOrders bounds the memory: an order takes four bytes of each item.
	keptOrders = 4
	// orderPause is how many times as long as it took to make an order serves while the
	// log grows.
	orderPause = 4
)

// part is a part of a list by its place, and how many items there are.
func (x *Index) part(q ItemQuery) (items []ItemSummary, total int) {
	for {
		o := x.order(q)
		x.mu.RLock()
		if o.sum != x.sum {
			x.mu.RUnlock()
			continue
		}
		defer x.mu.RUnlock()
		total = len(o.rows)
		from := min(max(q.Offset, 0), total)
		to := total
		if q.Limit > 0 {
			to = min(total, from+q.Limit)
		}
		for i := from; i < to; i++ {
			n := o.rows[i]
			if q.Reverse {
				n = o.rows[total-1-i]
			}
			items = append(items, x.item(n))
		}
		return items, total
	}
}

// order is the order of a query, made if there is none that is new enough.
func (x *Index) order(q ItemQuery) *indexOrder {
	key, _ := json.Marshal(struct {
		Filter          Filter
		Roots, Failures bool
		Order           ItemOrder
	}{q.Filter, q.Roots, q.Failures, q.Order})
	x.mu.RLock()
	version, sum := x.version, x.sum
	x.mu.RUnlock()
	x.orders.mu.Lock()
	kept := x.orders.kept
	i := slices.IndexFunc(kept, func(o *indexOrder) bool { return o.query == string(key) })
	var o *indexOrder
	if i >= 0 {
		o = kept[i]
		kept = slices.Delete(kept, i, i+1)
	}
	if o == nil || !o.serves(version, sum) {
		o = &indexOrder{query: string(key), version: version, sum: sum}
	}
	if len(kept) >= keptOrders {
		kept = slices.Delete(kept, 0, 1)
	}
	x.orders.kept = append(kept, o)
	x.orders.mu.Unlock()
	o.once.Do(func() { x.sort(o, q) })
	return o
}

func (o *indexOrder) serves(version uint64, sum *Summary) bool {
	return o.sum == sum && (!o.done || o.version == version || time.Since(o.made) < orderPause*o.took)
}

// sort makes an order. Identities do not change, so that the lock is not held while it
// sorts.
func (x *Index) sort(o *indexOrder, q ItemQuery) {
	type place struct {
		key int64
		row uint32
	}
	begin := time.Now()
	x.mu.RLock()
	version, sum := x.version, x.sum
	rows := chunks[indexRow]{slices.Clone(x.rows.parts), x.rows.n}
	var list []place
	tagged := x.tagFilter(&q.Filter)
	for n := range uint32(rows.n) {
		if row, at := rows.at(n), x.sum.at(n); x.selects(&q, row, at) && tagged(row.tags) {
			list = append(list, place{q.Order.key(at), n})
		}
	}
	x.mu.RUnlock()
	slices.SortFunc(list, func(a, b place) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return compareIDs(rows.at(a.row).id, rows.at(b.row).id)
	})
	numbers := make([]uint32, len(list))
	for i, p := range list {
		numbers[i] = p.row
	}
	x.orders.mu.Lock()
	defer x.orders.mu.Unlock()
	o.version, o.sum, o.rows, o.done = version, sum, numbers, true
	o.made = time.Now()
	o.took = o.made.Sub(begin)
}
