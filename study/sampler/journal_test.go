package sampler

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// onDisk is a study in a journal that is closed and read anew whenever rng says
// so, between any two transactions. What is on disk then is what a process
// leaves that is killed there: a transaction is whole or absent.
type onDisk struct {
	t    *testing.T
	path string
	st   *study.Journal
	id   study.StudyID
	rng  *rand.Rand // nil never closes
}

func newOnDisk(t *testing.T, rng *rand.Rand) *onDisk {
	t.Helper()
	d := &onDisk{t: t, path: filepath.Join(t.TempDir(), "s.atj"), rng: rng}
	var err error
	if d.st, err = study.CreateJournal(t.Context(), d.path, journal.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.st.Close() })
	seed := uint64(11)
	if d.id, _, err = study.OpenOrCreate(t.Context(), d.st, study.Config{
		Name: "s", Directions: make([]study.Direction, 1), Seed: &seed, Space: &study.Space{Params: mixed},
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *onDisk) update(fn func(tx *study.Tx) error) {
	d.t.Helper()
	if d.rng != nil && d.rng.IntN(6) == 0 {
		if err := d.st.Close(); err != nil {
			d.t.Fatal(err)
		}
		var err error
		if d.st, err = study.OpenJournal(context.Background(), d.path, journal.WriterOptions{}); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.st.Update(context.Background(), fn); err != nil {
		d.t.Fatal(err)
	}
}

// trial runs one trial; every seventh is lost.
func (d *onDisk) trial(s Sampler) []study.Param {
	d.t.Helper()
	var ref study.TrialRef
	d.update(func(tx *study.Tx) (err error) {
		if ref, err = tx.CreateTrial(d.id, nil); err != nil {
			return err
		}
		return tx.Transition(ref.ID, study.Waiting, study.Running)
	})
	var params []study.Param
	d.update(func(tx *study.Tx) error {
		st, err := tx.Snapshot().Study(d.id)
		if err != nil {
			return err
		}
		if params, err = Suggest(s, NewHistory(tx.Snapshot(), st, ref.Number), st.Config.Space, nil); err != nil {
			return err
		}
		return tx.ParamsBatch(ref.ID, params)
	})
	if ref.Number%7 == 6 {
		d.update(func(tx *study.Tx) error { return tx.Transition(ref.ID, study.Running, study.Failed) })
		return params
	}
	d.update(func(tx *study.Tx) error {
		if err := tx.SetValues(ref.ID, sphere(floats(&study.Trial{Params: params}))...); err != nil {
			return err
		}
		return tx.Transition(ref.ID, study.Running, study.Complete)
	})
	return params
}

// A worker that is killed anywhere and started again suggests what one would
// have that never stopped: there is no state to lose. What somebody else keeps
// in the journal as the sampler's state stays there, and changes nothing.
func TestAKilledStudyGoesOnAsIfNeverStopped(t *testing.T) {
	trials := 32
	if testing.Short() {
		trials = 15
	}
	for name, s := range all() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, broken := newOnDisk(t, nil), newOnDisk(t, rand.New(rand.NewPCG(1, 1)))
			blob := study.Blob{Kind: "other", Version: 3, Data: []byte(`{"mean":[0.5]}`)}
			broken.update(func(tx *study.Tx) error { return tx.PutState(study.SamplerScope(broken.id), blob) })
			for n := range trials {
				if diff := cmp.Diff(whole.trial(s), broken.trial(s), equalValues); diff != "" {
					t.Fatalf("trial %d:\n%s", n, diff)
				}
			}
			if kept := broken.st.Snapshot().State(study.SamplerScope(broken.id)); kept == nil || cmp.Diff(blob, kept.Blob) != "" {
				t.Errorf("the state of somebody else became %+v", kept)
			}
		})
	}
}
