package server

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

// A digest that followed a study says what one says that sees it for the first time.
func TestDigestsFollowAStudy(t *testing.T) {
	mem := study.NewMemory(study.MemoryOptions{})
	ctx := context.Background()
	var id study.StudyID
	update := func(f func(*study.Tx) error) *study.Snapshot {
		t.Helper()
		if err := mem.Update(ctx, f); err != nil {
			t.Fatal(err)
		}
		return mem.Snapshot()
	}
	id, _, err := study.OpenOrCreate(ctx, mem, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		t.Fatal(err)
	}
	var followed digests
	var older *study.Snapshot
	var trials []study.TrialID
	for i := range 12 {
		snap := update(func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			trials = append(trials, ref.ID)
			if err != nil || i%3 == 0 {
				return err
			}
			late := trials[len(trials)/2] // some end after others that were created later
			if one, err := tx.Snapshot().Trial(late); err != nil || one.State != study.Running {
				return err
			}
			return errors.Join(tx.SetValues(late, float64((i*7)%5)), tx.Transition(late, study.Running, study.Complete))
		})
		if older == nil {
			older = snap
		}
		compareDigests(t, &followed, snap, id)
	}
	compareDigests(t, &followed, older, id)
	compareDigests(t, &followed, mem.Snapshot(), id)
}

func compareDigests(t *testing.T, followed *digests, snap *study.Snapshot, id study.StudyID) {
	t.Helper()
	st, err := snap.Study(id)
	if err != nil {
		t.Fatal(err)
	}
	type said struct {
		Best uint64
		Last int64
	}
	say := func(d *digests) said {
		best, last := d.of(snap, st)
		if best == nil {
			return said{Best: 1 << 60, Last: last}
		}
		return said{best.Number, last}
	}
	if diff := cmp.Diff(say(&digests{}), say(followed)); diff != "" {
		t.Errorf("at %d (-first +followed):\n%s", snap.Seq(), diff)
	}
}
