package datagen

import (
	"hash/maphash"

	"github.com/apache/arrow-go/v18/arrow"
)

// Class is what is to be done about a source key.
type Class string

// The classes.
const (
	// Fresh: the log has nothing of it.
	Fresh Class = "fresh"
	// Resumable: it was begun, and has not ended; failed items are among these.
	Resumable Class = "resumable"
	// Finished: it was completed.
	Finished Class = "finished"
	// Filtered: it was filtered out.
	Filtered Class = "filtered"
)

// Classes tells the classes of any number of items at once. It takes the events
// of all items, in any order and any number of times, and keeps 24 bytes of each
// item: 32 to 64 bytes with the table's free places, and three times that while a
// 256th part of the table grows. The zero value is ready.
type Classes struct {
	shards [256]classShard
	items  int
}

// itemHash stands for an item's identity. The seeds are drawn when the program
// starts, so that nobody can choose identities that collide.
type itemHash struct{ hi, lo uint64 }

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func hashItem(id string) itemHash {
	// The zero hash marks a free place.
	return itemHash{maphash.String(seeds[0], id) | 1, maphash.String(seeds[1], id)}
}

// classShard is a hash table with linear probing.
type classShard struct {
	slots []classSlot
	used  int
}

// classSlot is an item with the latest of the events that begin or end it: its
// sequence, in the last two bits which kind it is, and in the first whether the item is
// the child of another.
type classSlot struct {
	hash itemHash
	mark uint64
}

// markChild is that of an item with a parent. Sequences leave the bit free.
const markChild = 1 << 63

// The kinds, so ordered that where two share a sequence, which is a fault, the
// higher settles it as life does.
const (
	markCompleted = 1 + iota
	markFiltered
	markCreated
)

func markOf(m moment) uint64 {
	code := uint64(0)
	switch {
	case m.seq <= 0:
		return 0
	case m.kind == ItemCreated:
		code = markCreated
	case m.whole && m.filtered:
		code = markFiltered
	case m.whole:
		code = markCompleted
	default:
		return 0
	}
	return uint64(m.seq)<<2 | code
}

func (c *Classes) add(h itemHash, mark uint64) {
	s := &c.shards[h.hi>>56]
	if s.used*4 >= len(s.slots)*3 {
		s.grow()
	}
	at := s.find(h)
	if at.hash == (itemHash{}) {
		at.hash = h
		s.used++
		c.items++
	}
	at.mark = max(at.mark&^markChild, mark&^markChild) | (at.mark|mark)&markChild
}

// find returns the item's place, or the free one where it belongs.
func (s *classShard) find(h itemHash) *classSlot {
	mask := uint64(len(s.slots) - 1)
	for i := h.lo & mask; ; i = (i + 1) & mask {
		if at := &s.slots[i]; at.hash == h || at.hash == (itemHash{}) {
			return at
		}
	}
}

func (s *classShard) grow() {
	old := s.slots
	s.slots = make([]classSlot, max(16, 2*len(old)))
	for _, o := range old {
		if o.hash != (itemHash{}) {
			*s.find(o.hash) = o
		}
	}
}

// Add takes in the rows of a batch, which must have the columns of ClassColumns. The
// error is ErrSchema or ErrNewer.
func (c *Classes) Add(batch arrow.RecordBatch) error {
	return eachMoment(batch, func(r *momentReader, i int, h itemHash) {
		c.add(h, childMark(alias(r.text[colParent].arr, i))|markOf(r.moment(i)))
	})
}

// AddEvent takes one event in.
func (c *Classes) AddEvent(e *Event) {
	c.add(hashItem(e.Item), childMark(e.Parent)|markOf(momentOf(e)))
}

func childMark(parent string) uint64 {
	if parent == "" {
		return 0
	}
	return markChild
}

// Of is the class of an item.
func (c *Classes) Of(item string) Class { return c.of(hashItem(item)) }

func (c *Classes) of(h itemHash) Class {
	s := &c.shards[h.hi>>56]
	if len(s.slots) == 0 {
		return Fresh
	}
	at := s.find(h)
	if at.hash == (itemHash{}) {
		return Fresh
	}
	return at.class()
}

func (s *classSlot) class() Class {
	switch s.mark & 3 {
	case markCompleted:
		return Finished
	case markFiltered:
		return Filtered
	}
	return Resumable
}

// Roots counts the items of each class that are no sub-items.
func (c *Classes) Roots() map[Class]int {
	n := map[Class]int{}
	for i := range c.shards {
		for k := range c.shards[i].slots {
			if at := &c.shards[i].slots[k]; at.hash != (itemHash{}) && at.mark&markChild == 0 {
				n[at.class()]++
			}
		}
	}
	return n
}

// Len is how many items there are.
func (c *Classes) Len() int { return c.items }
