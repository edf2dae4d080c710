package optuna

import (
	"fmt"

	"github.com/foldlog/foldlog/study"
)

// target is where changes go: a transaction, or a journal that is being made.
type target interface {
	Snapshot() *study.Snapshot
	// Apply adds an operation at the time AtMillis.
	Apply(op study.Op) error
	AtMillis() uint64
}

var _ target = (*study.Tx)(nil)

// change makes Optuna's calls operations. Each checks what Optuna checks first
// and returns one of this package's errors if Optuna would raise.
type change struct {
	target
	// known is the distribution that a study has for a parameter, if it has been
	// looked up before; nil looks every time.
	known knownDists
}

type knownDists func(id study.StudyID, name string) (study.Distribution, bool)

// openStudy finds a study that is not deleted.
func openStudy(snap *study.Snapshot, id int64) (*study.Study, error) {
	if id >= 0 {
		if st, err := snap.Study(study.StudyID(id)); err == nil && !st.Deleted() {
			return st, nil
		}
	}
	return nil, fmt.Errorf("study %d: %w", id, ErrNotFound)
}

// openTrial finds a trial whose study is not deleted.
func openTrial(snap *study.Snapshot, id int64) (*study.Trial, error) {
	if id >= 0 {
		if t, err := snap.Trial(study.TrialID(id)); err == nil {
			_, err = openStudy(snap, int64(t.Study))
			return t, err
		}
	}
	return nil, fmt.Errorf("trial %d: %w", id, ErrNotFound)
}

// openForChange finds a trial that Optuna may change.
func (c change) openForChange(id int64) (*study.Trial, error) {
	t, err := openTrial(c.Snapshot(), id)
	switch {
	case err != nil:
		return nil, err
	case t.State.Terminal():
		return nil, fmt.Errorf("trial number %d: %w: it is %v", t.Number, ErrFinished, t.State)
	case t.Managed:
		return nil, fmt.Errorf("trial number %d: %w: a worker of Foldlog's runs it", t.Number, ErrFinished)
	}
	return t, nil
}

// reread is the trial after the operations so far.
func (c change) reread(id study.TrialID) *study.Trial {
	t, _ := c.Snapshot().Trial(id) // it exists: trials are never taken away
	return t
}

func (c change) createStudy(name string, directions []study.Direction) (study.StudyID, error) {
	snap := c.Snapshot()
	switch _, taken := snap.StudyByName(name); {
	case taken:
		return 0, fmt.Errorf("study %.200q: %w", name, ErrDuplicate)
	case name == "" || len(directions) == 0:
		return 0, fmt.Errorf("%w: a study needs a name and a direction", ErrInvalid)
	}
	id := study.StudyID(snap.NumStudies())
	return id, c.Apply(&study.CreateStudy{Study: id, Config: study.Config{
		Name: name, Directions: directions, ResourceUnit: "Steps",
	}})
}

func (c change) deleteStudy(id int64) error {
	st, err := openStudy(c.Snapshot(), id)
	if err != nil {
		return err
	}
	return c.Apply(&study.SetStudyUserAttr{Study: st.ID, Key: study.DeletedAttr, Value: []byte("true")})
}

func (c change) setStudyAttr(id int64, a attr) error {
	st, err := openStudy(c.Snapshot(), id)
	if err != nil {
		return err
	}
	key, value, err := a.stored()
	if err != nil {
		return err
	}
	return c.Apply(&study.SetStudyUserAttr{Study: st.ID, Key: key, Value: value})
}

func (c change) setTrialAttr(id int64, a attr) error {
	t, err := c.openForChange(id)
	if err != nil {
		return err
	}
	return c.putAttr(t.ID, a)
}

func (c change) putAttr(id study.TrialID, a attr) error {
	key, value, err := a.stored()
	if err != nil {
		return err
	}
	return c.put(id, key, value)
}

// put sets an attribute of a trial; value is canonical.
func (c change) put(id study.TrialID, key string, value []byte) error {
	return c.Apply(&study.SetTrialUserAttr{Trial: id, Key: key, Value: value})
}

func (c change) setParam(id int64, name string, internal float64, distribution string) error {
	t, err := c.openForChange(id)
	if err != nil {
		return err
	}
	d, err := parseDist(distribution)
	if err != nil {
		return err
	}
	if was, ok := c.distOf(t.Study, name); ok {
		if err := compatible(was, d); err != nil {
			return fmt.Errorf("parameter %.80q: %w", name, err)
		}
	}
	return c.putParams(t.ID, []param{{name, internal, d}})
}

// distOf is the distribution that the first trial of a study with that parameter
// has for it.
func (c change) distOf(id study.StudyID, name string) (study.Distribution, bool) {
	if c.known != nil {
		if d, ok := c.known(id, name); ok {
			return d, true
		}
	}
	for t := range c.Snapshot().Trials(id, study.TrialFilter{}) {
		if p, ok := t.Param(name); ok {
			return p.Dist, true
		}
	}
	return nil, false
}

// param is one of Optuna's parameters.
type param struct {
	name     string
	internal float64
	dist     study.Distribution
}

func (c change) putParams(id study.TrialID, params []param) error {
	if len(params) == 0 {
		return nil
	}
	batch := make([]study.Param, len(params))
	for i, p := range params {
		v, err := toValue(p.dist, p.internal)
		if err != nil {
			return fmt.Errorf("parameter %.80q: %w", p.name, err)
		}
		batch[i] = study.Param{Name: p.name, Dist: p.dist, Value: v}
	}
	return c.Apply(&study.ParamsBatch{Trial: id, Params: batch})
}
