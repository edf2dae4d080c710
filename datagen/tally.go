package datagen

import "github.com/apache/arrow-go/v18/arrow"

// talliedAtOnce is how many items' states a tally has in memory.
const talliedAtOnce = 64 << 10

// tally counts items in bounded memory. States of more items than it may hold go into a
// temporary file, in parts by a piece of the hash of their item; there may be several of
// one item, which are put together in the end.
type tally struct {
	sum   *Summary
	most  int
	level int

	file  *spillFile
	split []stateRun
}

// stateRun is states of items that have a piece of their hash in common.
type stateRun struct {
	spilled
	n int
}

func newTally(most int) *tally { return &tally{sum: new(Summary), most: most} }

// close gives the temporary file up.
func (t *tally) close() {
	if t.file != nil {
		t.file.close()
	}
}

// batch takes the rows of a batch in, as Summary.Add does.
func (t *tally) batch(rec arrow.RecordBatch) error {
	if err := t.sum.Add(rec); err != nil {
		return err
	}
	return t.bound()
}

func (t *tally) event(e *Event) error {
	t.sum.AddEvent(e)
	return t.bound()
}

func (t *tally) bound() error {
	if t.sum.Len() <= t.most {
		return nil
	}
	return t.spill()
}

// spill puts the states in memory into the file.
func (t *tally) spill() (err error) {
	if t.file == nil {
		if t.file, err = newSpillFile(); err != nil {
			return err
		}
	}
	for h, i := range t.sum.index {
		if err := t.put(h, t.sum.at(i)); err != nil {
			return err
		}
	}
	t.sum.forget()
	return nil
}

func (t *tally) put(h itemHash, at *itemState) error {
	if t.split == nil {
		t.split = make([]stateRun, 1<<splitBits)
		for i := range t.split {
			t.split[i].file = t.file
		}
	}
	run := &t.split[h.hi>>(64-splitBits*(t.level+1))&(1<<splitBits-1)]
	w := spillWriter(run.buf)
	w.state(h, at)
	run.buf, run.n = w, run.n+1
	return run.wrote()
}

// each calls do with every item, once. Nothing can be added afterwards.
func (t *tally) each(do func(*itemState)) error {
	if t.file == nil {
		t.sum.all(do)
		return nil
	}
	if err := t.spill(); err != nil {
		return err
	}
	for i := range t.split {
		if err := t.run(&t.split[i], do); err != nil {
			return err
		}
	}
	return nil
}

// run puts the states of a part together, of smaller parts if it is too large.
func (t *tally) run(run *stateRun, do func(*itemState)) error {
	finer := &tally{sum: t.sum, most: t.most, level: t.level + 1, file: t.file}
	split := run.n > t.most && finer.level < maxSplits
	for s, err := range records(&run.spilled, (*spillReader).state) {
		switch {
		case err != nil:
			return err
		case split:
			if err := finer.put(s.hash, &s.itemState); err != nil {
				return err
			}
		default:
			t.sum.state(s.hash).merge(&s.itemState)
		}
	}
	if split {
		return finer.each(do)
	}
	t.sum.all(do)
	t.sum.forget()
	return nil
}

// overview sums everything up.
func (t *tally) overview() (Overview, error) {
	c := t.sum.counting()
	if err := t.each(c.item); err != nil {
		return Overview{}, err
	}
	return c.overview(), nil
}

// forget forgets the items, but not their steps, failures and writers.
func (s *Summary) forget() {
	s.items.clear()
	clear(s.index)
}

// merge takes in what else is known of the item.
func (it *itemState) merge(o *itemState) {
	if it.events == 0 {
		*it = *o
		return
	}
	if o.life.step > it.life.step {
		it.step = o.step
	}
	if o.failed > it.failed {
		it.failure = o.failure
	}
	it.life.merge(&o.life)
	it.torn = it.torn || o.torn || it.place != o.place
	it.child = it.child || o.child
	it.events, it.failures = it.events+o.events, it.failures+o.failures
	it.sum += o.sum
	it.first = min(it.first, o.first)
}

// merge takes in what other events of the item say.
func (l *life) merge(o *life) {
	l.latest(o.last, o.lastAt, o.attempt)
	l.begin(o.created, o.createdAt)
	l.fail(o.failed, o.failAttempt)
	l.end(o.ended, o.filtered)
	l.step = max(l.step, o.step)
}

// hashedState is a state with the hash of its item.
type hashedState struct {
	hash itemHash
	itemState
}

func (w *spillWriter) state(h itemHash, at *itemState) {
	for _, v := range []uint64{h.hi, h.lo, at.sum, at.place} {
		w.fixed(v)
	}
	for _, v := range []int64{at.last, at.created, at.ended, at.failed, at.life.step, at.lastAt, at.createdAt, at.first} {
		w.int(v)
	}
	for _, v := range []int32{at.attempt, at.failAttempt, at.events, at.failures, int32(at.step), int32(at.failure)} {
		w.int(int64(v))
	}
	for _, v := range []bool{at.filtered, at.child, at.torn} {
		w.bool(v)
	}
}

func (r *spillReader) state() (s hashedState) {
	for _, v := range []*uint64{&s.hash.hi, &s.hash.lo, &s.sum, &s.place} {
		*v = r.fixed()
	}
	for _, v := range []*int64{&s.last, &s.created, &s.ended, &s.failed, &s.life.step, &s.lastAt, &s.createdAt, &s.first} {
		*v = r.int()
	}
	for _, v := range []*int32{&s.attempt, &s.failAttempt, &s.events, &s.failures} {
		*v = int32(r.int())
	}
	s.step, s.failure = uint32(r.int()), uint32(r.int())
	for _, v := range []*bool{&s.filtered, &s.child, &s.torn} {
		*v = r.bool()
	}
	return s
}
