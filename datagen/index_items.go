package datagen

// chunks is a list that grows without moving what it has, but for its first chunk, which
// begins small.
type chunks[T any] struct {
	parts [][]T
	n     int
}

const (
	// chunk is how many values are allocated at once.
	chunk = 4096
	// firstChunk is how many a list begins with.
	firstChunk = 32
)

// at is the value of a number. It moves while there is but one chunk.
func (c *chunks[T]) at(i uint32) *T { return &c.parts[i/chunk][i%chunk] }

// add appends a value, which is zero.
func (c *chunks[T]) add() *T {
	part := c.n / chunk
	switch {
	case c.n == 0 && len(c.parts) == 0:
		c.parts = append(c.parts, make([]T, firstChunk))
	case part == len(c.parts):
		c.parts = append(c.parts, make([]T, chunk))
	case c.n%chunk == len(c.parts[part]):
		c.parts[part] = append(make([]T, 0, 2*c.n), c.parts[part]...)[:2*c.n]
	}
	c.n++
	return c.at(uint32(c.n - 1))
}

// clear makes the list empty, and keeps its memory.
func (c *chunks[T]) clear() {
	for _, part := range c.parts {
		clear(part)
	}
	c.n = 0
}

// itemTable finds the rows of an index by the identities of their items, which the rows
// hold. It takes about seven bytes of each, and grows in small steps.
type itemTable struct {
	shards [256]itemShard
}

// itemShard is a hash table with linear probing.
type itemShard struct {
	slots []uint32 // numbers of rows plus one; zero is free
	used  int
}

func (t *itemTable) shard(h itemHash) *itemShard { return &t.shards[h.hi>>56] }

// find is the number of an item's row.
func (t *itemTable) find(h itemHash, id string, rows *chunks[indexRow]) (uint32, bool) {
	s := t.shard(h)
	if len(s.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(s.slots) - 1)
	for i := h.hi & mask; s.slots[i] != 0; i = (i + 1) & mask {
		if n := s.slots[i] - 1; rows.at(n).id == id {
			return n, true
		}
	}
	return 0, false
}

// add adds a row that is not there.
func (t *itemTable) add(h itemHash, n uint32, rows *chunks[indexRow]) {
	s := t.shard(h)
	if s.used*4 >= len(s.slots)*3 {
		s.grow(max(8, 2*len(s.slots)), rows)
	}
	s.put(h, n)
	s.used++
}

func (s *itemShard) put(h itemHash, n uint32) {
	mask := uint64(len(s.slots) - 1)
	i := h.hi & mask
	for s.slots[i] != 0 {
		i = (i + 1) & mask
	}
	s.slots[i] = n + 1
}

func (s *itemShard) grow(size int, rows *chunks[indexRow]) {
	old := s.slots
	s.slots = make([]uint32, size)
	for _, n := range old {
		if n != 0 {
			s.put(hashItem(rows.at(n-1).id), n-1)
		}
	}
}

// reserve makes room for so many rows in a table that is empty.
func (t *itemTable) reserve(items int) {
	size := 8
	for size*len(t.shards)*5 < items*8 {
		size *= 2
	}
	for i := range t.shards {
		t.shards[i].slots = make([]uint32, size)
	}
}
