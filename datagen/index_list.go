package datagen

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ItemOrder is an order of items.
type ItemOrder string

// The orders of a list. Items that are the same in it are in the order of their
// identities.
const (
	// ByCreation is by the time of the creation, the oldest first.
	ByCreation ItemOrder = "created"
	// ByUpdate is by the time of the latest event, the latest first.
	ByUpdate ItemOrder = "updated"
	// ByID is by the identity, see [CompareIDs].
	ByID ItemOrder = "item"
	// ByEvents is by the number of events, the most first.
	ByEvents ItemOrder = "events"
)

// ItemQuery asks for a part of the items of an index. The zero value is all of them in
// the order of their creation.
type ItemQuery struct {
	Filter
	// Roots leaves sub-items out, Failures those that never failed.
	Roots, Failures bool
	// Order is the order; empty is ByCreation.
	Order ItemOrder
	// After is the last item that was seen of the list before, by its key in the order
	// and its identity; nil begins at the beginning.
	After *ItemPlace
	// Offset skips this many items instead of After, and Reverse begins with the last of
	// the order; neither goes with After. While the log grows, the order they refer to may
	// be some seconds old.
	Offset  int
	Reverse bool
	// Limit is the most items; zero is no limit.
	Limit int
}

// ItemPlace is where an item stands in an order.
type ItemPlace struct {
	Key int64
	ID  string
}

// Place is where an item stands in an order.
func (o ItemOrder) Place(s *ItemSummary) ItemPlace {
	p := ItemPlace{ID: s.ID}
	switch o {
	case ByUpdate:
		p.Key = -s.Updated.UnixMicro()
	case ByEvents:
		p.Key = -int64(s.Events)
	case ByID:
	default:
		if !s.Created.IsZero() {
			p.Key = s.Created.UnixMicro()
		}
	}
	return p
}

func (o ItemOrder) key(at *itemState) int64 {
	switch o {
	case ByUpdate:
		return -at.lastAt
	case ByEvents:
		return -int64(at.events)
	case ByID:
		return 0
	}
	if at.created == 0 {
		return 0
	}
	return at.createdAt
}

func comparePlaces(a, b ItemPlace) int {
	if a.Key != b.Key {
		return cmp.Compare(a.Key, b.Key)
	}
	return compareIDs(a.ID, b.ID)
}

func compareIDs(a, b string) int {
	if c := CompareIDs(a, b); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// List returns a part of the items that a query asks for, and how many it selects in
// all.
func (x *Index) List(q ItemQuery) (items []ItemSummary, total int) {
	if q.Offset > 0 || q.Reverse {
		return x.part(q)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	tagged := x.tagFilter(&q.Filter)
	best := &firsts{limit: q.Limit}
	// In parts that are far from each other: where the order is the one in which the items
	// lie, or its reverse, most of them then come too late.
	parts := (x.rows.n + chunk - 1) / chunk
	for i := range parts {
		first := uint32(apart(i, parts) * chunk)
		for n := first; n < min(first+chunk, uint32(x.rows.n)); n++ {
			row, at := x.rows.at(n), x.sum.at(n)
			if !x.selects(&q, row, at) || !tagged(row.tags) {
				continue
			}
			total++
			p := ItemPlace{q.Order.key(at), row.id}
			if q.After != nil && comparePlaces(p, *q.After) <= 0 {
				continue
			}
			best.offer(placed{p, n})
		}
	}
	list := best.sorted()
	items = make([]ItemSummary, len(list))
	for i, p := range list {
		items[i] = x.item(p.row)
	}
	return items, total
}

// apart goes through 0 to n-1 in steps that have nothing in common with n.
func apart(i, n int) int {
	step := n*5/8 | 1
	for gcd(step, n) != 1 {
		step++
	}
	return (i*step + n - 1) % n
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// selects is whether a query asks for a row, but for its tags.
func (x *Index) selects(q *ItemQuery, row *indexRow, at *itemState) bool {
	return (!q.Roots || row.kin == 0 || x.kin(row).parent == "") && (!q.Failures || at.failures > 0) && x.match(&q.Filter, row, at)
}

// match is Filter.match without the tags.
func (x *Index) match(f *Filter, row *indexRow, at *itemState) bool {
	if len(f.Status) > 0 && !slices.Contains(f.Status, at.status()) ||
		f.Root != "" && f.Root != x.kin(row).root || f.Prefix != "" && !strings.HasPrefix(row.id, f.Prefix) ||
		f.Suspect && !at.suspect() {
		return false
	}
	if f.Step != "" && (at.life.step <= at.created || x.sum.steps.names[at.step].name != f.Step) {
		return false
	}
	return f.ErrorType == "" || at.status() == StatusFailed && x.sum.failures.names[at.failure].kind == f.ErrorType
}

// tagFilter looks at each spelling of tags once.
func (x *Index) tagFilter(f *Filter) func(tags uint32) bool {
	if len(f.Tags) == 0 {
		return func(uint32) bool { return true }
	}
	const yes, no = 1, 2
	known := make([]byte, len(x.tags))
	return func(i uint32) bool {
		if known[i] == 0 {
			known[i] = no
			if raw := x.tags[i]; f.mayBeTagged(raw) && f.tagged(json.RawMessage(raw)) {
				known[i] = yes
			}
		}
		return known[i] == yes
	}
}

// mayBeTagged is false for most tags that lack a key, and costs little.
func (f *Filter) mayBeTagged(raw string) bool {
	for k := range f.Tags {
		if !strings.Contains(raw, k) && !strings.ContainsAny(k, "\"\\<>&\u2028\u2029") && !strings.Contains(raw, `\u`) {
			return false
		}
	}
	return true
}

type placed struct {
	ItemPlace
	row uint32
}

// firsts keeps the first of an order. It sorts now and then, and from then on knows
// what comes too late.
type firsts struct {
	limit int // zero is no limit
	list  []placed
	full  bool // the list was cut: its first limit are sorted, and what follows the last of them is late
}

func (f *firsts) offer(p placed) {
	if f.full && comparePlaces(p.ItemPlace, f.list[f.limit-1].ItemPlace) >= 0 {
		return
	}
	f.list = append(f.list, p)
	if f.limit > 0 && len(f.list) >= 2*f.limit+1024 {
		f.sorted()
		f.full = true
	}
}

func (f *firsts) sorted() []placed {
	slices.SortFunc(f.list, func(a, b placed) int { return comparePlaces(a.ItemPlace, b.ItemPlace) })
	if f.limit > 0 && len(f.list) > f.limit {
		f.list = f.list[:f.limit]
	}
	return f.list
}

// ParseItemOrder reads an order, "" as that of creation.
func ParseItemOrder(s string) (ItemOrder, error) {
	switch o := ItemOrder(s); o {
	case "":
		return ByCreation, nil
	case ByCreation, ByUpdate, ByID, ByEvents:
		return o, nil
	}
	return "", fmt.Errorf("order %q: there are created, updated, item and events", s)
}
