package optuna

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/foldlog/foldlog/study"
)

// advance is the time that operations carry from now on, if the file gives one.
func (im *importer) advance(m moment) {
	if m.known {
		im.history.at = m.millis()
	}
}

func (im *importer) createTrial(c change, rec record) error {
	id, err := rec.int("study_id")
	if err != nil {
		return err
	}
	tpl, err := readLogTemplate(rec)
	if err != nil {
		return err
	}
	st, err := openStudy(c.Snapshot(), id)
	if err != nil {
		return err
	}
	for _, p := range tpl.params {
		if _, err := toValue(p.dist, p.internal); err != nil {
			return fmt.Errorf("parameter %.80q: %w", p.name, err)
		}
	}
	for _, a := range tpl.attrs {
		if _, _, err := a.stored(); err != nil {
			return err
		}
	}
	// From here on nothing can fail, so that no half of a trial is left.
	im.advance(tpl.start)
	t, err := c.newTrial(st)
	if err != nil {
		return err
	}
	if tpl.state != study.Waiting {
		err = c.move(t, study.Waiting, study.Running)
	}
	err = errors.Join(err, c.fill(st, t, tpl))
	if tpl.state.Terminal() {
		im.advance(tpl.complete)
		err = errors.Join(err, c.move(t, study.Running, tpl.state))
	}
	im.learn(c, t, tpl.params)
	return errors.Join(err, c.setTimes(t, tpl.start, tpl.complete))
}

// learn remembers the distributions of parameters that are set now.
func (im *importer) learn(c change, id study.TrialID, params []param) {
	in := c.reread(id).Study
	for _, p := range params {
		if _, ok := im.dists[distKey{in, p.name}]; !ok {
			im.dists[distKey{in, p.name}] = p.dist
		}
	}
}

// readLogTemplate reads what is known of a trial when it is created: little, if
// it begins to run, or everything.
func readLogTemplate(rec record) (tpl *template, err error) {
	tpl = &template{state: study.Running}
	if rec.has("state") {
		n, err := rec.int("state")
		if err != nil {
			return nil, err
		}
		if tpl.state, err = parseState(n); err != nil {
			return nil, err
		}
	}
	if tpl.start, err = rec.moment("datetime_start"); err != nil {
		return nil, err
	}
	if tpl.complete, err = rec.moment("datetime_complete"); err != nil {
		return nil, err
	}
	if tpl.values, err = logValues(rec); err != nil {
		return nil, err
	}
	if tpl.params, err = logParams(rec); err != nil {
		return nil, err
	}
	if tpl.curve, err = logCurve(rec); err != nil {
		return nil, err
	}
	user, err := rec.attrs("user_attrs", userSide)
	if err != nil {
		return nil, err
	}
	system, err := rec.attrs("system_attrs", systemSide)
	tpl.attrs = append(user, system...)
	return tpl, err
}

// logValues are final values: a list, or one alone.
func logValues(rec record) ([]float64, error) {
	if rec.has("values") {
		values, err := rec.floats("values")
		return noneIfEmpty(values), err
	}
	if !rec.has("value") {
		return nil, nil
	}
	v, err := rec.float("value")
	return []float64{v}, err
}

func logParams(rec record) (list []param, err error) {
	if !rec.has("params") {
		return nil, nil
	}
	dists := map[string]study.Distribution{}
	if rec.has("distributions") {
		err = pyMembers(rec["distributions"], func(name string, value []byte) error {
			text, err := pyString(value)
			if err == nil {
				dists[name], err = parseDist(text)
			}
			return err
		})
	}
	if err != nil {
		return nil, inField("distributions", err)
	}
	err = pyMembers(rec["params"], func(name string, value []byte) error {
		x, err := pyFloat(value)
		if err == nil && dists[name] == nil {
			err = fmt.Errorf("%.80q has no distribution", name)
		}
		list = append(list, param{name, x, dists[name]})
		return err
	})
	return list, inField("params", err)
}

func logCurve(rec record) (list []point, err error) {
	if !rec.has("intermediate_values") {
		return nil, nil
	}
	err = pyMembers(rec["intermediate_values"], func(key string, value []byte) error {
		step, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return err
		}
		x, err := pyFloat(value)
		list = append(list, point{step, x})
		return err
	})
	return list, inField("intermediate_values", err)
}

func (im *importer) applyTrial(c change, code int64, rec record) error {
	id, err := rec.int("trial_id")
	if err != nil {
		return err
	}
	switch code {
	case opSetTrialParam:
		return im.setParam(c, id, rec)
	case opSetTrialStateValues:
		return im.setState(c, id, rec)
	case opSetTrialIntermediateValue:
		return im.setPoint(c, id, rec)
	}
	key, side := "user_attr", userSide
	if code == opSetTrialSystemAttr {
		key, side = "system_attr", systemSide
	}
	attrs, err := rec.attrs(key, side)
	for _, a := range attrs {
		err = errors.Join(err, c.setTrialAttr(id, a))
	}
	return err
}

func (im *importer) setParam(c change, id int64, rec record) error {
	name, err := rec.text("param_name")
	if err != nil {
		return err
	}
	x, err := rec.float("param_value_internal")
	if err != nil {
		return err
	}
	dist, err := rec.text("distribution")
	if err != nil {
		return err
	}
	if err := c.setParam(id, name, x, dist); err != nil {
		return err
	}
	t := c.reread(study.TrialID(id))
	p, _ := t.Param(name) // it has just been set
	im.learn(c, t.ID, []param{{name, x, p.Dist}})
	return nil
}

func (im *importer) setState(c change, id int64, rec record) error {
	n, err := rec.int("state")
	if err != nil {
		return err
	}
	state, err := parseState(n)
	if err != nil {
		return err
	}
	values, err := logValues(rec)
	if err != nil {
		return err
	}
	key := "datetime_start"
	if state.Terminal() {
		key = "datetime_complete"
	}
	at, err := rec.moment(key)
	if err != nil {
		return err
	}
	im.advance(at)
	_, err = c.setState(id, state, values, at)
	return err
}

func (im *importer) setPoint(c change, id int64, rec record) error {
	step, err := rec.int("step")
	if err != nil {
		return err
	}
	x, err := rec.float("intermediate_value")
	if err != nil {
		return err
	}
	return c.setPoint(id, point{step, x})
}
