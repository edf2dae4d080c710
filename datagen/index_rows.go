package datagen

import (
	"encoding/binary"
	"math"
)

// The rows of a block: the lengths of their identities, the identities one after the
// other, so that they share one string, and then what is known of each item.

// rowBytes is the least that a row takes.
const rowBytes = 25

const (
	flagChild = 1 << iota
	flagTorn
	flagFiltered
	flagKin
)

// appendRows appends rows as they are stored.
func (x *Index) appendRows(b spillWriter, from, to uint32) spillWriter {
	for n := from; n < to; n++ {
		b = binary.AppendUvarint(b, uint64(len(x.rows.at(n).id)))
	}
	for n := from; n < to; n++ {
		b = append(b, x.rows.at(n).id...)
	}
	before := int64(0)
	for n := from; n < to; n++ {
		row, at := x.rows.at(n), x.sum.at(n)
		b = append(b, flagsOf(row, at))
		b.int(int64(row.tags))
		b.indexed(at, before)
		if row.kin > 0 {
			k := x.kin(row)
			b.text(k.root)
			b.text(k.parent)
		}
		before = at.lastAt
	}
	return b
}

// indexed appends a state; before is the time of the one before, as most are close.
func (w *spillWriter) indexed(at *itemState, before int64) {
	for _, v := range [...]int64{at.last, at.created, at.ended, at.failed, at.life.step, at.lastAt - before, at.createdAt - at.lastAt,
		at.first, int64(at.attempt), int64(at.failAttempt), int64(at.events), int64(at.failures), int64(at.step), int64(at.failure)} {
		w.int(v)
	}
	w.fixed(at.sum)
}

func (r *spillReader) indexed(at *itemState, before int64) {
	at.last, at.created, at.ended, at.failed, at.life.step = r.int(), r.int(), r.int(), r.int(), r.int()
	at.lastAt = before + r.int()
	at.createdAt = at.lastAt + r.int()
	at.first, at.attempt, at.failAttempt = r.int(), int32(r.int()), int32(r.int())
	at.events, at.failures, at.step, at.failure = int32(r.int()), int32(r.int()), uint32(r.int()), uint32(r.int())
	at.sum = r.fixed()
}

func flagsOf(row *indexRow, at *itemState) (flags byte) {
	for i, set := range [...]bool{at.child, at.torn, at.filtered, row.kin > 0} {
		if set {
			flags |= 1 << i
		}
	}
	return flags
}

// readRows adds the rows of a block, of which there are so many.
func (x *Index) readRows(b []byte, rows int) error {
	r := spillReader{b: b}
	ids := r.ids(rows)
	before := int64(0)
	for _, id := range ids {
		n := x.sum.next()
		row, at := x.rows.add(), x.sum.at(n)
		flags := r.take(1)
		tags := r.int()
		r.indexed(at, before)
		if r.bad || tags < 0 || tags >= int64(len(x.tags)) || int(at.step) >= max(1, len(x.sum.steps.names)) ||
			int(at.failure) >= max(1, len(x.sum.failures.names)) {
			return ErrIndex
		}
		*row = indexRow{id: id, touched: x.version, tags: uint32(tags)}
		at.child, at.torn, at.filtered = flags[0]&flagChild != 0, flags[0]&flagTorn != 0, flags[0]&flagFiltered != 0
		h := hashItem(id)
		if at.place = h.lo; flags[0]&flagKin != 0 {
			k := kin{r.text(), r.text()}
			x.relate(row, k)
			if k.parent != "" || k.root != id {
				at.place = placeOf(k.root, k.parent)
			}
		}
		x.items.add(h, n, &x.rows)
		before = at.lastAt
	}
	if r.bad || len(ids) != rows || len(r.b) > 0 {
		return ErrIndex
	}
	return nil
}

// ids reads identities, which share memory.
func (r *spillReader) ids(rows int) []string {
	sizes := make([]int64, rows)
	sum := int64(0)
	for i := range sizes {
		v, n := binary.Uvarint(r.b)
		if n <= 0 || v > math.MaxInt32 {
			r.take(-1)
			return nil
		}
		r.b = r.b[n:]
		sizes[i] = int64(v)
		sum += sizes[i]
	}
	all := string(r.take(sum))
	if r.bad {
		return nil
	}
	ids := make([]string, rows)
	for i, n := range sizes {
		ids[i], all = all[:n], all[n:]
	}
	return ids
}
