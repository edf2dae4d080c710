package asktell

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/study"
)

// newStudy is a study of one parameter in memory.
func newStudy(t *testing.T) *study.Memory {
	t.Helper()
	m := study.NewMemory(study.MemoryOptions{Worker: 7})
	space := &study.Space{Params: []study.SpaceParam{{Name: "x", Dist: study.FloatDist{Low: 0, High: 1}}}}
	_, _, err := study.OpenOrCreate(t.Context(), m, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}, Space: space})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var managed = AskOptions{Lease: time.Minute}

func keyed(key string, o AskOptions) AskOptions { o.Key = key; return o }

func TestAskingAgainWithTheSameKeyIsTheSameTrial(t *testing.T) {
	for name, c := range map[string]AskOptions{"raw": {}, "managed": managed} {
		t.Run(name, func(t *testing.T) {
			m := newStudy(t)
			const key = "<job 7 & é>"
			first, err := Ask(t.Context(), m, 0, keyed(key, c))
			if err != nil {
				t.Fatal(err)
			}
			before := m.Snapshot().Seq()
			again, err := Ask(t.Context(), m, 0, keyed(key, c))
			if err != nil || again != first || m.Snapshot().Seq() != before {
				t.Errorf("trial %d, then %d (%v) and %d operations more", first, again, err, m.Snapshot().Seq()-before)
			}
			other, err := Ask(t.Context(), m, 0, keyed("another", c))
			if err != nil || other == first {
				t.Errorf("another key: trial %d, %v", other, err)
			}
			none, err := Ask(t.Context(), m, 0, c)
			if err != nil || none == first || none == other {
				t.Errorf("without a key: trial %d, %v", none, err)
			}
		})
	}
}

func TestATrialWhoseAskerDiedBeforeItsParametersGetsThem(t *testing.T) {
	for name, c := range map[string]AskOptions{"raw": {}, "managed": managed} {
		t.Run(name, func(t *testing.T) {
			m := newStudy(t)
			err := m.Update(t.Context(), func(tx *study.Tx) error {
				var id study.TrialID
				var err error
				if !c.managed() {
					id, err = start(tx, 0)
				} else {
					id, err = claim(tx, 0, c)
				}
				return errors.Join(err, remember(tx, id, "k"))
			})
			if err != nil {
				t.Fatal(err)
			}
			id, err := Ask(t.Context(), m, 0, keyed("k", c))
			if err != nil {
				t.Fatal(err)
			}
			trial, err := m.Snapshot().Trial(id)
			if err != nil || id != 0 || len(trial.Params) != 1 || m.Snapshot().NumTrials() != 1 {
				t.Errorf("trial %d of %d has %v: %v", id, m.Snapshot().NumTrials(), trial.Params, err)
			}
		})
	}
}

func TestManyWhoAskWithOneKeyGetOneTrial(t *testing.T) {
	m := newStudy(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			id, err := Ask(t.Context(), m, 0, AskOptions{Key: "k"})
			if err != nil || id != 0 {
				t.Errorf("trial %d: %v", id, err)
			}
		})
	}
	all.Wait()
	if n := m.Snapshot().NumTrials(); n != 1 {
		t.Errorf("%d trials", n)
	}
}

func TestAKeyOfATrialThatIsNotWhatIsAskedForIsRefused(t *testing.T) {
	m := newStudy(t)
	for _, key := range []string{"raw", "ended"} {
		if _, err := Ask(t.Context(), m, 0, AskOptions{Key: key}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Ask(t.Context(), m, 0, keyed("managed", managed)); err != nil {
		t.Fatal(err)
	}
	if err := m.Update(t.Context(), func(tx *study.Tx) error { return End(tx, 1, study.Outcome{State: study.Pruned}) }); err != nil {
		t.Fatal(err)
	}
	other := uint64(8)
	for _, c := range []struct {
		key     string
		claimed AskOptions
		want    KeyError
	}{
		{"raw", managed, KeyError{"raw", 0, study.Running}},
		{"ended", AskOptions{}, KeyError{"ended", 1, study.Pruned}},
		{"managed", AskOptions{}, KeyError{"managed", 2, study.Running}},
		{"managed", AskOptions{Lease: time.Minute, Worker: &other}, KeyError{"managed", 2, study.Running}},
	} {
		_, err := Ask(t.Context(), m, 0, keyed(c.key, c.claimed))
		var used *KeyError
		if !errors.As(err, &used) || !errors.Is(err, ErrKeyUsed) || *used != c.want || used.Error() == "" {
			t.Errorf("%s: %v", c.key, err)
		}
	}
	for _, key := range []string{"\xff", strings.Repeat("k", MaxKey+1)} {
		if _, err := Ask(t.Context(), m, 0, AskOptions{Key: key}); !errors.Is(err, study.ErrInvalid) {
			t.Errorf("%.10q: %v", key, err)
		}
	}
	if n := m.Snapshot().NumTrials(); n != 3 {
		t.Errorf("%d trials", n)
	}
}

func BenchmarkAskWithAKey(b *testing.B) {
	for _, trials := range []int{1_000, 50_000} {
		b.Run(fmt.Sprint(trials), func(b *testing.B) {
			m := study.NewMemory(study.MemoryOptions{Worker: 7})
			_, _, err := study.OpenOrCreate(b.Context(), m, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
			if err != nil {
				b.Fatal(err)
			}
			err = m.Update(b.Context(), func(tx *study.Tx) error {
				for i := range trials {
					id, err := start(tx, 0)
					if err := errors.Join(err, remember(tx, id, fmt.Sprint("key-", i)), End(tx, id, study.Outcome{State: study.Pruned})); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if askedFor(m.Snapshot(), 0, "none") != nil {
					b.Fatal("found")
				}
			}
		})
	}
}
