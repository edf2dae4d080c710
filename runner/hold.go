package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// PauseStatus is the exit status by which a command asks to be put on hold.
const PauseStatus = 75

// holdAttr is the study's attribute with the numbers of the trials on hold.
const holdAttr = "foldlog:on_hold"

// ErrNotOnHold is returned for a trial that is to go on and was not stopped from
// going on.
var ErrNotOnHold = errors.New("not on hold")

// holds are the numbers of the trials on hold. What somebody else has written
// there holds nothing.
func holds(st *study.Study) (numbers []uint64) {
	if a, ok := st.Attr(holdAttr); ok && json.Unmarshal(a.Value, &numbers) != nil {
		return nil
	}
	return numbers
}

// OnHold tells whether a trial that has not ended is on hold.
func OnHold(st *study.Study, t *study.Trial) bool {
	return !t.State.Terminal() && slices.Contains(holds(st), t.Number)
}

// Hold puts a trial on hold: the worker that runs it stops its command within
// seconds, as at its own end, and nobody takes the trial up again before
// [Resume]. A [*study.StateError] says that the trial neither runs nor pauses;
// the error wraps [study.ErrManaged] if it is a raw one.
func Hold(tx *study.Tx, id study.TrialID) error {
	st, t, err := heldTrial(tx, id)
	if err != nil {
		return err
	}
	if t.State != study.Running && !isGivenBack(t) {
		return &study.StateError{Trial: id, State: t.State, What: "put on hold"}
	}
	numbers := slices.DeleteFunc(holds(st), func(n uint64) bool {
		other, err := tx.Snapshot().TrialByNumber(st.ID, n)
		return err != nil || other.State.Terminal() || n == t.Number
	})
	return setHolds(tx, st, append(numbers, t.Number))
}

// Resume lets a trial go on that is on hold: the next worker takes it up. The
// error wraps [ErrNotOnHold] if it is not on hold.
func Resume(tx *study.Tx, id study.TrialID) error {
	st, t, err := heldTrial(tx, id)
	if err != nil {
		return err
	}
	if !OnHold(st, t) {
		return fmt.Errorf("trial number %d: %w", t.Number, ErrNotOnHold)
	}
	return setHolds(tx, st, slices.DeleteFunc(holds(st), func(n uint64) bool { return n == t.Number }))
}

func heldTrial(tx *study.Tx, id study.TrialID) (*study.Study, *study.Trial, error) {
	t, err := tx.Snapshot().Trial(id)
	if err != nil {
		return nil, nil, err
	}
	if !t.Managed {
		return nil, nil, fmt.Errorf("trial number %d: %w: it is whoever asked for it that runs it", t.Number, study.ErrManaged)
	}
	st, err := tx.Snapshot().Study(t.Study)
	return st, t, err
}

func setHolds(tx *study.Tx, st *study.Study, numbers []uint64) error {
	slices.Sort(numbers)
	b, err := json.Marshal(numbers)
	if err != nil {
		return err
	}
	return tx.SetStudySystemAttr(st.ID, holdAttr, b)
}

// stopHeld stops the commands of our trials that were put on hold.
func (w *worker) stopHeld() {
	st, err := w.st.Snapshot().Study(w.Study)
	if err != nil {
		return
	}
	numbers := holds(st)
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.attempts {
		if slices.Contains(numbers, a.t.Number) {
			a.kill(errOnHold)
		}
	}
}

// enter makes an attempt known until the returned function is called.
func (w *worker) enter(a *attempt) (leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.attempts == nil {
		w.attempts = make(map[*attempt]bool)
	}
	w.attempts[a] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.attempts, a)
	}
}

// runs tells whether a trial is one of ours, until its end is written.
func (w *worker) runs(id study.TrialID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.attempts {
		if a.t.ID == id {
			return true
		}
	}
	return false
}

// asksToPause tells whether a command has ended to be put on hold.
func asksToPause(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == PauseStatus
}
