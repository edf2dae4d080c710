package datagen

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Summary sums up the events of all items of a log, in one pass and whatever
// order they come in, each once. It keeps about 180 bytes of each item, and the names of
// at most MaxGroups steps, failures and writers. The zero value is an empty summary.
type Summary struct {
	index    map[itemHash]uint32 // nil if an index knows its items by itself
	items    chunks[itemState]
	events   int64
	steps    groups[stepName, stepCount]
	failures groups[failureName, failureCount]
	writers  groups[writerName, writerCount]
}

// MaxGroups is how many steps, how many kinds of failures and how many writers are
// counted by name; all others are counted together, without a name.
const MaxGroups = 10_000

// itemState is what a summary keeps of an item.
type itemState struct {
	life
	events, failures int32
	// step is that of the last completed step, failure that of the last failure.
	step, failure uint32
	// sum is of the hashes of the sequences, first the lowest.
	sum         uint64
	first       int64
	place       uint64
	child, torn bool
}

type (
	stepName    struct{ name string }
	failureName struct{ step, kind string }
	writerName  struct{ name string }
)

type stepCount struct {
	index     int64
	completed int64
}

type failureCount struct {
	events      int64
	first, last int64
}

type writerCount struct {
	run         string
	events      int64
	first, last int64
}

// number is an item's, the next one if it was not seen before.
func (s *Summary) number(h itemHash) uint32 {
	i, ok := s.index[h]
	if !ok {
		if s.index == nil {
			s.index = map[itemHash]uint32{}
		}
		i = s.next()
		s.index[h] = i
	}
	return i
}

// next is the number of one more item.
func (s *Summary) next() uint32 {
	s.items.add().first = MaxSeq + 1
	return uint32(s.items.n - 1)
}

// at is what is kept of the item of a number.
func (s *Summary) at(i uint32) *itemState { return s.items.at(i) }

// state is what is kept of an item, new if it was not seen before.
func (s *Summary) state(h itemHash) *itemState { return s.at(s.number(h)) }

// Add takes in the rows of a batch, which must have the columns of SummaryColumns. The
// error is ErrSchema or ErrNewer.
func (s *Summary) Add(batch arrow.RecordBatch) error {
	r, err := newMomentReader(batch)
	if err != nil {
		return err
	}
	var last string
	var h itemHash
	var at *itemState
	for i := range r.rows {
		if err := r.refuseNewer(i); err != nil {
			return err
		}
		if item := r.item.Value(i); item != last || at == nil {
			last, h = item, hashItem(item)
			at = s.state(h)
		}
		s.add(at, r.moment(i), r.names(i, h))
	}
	return nil
}

// names are the texts of a row that a summary counts by; they alias the batch.
type names struct {
	step, failure, epoch, run, root string
	index                           int64
	child                           bool
	place                           uint64 // stands for the root and the parent
}

// placeOf hashes where an item with a parent is in its tree.
func placeOf(root, parent string) uint64 {
	return hashItem(root).lo*3 ^ hashItem(parent).hi
}

func (r *momentReader) names(i int, h itemHash) names {
	n := names{epoch: alias(r.text[colEpoch].arr, i), run: alias(r.text[colRun].arr, i), root: alias(r.text[colRoot].arr, i),
		failure: alias(r.error, i)}
	if a := r.text[colStepName].arr; a != nil && a.IsValid(i) {
		n.step, n.index = a.Value(i), value64(r.index, i)
	}
	parent := alias(r.text[colParent].arr, i)
	n.child = parent != ""
	if n.place = h.lo; n.child || n.root != r.item.Value(i) {
		n.place = placeOf(n.root, parent)
	}
	return n
}

// AddEvent takes one event in.
func (s *Summary) AddEvent(e *Event) {
	h := hashItem(e.Item)
	s.add(s.state(h), momentOf(e), namesOf(e, h))
}

func namesOf(e *Event, h itemHash) names {
	n := names{epoch: e.Epoch, run: e.Run, root: e.Root, child: e.Parent != ""}
	if e.Step != nil {
		n.step, n.index = e.Step.Name, e.Step.Index
	}
	if e.Failure != nil {
		n.failure = e.Failure.Type
	}
	if n.place = h.lo; n.child || n.root != e.Item {
		n.place = placeOf(e.Root, e.Parent)
	}
	return n
}

func (s *Summary) add(at *itemState, m moment, n names) {
	if m.kind == StepCompleted {
		i, step := s.steps.of(stepName{n.step})
		step.completed++
		step.index = n.index
		if m.seq > at.life.step {
			at.step = i
		}
	}
	if m.kind == StepFailed || m.failed {
		i, f := s.failures.of(failureName{n.step, n.failure})
		f.span(m.at)
		at.failures++
		if m.seq > at.failed {
			at.failure = i
		}
	}
	_, w := s.writers.of(writerName{writerOf(n.epoch)})
	w.span(m.at, n.run)
	at.take(m, n)
	s.events++
}

