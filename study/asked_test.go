package study

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// The trial of a key is the one that looking at every trial finds, in every snapshot,
// also where keys are taken again or changed.
func TestAskedForIsTheFirstTrialOfTheKey(t *testing.T) {
	values := []string{`""`, `"a"`, `"ab"`, `"\u0000"`, `7`, `{"a":1}`}
	rapid.Check(t, func(t *rapid.T) {
		m := NewMemory(MemoryOptions{})
		var seen []*Snapshot
		err := m.Update(t.Context(), func(tx *Tx) error {
			for i := range 2 {
				if _, err := tx.CreateStudy(Config{Name: fmt.Sprint(i), Directions: []Direction{Minimize}}); err != nil {
					return err
				}
			}
			for range rapid.IntRange(1, 12).Draw(t, "trials") {
				if _, err := tx.CreateTrial(StudyID(rapid.IntRange(0, 1).Draw(t, "study")), nil); err != nil {
					return err
				}
			}
			n := tx.Snapshot().NumTrials()
			for range rapid.IntRange(0, 30).Draw(t, "keys") {
				id := TrialID(rapid.IntRange(0, n-1).Draw(t, "trial"))
				if err := tx.SetTrialSystemAttr(id, AskKeyAttr, []byte(rapid.SampledFrom(values).Draw(t, "value"))); err != nil {
					return err
				}
				if rapid.Bool().Draw(t, "look") {
					seen = append(seen, tx.Snapshot())
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, snap := range append(seen, m.Snapshot()) {
			for study := range StudyID(3) {
				for _, value := range append(values, `"none"`, ``) {
					if got, want := snap.AskedFor(study, []byte(value)), searchAsked(snap, study, value); got != want {
						t.Fatalf("study %d, key %s: %v, not %v", study, value, got, want)
					}
				}
			}
		}
	})
}

func searchAsked(snap *Snapshot, study StudyID, value string) *Trial {
	for t := range snap.Trials(study, TrialFilter{}) {
		if a, ok := t.Attr(AskKeyAttr); ok && string(a.Value) == value {
			return t
		}
	}
	return nil
}
