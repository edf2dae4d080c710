package datagen

import (
	"hash/fnv"
	"iter"
)

// parts takes events in any order and hands them out again in parts, all events of an
// item in the same one. Memory is that of one part: what is more goes into a temporary
// file. Which parts there are depends on the events alone.
type parts struct {
	most  int64 // of the events of a part, by weight
	level int

	events []Event // while they are few
	weight int64
	file   *spillFile
	split  []part
}

// part is events that have a piece of the hash of their item in common.
type part struct {
	spilled
	weight int64
	item   string // of the first event
	mixed  bool   // there are several items
}

const (
	// partWeight is about how much memory the events of a part take, in bytes.
	partWeight int64 = 32 << 20
	// splitBits are the bits of a hash by which events are split, maxSplits is how often.
	splitBits = 7
	maxSplits = 64 / splitBits
)

// close gives the temporary file up.
func (p *parts) close() {
	if p != nil && p.file != nil {
		p.file.close()
	}
}

func weigh(e *Event) int64 { return eventBytes + valueBytes(e) }

func (p *parts) add(e *Event) error {
	if p.file != nil {
		return p.spill(e)
	}
	p.events = append(p.events, *e)
	if p.weight += weigh(e); p.weight <= p.most {
		return nil
	}
	var err error
	if p.file, err = newSpillFile(); err != nil {
		return err
	}
	for i := range p.events {
		if err := p.spill(&p.events[i]); err != nil {
			return err
		}
	}
	p.events = nil
	return nil
}

func (p *parts) spill(e *Event) error {
	if p.split == nil {
		p.split = make([]part, 1<<splitBits)
		for i := range p.split {
			p.split[i].file = p.file
		}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.Item))
	s := &p.split[h.Sum64()>>(p.level*splitBits)&(1<<splitBits-1)]
	if s.weight == 0 {
		s.item = e.Item
	}
	s.weight, s.mixed = s.weight+weigh(e), s.mixed || s.item != e.Item
	w := spillWriter(s.buf)
	w.event(e)
	s.buf = w
	return s.wrote()
}

// each hands out the parts. Nothing can be added afterwards.
func (p *parts) each(do func(iter.Seq2[Event, error]) error) error {
	if p.file == nil {
		return do(func(yield func(Event, error) bool) {
			for i := range p.events {
				if !yield(p.events[i], nil) {
					return
				}
			}
		})
	}
	for i := range p.split {
		s := &p.split[i]
		if s.weight == 0 {
			continue
		}
		events := records(&s.spilled, (*spillReader).event)
		if s.weight <= p.most || !s.mixed || p.level+1 == maxSplits {
			if err := do(events); err != nil {
				return err
			}
			continue
		}
		finer := &parts{most: p.most, level: p.level + 1, file: p.file}
		for e, err := range events {
			if err == nil {
				err = finer.spill(&e)
			}
			if err != nil {
				return err
			}
		}
		if err := finer.each(do); err != nil {
			return err
		}
	}
	return nil
}