func (it *itemState) take(m moment, n names) {
	it.life.add(m)
	it.events++
	it.sum += mix(m.seq)
	it.first = min(it.first, m.seq)
	it.torn = it.torn || it.events > 1 && it.place != n.place
	it.place, it.child = n.place, it.child || n.child
}

// mix hashes a sequence (splitmix64).
func mix(seq int64) uint64 {
	x := uint64(seq) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// writerOf is the part of a writer epoch that its items have in common: the shard,
// or all of it where there is none (see epochOf).
func writerOf(epoch string) string {
	const n = len("00000000-0000-0000-0000-000000000000")
	if len(epoch) > n && epoch[n] == '.' && epoch[8] == '-' && epoch[23] == '-' {
		return epoch[:n]
	}
	return epoch
}

func (f *failureCount) span(at int64) {
	if f.events++; f.events == 1 {
		f.first, f.last = at, at
	}
	f.first, f.last = min(f.first, at), max(f.last, at)
}

func (w *writerCount) span(at int64, run string) {
	if w.events++; w.events == 1 {
		w.first, w.last, w.run = at, at, string([]byte(run))
	}
	w.first, w.last = min(w.first, at), max(w.last, at)
}

// ItemSummary is an item without its fields.
type ItemSummary struct {
	ID string
	// Root, Parent and Tags come from its ITEM_CREATED row; a Summary does not keep
	// them.
	Root, Parent string
	Tags         json.RawMessage
	Status       Status
	// Step is the name of the step that was completed last, "" before the first.
	Step    string
	Attempt int32
	LastSeq int64
	// Events counts its events, Failures those that are failures.
	Events, Failures int
	// ErrorType is that of the failure it stands at, if its status is failed.
	ErrorType string
	// Created is when it was created last, Updated the time of the latest event.
	Created, Updated time.Time
	// Child says that it has a parent.
	Child bool
	// Suspect says that its events may contradict each other: fold it to see. Other
	// faults need the fold.
	Suspect bool
}

func (s *Summary) summary(id string, at *itemState) ItemSummary {
	sum := ItemSummary{ID: id, Status: at.status(), Attempt: at.attempt, LastSeq: at.last - 1, Events: int(at.events),
		Failures: int(at.failures), Updated: time.UnixMicro(at.lastAt).UTC(), Child: at.child, Suspect: at.suspect()}
	if at.life.step > at.created {
		sum.Step = s.steps.names[at.step].name
	}
	if sum.Status == StatusFailed {
		sum.ErrorType = s.failures.names[at.failure].kind
	}
	if at.created > 0 {
		sum.Created = time.UnixMicro(at.createdAt).UTC()
	}
	return sum
}

// suspect reports whether the events may be at fault: no creation, another root,
// events after the end, or sequences that are not one unbroken row, each once.
func (it *itemState) suspect() bool {
	if it.created == 0 || it.torn || it.ended > it.created && it.last > it.ended {
		return true
	}
	if it.last-it.first+1 != int64(it.events) {
		return true
	}
	sum := uint64(0)
	for seq := it.first; seq <= it.last; seq++ {
		sum += mix(seq)
	}
	return sum != it.sum
}

// Len is how many items there are.
func (s *Summary) Len() int { return s.items.n }

// all calls f with every item.
func (s *Summary) all(f func(*itemState)) {
	for i := range uint32(s.items.n) {
		f(s.at(i))
	}
}

// groups counts by name, the first MaxGroups of them; number 0 is all others.
type groups[K comparable, V any] struct {
	numbers map[K]uint32
	names   []K
	counts  []*V
	last    K
	at      uint32
}

func (g *groups[K, V]) of(name K) (uint32, *V) {
	if g.at != 0 && g.last == name {
		return g.at, g.counts[g.at]
	}
	if g.numbers == nil {
		g.numbers = map[K]uint32{}
		g.names, g.counts = make([]K, 1), []*V{new(V)}
	}
	i, ok := g.numbers[name]
	if !ok {
		if len(g.names) > MaxGroups {
			return 0, g.counts[0]
		}
		i = uint32(len(g.names))
		name = cloned(name)
		g.numbers[name] = i
		g.names, g.counts = append(g.names, name), append(g.counts, new(V))
	}
	g.last, g.at = g.names[i], i
	return i, g.counts[i]
}

// cloned is a name that does not alias a batch.
func cloned[K comparable](name K) K {
	own := func(s string) string { return string([]byte(s)) }
	switch n := any(&name).(type) {
	case *stepName:
		n.name = own(n.name)
	case *failureName:
		n.step, n.kind = own(n.step), own(n.kind)
	case *writerName:
		n.name = own(n.name)
	}
	return name
}

// each calls f with every name and its count, number 0 first if there is any.
func (g *groups[K, V]) each(f func(i int, name K, count *V)) {
	for i := range g.names {
		f(i, g.names[i], g.counts[i])
	}
}

// Overview is a log at a glance.
type Overview struct {
	Items, Roots int
	Events       int64
	Status       StatusCounts
	// Suspects counts the items that may be at fault (ItemSummary.Suspect).
	Suspects int
	// Steps are by their index and name, Failures the most frequent first, Writers
	// the latest first.
	Steps    []StepSummary
	Failures []FailureSummary
	Writers  []WriterSummary
}

// StatusCounts counts items by their status.
type StatusCounts struct{ Pending, Running, Completed, Filtered, Failed int }

// StepSummary counts completions of a step.
type StepSummary struct {
	Name      string
	Index     int64
	Completed int64
	// Items are those whose last completed step it is, and that have not ended.
	Items int
}

// FailureSummary counts failures of one type in one step ("" outside of steps).
type FailureSummary struct {
	Step, Type string
	Events     int64
	// Items are those that stand at such a failure.
	Items       int
	First, Last time.Time
}

// WriterSummary counts the events of a writer.
type WriterSummary struct {
	// Epoch is the shard that the writer's epochs begin with; for epochs of other
	// programs the epoch itself.
	Epoch, Run  string
	Events      int64
	First, Last time.Time
}

// Overview sums everything up.
func (s *Summary) Overview() Overview {
	c := s.counting()
	s.all(c.item)
	return c.overview()
}

// counting counts the items of a summary.
type counting struct {
	s *Summary
	o Overview
	// atStep and atFailure count the items that stand there, by the numbers of both.
	atStep, atFailure []int
}

func (s *Summary) counting() *counting {
	c := &counting{s: s}
	c.widen()
	return c
}

// widen makes room for names that are new.
func (c *counting) widen() {
	c.atStep = append(c.atStep, make([]int, len(c.s.steps.names)-len(c.atStep))...)
	c.atFailure = append(c.atFailure, make([]int, len(c.s.failures.names)-len(c.atFailure))...)
}

func (c *counting) item(it *itemState) { c.count(it, 1) }

// count counts an item, or takes back that it was counted.
func (c *counting) count(it *itemState, by int) {
	c.o.count(it, by)
	if it.status() == StatusFailed {
		c.atFailure[it.failure] += by
	}
	if it.life.step > it.created && it.ended <= it.created {
		c.atStep[it.step] += by
	}
}

// overview is that of the items that were counted.
func (c *counting) overview() Overview {
	o := c.o
	o.Events = c.s.events
	c.s.steps.each(func(i int, n stepName, count *stepCount) {
		if count.completed > 0 {
			o.Steps = append(o.Steps, StepSummary{Name: n.name, Index: count.index, Completed: count.completed, Items: c.atStep[i]})
		}
	})
	c.s.failures.each(func(i int, n failureName, f *failureCount) {
		if f.events > 0 {
			o.Failures = append(o.Failures, FailureSummary{Step: n.step, Type: n.kind, Events: f.events, Items: c.atFailure[i],
				First: time.UnixMicro(f.first).UTC(), Last: time.UnixMicro(f.last).UTC()})
		}
	})
	c.s.writers.each(func(_ int, n writerName, w *writerCount) {
		if w.events > 0 {
			o.Writers = append(o.Writers, WriterSummary{Epoch: n.name, Run: w.run, Events: w.events,
				First: time.UnixMicro(w.first).UTC(), Last: time.UnixMicro(w.last).UTC()})
		}
	})
	o.sort()
	return o
}

func (o *Overview) count(it *itemState, by int) {
	o.Items += by
	if !it.child {
		o.Roots += by
	}
	if it.suspect() {
		o.Suspects += by
	}
	switch it.status() {
	case StatusPending:
		o.Status.Pending += by
	case StatusRunning:
		o.Status.Running += by
	case StatusCompleted:
		o.Status.Completed += by
	case StatusFiltered:
		o.Status.Filtered += by
	case StatusFailed:
		o.Status.Failed += by
	}
}

func (o *Overview) sort() {
	slices.SortFunc(o.Steps, func(a, b StepSummary) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(o.Failures, func(a, b FailureSummary) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Type, b.Type))
	})
	slices.SortFunc(o.Writers, func(a, b WriterSummary) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Epoch, b.Epoch))
	})
}
