package runner

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// objectives collects what a command says about the metrics that are the
// study's objectives.
type objectives struct {
	names []string

	mu   sync.Mutex
	last []float64 // NaN is a value; has tells
	has  []bool
	// row is the report of the present step in the making.
	row    []float64
	rowHas []bool
	step   uint64
	open   bool
	auto   uint64
	// others are other metrics that it printed, for whoever has mistaken a name.
	others []string
	// structured is that an event or an object has come: texts say nothing new then.
	structured bool
	pending    []*study.MutateReport
	// news is signalled when there is something pending, room when there is
	// room for more; closed ends the waiting for room.
	news   chan struct{}
	room   sync.Cond
	closed bool
}

// goOn takes the last report of a trial that was paused for its result, unless
// more is said: the command may have been stopped when it had printed all.
func (o *objectives) goOn(t *study.Trial) {
	_, values, ok := t.LastReport()
	if !ok || len(values) != len(o.names) {
		return
	}
	for i, v := range values {
		if !math.IsNaN(v) { // it may stand for a value that was not mentioned
			o.last[i], o.has[i] = v, true
		}
	}
}

// maxPending is how many reports wait for the journal before the command has to
// wait too.
const maxPending = 64 << 10

func newObjectives(names []string) *objectives {
	n := len(names)
	o := &objectives{
		names: names, last: make([]float64, n), has: make([]bool, n), rowHas: make([]bool, n),
		news: make(chan struct{}, 1),
	}
	o.room.L = &o.mu
	return o
}

// take looks at one line of the output. It returns the step of a line of values, and
// whether such a line counts.
func (o *objectives) take(it *metrics.Item) (step int64, counts bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.pending) >= maxPending && !o.closed {
		o.room.Wait()
	}
	switch {
	case it.Kind == metrics.ItemEvent && it.Event.Kind == metrics.KindMetric:
		o.structured = true
		o.value(it.Event.Name, it.Event.Step, it.Event.Value.Float64())
	case it.Kind == metrics.ItemValues && isObject(it):
		o.structured = true
		return o.values(it.Values), true
	case it.Kind == metrics.ItemValues && !o.structured && o.measures(it.Values):
		return o.values(it.Values), true
	}
	return 0, false
}

// isObject tells a JSON object from a text with name=value pairs in it.
func isObject(it *metrics.Item) bool { return len(it.Line) > 0 && it.Line[0] == '{' }

// measures tells a line of results from a text that happens to have a name=value pair.
func (o *objectives) measures(values []metrics.Value) bool {
	return slices.ContainsFunc(values, func(v metrics.Value) bool {
		return v.IsNumber && (v.Name == stepName || slices.Contains(o.names, v.Name))
	})
}

// stepName is what the step of a line of values is called.
const stepName = "step"

// values takes a plain JSON object, or the pairs of a text; their steps count by
// themselves if they have none. Those without an objective belong to the step before.
func (o *objectives) values(values []metrics.Value) int64 {
	step := int64(-1)
	found := false
	for _, v := range values {
		if v.Name == stepName && v.IsNumber {
			if n, ok := v.Number.Whole(); ok {
				step = n
			}
		}
		found = found || v.IsNumber && slices.Contains(o.names, v.Name)
	}
	if !found {
		for _, v := range values {
			if v.IsNumber && v.Name != stepName {
				o.other(v.Name)
			}
		}
		if step < 0 {
			step = max(int64(o.auto)-1, 0)
		}
		return step
	}
	if step < 0 {
		step = int64(o.auto)
	}
	o.auto = uint64(step) + 1
	for _, v := range values {
		if v.IsNumber {
			o.value(v.Name, step, v.Number.Float64())
		}
	}
	o.endRow()
	return step
}

func (o *objectives) value(name string, step int64, v float64) {
	i := slices.Index(o.names, name)
	if i < 0 {
		o.other(name)
		return
	}
	o.last[i], o.has[i] = v, true
	if step < 0 {
		return // reports count steps from 0
	}
	if o.open && (o.step != uint64(step) || o.rowHas[i]) {
		o.endRow()
	}
	if !o.open {
		o.open, o.step = true, uint64(step)
		clear(o.rowHas)
		o.row = make([]float64, len(o.names))
		for k := range o.row {
			o.row[k] = math.NaN()
		}
	}
	o.row[i], o.rowHas[i] = v, true
	if !slices.Contains(o.rowHas, false) {
		o.endRow()
	}
}

// maxOthers bounds the names of other metrics, and maxOther the length of each.
const (
	maxOthers = 8
	maxOther  = 80
)

func (o *objectives) other(name string) {
	if len(o.others) < maxOthers && len(name) <= maxOther && name != stepName && !slices.Contains(o.others, name) {
		o.others = append(o.others, name)
	}
}

// endRow makes a report of what is known of a step. An objective that was not
// mentioned is NaN.
func (o *objectives) endRow() {
	if !o.open {
		return
	}
	o.pending = append(o.pending, &study.MutateReport{Step: o.step, Values: o.row})
	o.open = false
	o.signal()
}

// maxReports bounds the reports of one transaction.
const maxReports = 4096

// drain takes the pending reports, at most maxReports; with end also the one in
// the making.
func (o *objectives) drain(end bool) []*study.MutateReport {
	o.mu.Lock()
	defer o.mu.Unlock()
	if end {
		o.endRow()
	}
	n := min(len(o.pending), maxReports)
	taken := o.pending[:n:n]
	o.pending = o.pending[n:]
	o.room.Broadcast()
	return taken
}

// putBack returns reports that could not be written.
func (o *objectives) putBack(reports []*study.MutateReport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = append(reports, o.pending...)
	o.signal()
}

func (o *objectives) signal() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// close lets nobody wait any more.
func (o *objectives) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
}

// result is the last value of every objective.
func (o *objectives) result() ([]float64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var missing []string
	for i, has := range o.has {
		if !has {
			missing = append(missing, fmt.Sprintf("%q", o.names[i]))
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("the output has no value for %s%s", strings.Join(missing, ", "), o.otherText())
	}
	return slices.Clone(o.last), nil
}

// otherText names what was printed instead of an objective.
func (o *objectives) otherText() string {
	if len(o.others) == 0 {
		return ""
	}
	names := make([]string, len(o.others))
	for i, name := range o.others {
		names[i] = fmt.Sprintf("%q", name)
	}
	slices.Sort(names)
	return ", but for " + strings.Join(names, ", ")
}
