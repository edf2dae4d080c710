package asktell

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

// Ask starts the first raw trial that waits or a new one, or claims a managed one, in
// two transactions: its parameters are suggested between them, which may take long and
// so keeps nobody from the journal. If they cannot be suggested the trial fails, and
// that is the error.
//
// Asking again with the same key returns that trial, and suggests what it lacks. The
// error is a [*KeyError] if it does not run any more or is of the other kind. Without a
// key a trial whose answer is lost is left running.
func Ask(ctx context.Context, st study.Storage, id study.StudyID, o AskOptions) (study.TrialID, error) {
	if err := errors.Join(checkKey(o.Key), st.Refresh(ctx)); err != nil {
		return 0, err
	}
	s, err := methodOf(st.Snapshot(), id)
	if err != nil {
		return 0, err
	}
	var trial study.TrialID
	err = st.Update(ctx, func(tx *study.Tx) (err error) {
		if t := askedFor(tx.Snapshot(), id, o.Key); t != nil {
			trial = t.ID
			return again(t, o)
		}
		if o.managed() {
			trial, err = claim(tx, id, o)
		} else {
			trial, err = start(tx, id)
		}
		if err != nil || o.Key == "" {
			return err
		}
		return remember(tx, trial, o.Key)
	})
	if err != nil {
		return 0, err
	}
	return trial, give(ctx, st, s, trial)
}

// methodOf is the study's sampler, if it can work on the study.
func methodOf(snap *study.Snapshot, id study.StudyID) (sampler.Sampler, error) {
	st, err := snap.Study(id)
	if err != nil {
		return nil, err
	}
	s, err := sampler.Of(st)
	if err != nil {
		return nil, err
	}
	return s, sampler.Check(s, st.Config)
}

// give suggests what a trial that has been started does not have yet.
func give(ctx context.Context, st study.Storage, s sampler.Sampler, id study.TrialID) error {
	snap := st.Snapshot()
	t, err := snap.Trial(id)
	if err != nil {
		return err
	}
	params, suggestErr := suggest(snap, s, t)
	if suggestErr == nil && len(params) == 0 {
		return nil
	}
	err = st.Update(ctx, func(tx *study.Tx) error {
		now, err := tx.Snapshot().Trial(id)
		switch {
		case err != nil:
			return err
		case suggestErr == nil && len(now.Params) > 0:
			return nil // by who asked with the same key
		case t.Managed && suggestErr == nil:
			return tx.LifecycleFenced(t.Fence(), &study.MutateParams{Params: params})
		case t.Managed:
			return tx.LifecycleTerminal(t.Fence(), study.FailedWith(suggestErr.Error()), nil)
		case suggestErr == nil:
			return tx.ParamsBatch(id, params)
		}
		return errors.Join(tx.SetError(id, suggestErr.Error()), tx.Transition(id, study.Running, study.Failed))
	})
	return errors.Join(suggestErr, err)
}

// suggest draws what a trial does not have yet.
func suggest(snap *study.Snapshot, s sampler.Sampler, t *study.Trial) ([]study.Param, error) {
	st, err := snap.Study(t.Study)
	if err != nil || len(t.Params) > 0 {
		return nil, err
	}
	var fixed []study.FixedParam
	if t.Template != nil {
		fixed = t.Template.Fixed
	}
	params, err := sampler.Suggest(s, sampler.NewHistory(snap, st, t.Number), st.Config.Space, fixed)
	if err != nil {
		return nil, fmt.Errorf("draw parameters of trial %d: %w", t.Number, err)
	}
	return params, nil
}
