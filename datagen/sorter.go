package datagen

import (
	"container/heap"
	"iter"
	"slices"
)

// sortedAtOnce is how many summaries are sorted in memory.
const sortedAtOnce = 100_000

// sorter puts summaries in order. What is more than it may hold goes into a temporary
// file, in runs that are in order.
type sorter struct {
	order ItemOrder
	most  int

	list []ItemSummary
	file *spillFile
	runs []*spilled
}

func (s *sorter) close() {
	if s.file != nil {
		s.file.close()
	}
}

func (s *sorter) compare(a, b *ItemSummary) int {
	return comparePlaces(s.order.Place(a), s.order.Place(b))
}

func (s *sorter) sort() {
	slices.SortFunc(s.list, func(a, b ItemSummary) int { return s.compare(&a, &b) })
}

func (s *sorter) add(x ItemSummary) (err error) {
	if s.list = append(s.list, x); len(s.list) < s.most {
		return nil
	}
	if s.file == nil {
		if s.file, err = newSpillFile(); err != nil {
			return err
		}
	}
	s.sort()
	run := &spilled{file: s.file}
	for i := range s.list {
		w := spillWriter(run.buf)
		w.summary(&s.list[i])
		run.buf = w
		if err := run.wrote(); err != nil {
			return err
		}
	}
	s.runs, s.list = append(s.runs, run), s.list[:0]
	return run.flush()
}

// all yields them in order. Nothing can be added afterwards.
func (s *sorter) all() iter.Seq2[ItemSummary, error] {
	return func(yield func(ItemSummary, error) bool) {
		s.sort()
		m := merging{compare: s.compare}
		defer m.stop()
		err := m.run(func(yield func(ItemSummary, error) bool) {
			for i := range s.list {
				if !yield(s.list[i], nil) {
					return
				}
			}
		})
		for _, r := range s.runs {
			if err == nil {
				err = m.run(records(r, (*spillReader).summary))
			}
		}
		for err == nil && len(m.runs) > 0 {
			top := &m.runs[0]
			if !yield(top.head, nil) {
				return
			}
			err = m.advance()
		}
		if err != nil {
			yield(ItemSummary{}, err)
		}
	}
}

// merging is a heap of runs, the one whose first summary comes first on top.
type merging struct {
	compare func(a, b *ItemSummary) int
	runs    []mergingRun
}

type mergingRun struct {
	head ItemSummary
	next func() (ItemSummary, error, bool)
	stop func()
}

// run adds a run, unless it is empty.
func (m *merging) run(items iter.Seq2[ItemSummary, error]) error {
	r := mergingRun{}
	r.next, r.stop = iter.Pull2(items)
	head, err, ok := r.next()
	if r.head = head; ok && err == nil {
		heap.Push(m, r)
		return nil
	}
	r.stop()
	return err
}

// advance goes on to the next summary.
func (m *merging) advance() error {
	top := &m.runs[0]
	head, err, ok := top.next()
	switch {
	case err != nil:
		return err
	case !ok:
		top.stop()
		heap.Pop(m)
		return nil
	}
	top.head = head
	heap.Fix(m, 0)
	return nil
}

func (m *merging) stop() {
	for i := range m.runs {
		m.runs[i].stop()
	}
}

func (m *merging) Len() int           { return len(m.runs) }
func (m *merging) Less(i, j int) bool { return m.compare(&m.runs[i].head, &m.runs[j].head) < 0 }
func (m *merging) Swap(i, j int)      { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }

// Push implements heap.Interface.
func (m *merging) Push(r any) { m.runs = append(m.runs, r.(mergingRun)) }

// Pop implements heap.Interface.
func (m *merging) Pop() any {
	n := len(m.runs) - 1
	r := m.runs[n]
	m.runs = m.runs[:n]
	return r
}
