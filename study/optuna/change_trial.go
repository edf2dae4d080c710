package optuna

import (
	"fmt"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// template is a trial that is created with everything at once.
type template struct {
	state           study.State
	start, complete moment
	values          []float64 // nil without
	params          []param
	attrs           []attr
	curve           []point
}

// point is one intermediate value.
type point struct {
	step  int64
	value float64
}

// createTrial creates a trial that runs, from this moment on.
func (c change) createTrial(id int64) (study.TrialID, error) {
	st, err := openStudy(c.Snapshot(), id)
	if err != nil {
		return 0, err
	}
	t, err := c.newTrial(st)
	if err != nil {
		return 0, err
	}
	return t, c.move(t, study.Waiting, study.Running)
}

func (c change) newTrial(st *study.Study) (study.TrialID, error) {
	id := study.TrialID(c.Snapshot().NumTrials())
	return id, c.Apply(&study.CreateTrial{Study: st.ID, Trial: id, Number: uint64(st.NumTrials())})
}

func (c change) move(id study.TrialID, from, to study.State) error {
	return c.Apply(&study.Transition{Trial: id, From: from, To: to})
}

// createFrom creates a trial like a template.
func (c change) createFrom(in int64, tpl *template) (study.TrialID, error) {
	st, err := openStudy(c.Snapshot(), in)
	if err != nil {
		return 0, err
	}
	id, err := c.newTrial(st)
	if err != nil {
		return 0, err
	}
	if tpl.state != study.Waiting {
		if err := c.move(id, study.Waiting, study.Running); err != nil {
			return 0, err
		}
	}
	if err := c.fill(st, id, tpl); err != nil {
		return 0, err
	}
	if tpl.state.Terminal() {
		if err := c.move(id, study.Running, tpl.state); err != nil {
			return 0, err
		}
	}
	return id, c.setTimes(id, tpl.start, tpl.complete)
}

func (c change) fill(st *study.Study, id study.TrialID, tpl *template) error {
	if err := c.putParams(id, tpl.params); err != nil {
		return err
	}
	for _, p := range tpl.curve {
		if err := c.putPoint(id, p); err != nil {
			return err
		}
	}
	for _, a := range tpl.attrs {
		if err := c.putAttr(id, a); err != nil {
			return err
		}
	}
	if tpl.values == nil {
		return nil
	}
	return c.putValues(st, c.reread(id), tpl.values)
}

// setTimes makes a trial's times what they should be, where those of its
// operations are not.
func (c change) setTimes(id study.TrialID, start, complete moment) error {
	t := c.reread(id)
	if startOf(t) != start {
		if err := c.put(id, startKey, start.stored()); err != nil {
			return err
		}
	}
	if completeOf(t) != complete {
		return c.put(id, completeKey, complete.stored())
	}
	return nil
}

// setState moves a trial and sets its final values, if there are any. False
// means that it does not wait to be run, so that somebody else runs it. At is when
// that happens, to the microsecond if it is known.
func (c change) setState(id int64, to study.State, values []float64, at moment) (bool, error) {
	t, err := openTrial(c.Snapshot(), id)
	if err != nil {
		return false, err
	}
	if t.Managed && !t.State.Terminal() && to == study.Running {
		return false, nil
	}
	if t, err = c.openForChange(id); err != nil {
		return false, err
	}
	if to == study.Running && t.State == study.Running {
		return false, nil
	}
	if values != nil {
		st, err := openStudy(c.Snapshot(), int64(t.Study))
		if err != nil {
			return false, err
		}
		if err := c.putValues(st, t, values); err != nil {
			return false, err
		}
	}
	start, complete := startOf(t), completeOf(t)
	switch {
	case to == study.Running:
		start = at
	case to.Terminal():
		complete = at
	}
	if err := c.moveTo(t, to); err != nil {
		return false, err
	}
	return true, c.setTimes(t.ID, start, complete)
}

// moveTo takes the moves that lead to a state. To wait again is to be paused.
func (c change) moveTo(t *study.Trial, to study.State) error {
	from := t.State
	if to == study.Waiting {
		if from != study.Running {
			return nil
		}
		to = study.Paused
	}
	if to.Terminal() && from != study.Running {
		if err := c.move(t.ID, from, study.Running); err != nil {
			return err
		}
		from = study.Running
	}
	return c.move(t.ID, from, to)
}

// putValues sets final values. Those that are not one per direction, which
// Optuna keeps from tuning but not from storing, are an attribute.
func (c change) putValues(st *study.Study, t *study.Trial, values []float64) error {
	if len(values) != len(st.Config.Directions) {
		raw := []byte("[")
		for i, v := range values {
			if i > 0 {
				raw = append(raw, ',')
			}
			raw = serde.AppendFloat(raw, v)
		}
		return c.put(t.ID, valuesKey, append(raw, ']'))
	}
	if _, hidden := t.Attr(valuesKey); hidden {
		if err := c.put(t.ID, valuesKey, []byte("null")); err != nil {
			return err
		}
	}
	return c.Apply(&study.SetValues{Trial: t.ID, Values: values})
}

func (c change) setPoint(id int64, p point) error {
	t, err := c.openForChange(id)
	if err != nil {
		return err
	}
	return c.putPoint(t.ID, p)
}

func (c change) putPoint(id study.TrialID, p point) error {
	if p.step < 0 {
		return c.put(id, stepKey+strconv.FormatInt(p.step, 10), serde.AppendFloat(nil, p.value))
	}
	return c.Apply(&study.Report{Trial: id, Step: uint64(p.step), Values: []float64{p.value}})
}

// valuesOf are the final values, nil without.
func valuesOf(t *study.Trial) []float64 {
	a, ok := t.Attr(valuesKey)
	if !ok || pyNull(a.Value) {
		return t.Values
	}
	var values []float64
	s := serde.NewScanner(a.Value)
	for s.Array(); s.NextElem(); {
		values = append(values, s.Float64())
	}
	if s.End() != nil {
		return t.Values
	}
	return values
}

// stateOf is the state as Optuna sees it. A managed trial that is paused belongs
// to a worker, so that it does not wait for anybody else.
func stateOf(t *study.Trial) study.State {
	switch {
	case t.State != study.Paused:
		return t.State
	case t.Managed:
		return study.Running
	}
	return study.Waiting
}

// parseState reads Optuna's number of a state.
func parseState(n int64) (study.State, error) {
	for s, number := range stateNumbers {
		if int64(number) == n {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%w: %d is no trial state", ErrInvalid, n)
}

// stateNumbers are Optuna's numbers of the states, in messages and in files.
var stateNumbers = map[study.State]int32{
	study.Running: 0, study.Complete: 1, study.Pruned: 2, study.Failed: 3, study.Waiting: 4,
}
