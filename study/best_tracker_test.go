package study

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBestTrackerFollowsBest holds the tracker against Snapshot.Best while trials
// come and end in any order.
func TestBestTrackerFollowsBest(t *testing.T) {
	for _, dir := range []Direction{Minimize, Maximize} {
		st := NewMemory(MemoryOptions{})
		id, _, err := OpenOrCreate(t.Context(), st, Config{Name: "s", Directions: []Direction{dir}})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(dir)))
		var tracker BestTracker
		var open []TrialID
		for range 400 {
			err := st.Update(t.Context(), func(tx *Tx) error {
				if len(open) == 0 || rng.IntN(2) == 0 {
					ref, err := tx.CreateTrial(id, nil)
					if err != nil {
						return err
					}
					open = append(open, ref.ID)
					return tx.Transition(ref.ID, Waiting, Running)
				}
				i := rng.IntN(len(open))
				trial := open[i]
				open = append(open[:i], open[i+1:]...)
				value := []float64{float64(rng.IntN(20)), math.NaN(), math.Inf(1), math.Inf(-1), 0.5}[min(rng.IntN(30), 4)]
				if err := tx.SetValues(trial, value); err != nil {
					return err
				}
				return tx.Transition(trial, Running, []State{Complete, Complete, Pruned, Failed}[rng.IntN(4)])
			})
			if err != nil {
				t.Fatal(err)
			}
			if rng.IntN(3) == 0 {
				continue // not every state is seen
			}
			want, err := st.Snapshot().Best(id)
			if err != nil {
				t.Fatal(err)
			}
			got := tracker.Best(st.Snapshot(), id)
			if (got == nil) != (len(want) == 0) || got != nil && got.ID != want[0].ID {
				t.Fatalf("the best is %+v, want %+v", got, want)
			}
		}
	}
}

func BenchmarkBestOfManyTrials(b *testing.B) {
	st := NewMemory(MemoryOptions{})
	id, _, err := OpenOrCreate(b.Context(), st, Config{Name: "s", Directions: []Direction{Minimize}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		err := st.Update(b.Context(), func(tx *Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			if err == nil {
				err = tx.SetValues(ref.ID, float64(i^1234))
			}
			if err == nil {
				err = tx.Transition(ref.ID, Waiting, Running)
			}
			if err == nil {
				err = tx.Transition(ref.ID, Running, Complete)
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	snap := st.Snapshot()
	b.Run("asked", func(b *testing.B) {
		for b.Loop() {
			if _, err := snap.Best(id); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tracked", func(b *testing.B) {
		var tracker BestTracker
		for b.Loop() {
			tracker.Best(snap, id)
		}
	})
}
