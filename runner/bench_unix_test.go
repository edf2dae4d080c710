//go:build unix

package runner

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// BenchmarkWorkersOnALongStudy runs b.N short trials by four workers, each with its
// own handle of the journal, on a study of many finished trials: how long a
// suggestion takes must not be how long the others wait.
func BenchmarkWorkersOnALongStudy(b *testing.B) {
	for _, finished := range []int{100, 10_000} {
		for _, name := range []string{"random", "tpe"} {
			b.Run(fmt.Sprintf("%s/%d", name, finished), func(b *testing.B) { benchWorkers(b, name, finished) })
		}
	}
}

func benchWorkers(b *testing.B, name string, finished int) {
	path := filepath.Join(b.TempDir(), "s.atj")
	j, err := study.CreateJournal(b.Context(), path, journal.WriterOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer j.Close()
	c := study.Config{Name: "s", Directions: []study.Direction{study.Minimize}, MetricNames: []string{"loss"}, Space: new(study.Space)}
	for i := range 10 {
		c.Space.Params = append(c.Space.Params, study.SpaceParam{Name: fmt.Sprint("x", i), Dist: study.FloatDist{Low: 0, High: 1}})
	}
	id, _, err := study.OpenOrCreate(b.Context(), j, c)
	if err != nil {
		b.Fatal(err)
	}
	err = j.Update(b.Context(), func(tx *study.Tx) error {
		if err := tx.SetStudySystemAttr(id, "foldlog:sampler", []byte(`"`+name+`"`)); err != nil {
			return err
		}
		for n := range finished {
			if err := finishedTrial(tx, id, c.Space, n); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	config := Config{Study: id, Command: []string{"echo", `{{"loss": {x0}}`}, Trials: uint64(finished + b.N), Journal: path}
	b.ResetTimer()
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			st, err := study.OpenJournal(b.Context(), path, journal.WriterOptions{})
			if err != nil {
				b.Error(err)
				return
			}
			defer st.Close()
			if _, err := Work(b.Context(), nil, st, config, nil); err != nil {
				b.Error(err)
			}
		})
	}
	workers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "trials/s")
}

func finishedTrial(tx *study.Tx, id study.StudyID, space *study.Space, n int) error {
	ref, err := tx.LifecycleReserve(id, nil, 0)
	if err != nil {
		return err
	}
	var params []study.Param
	for i, p := range space.Params {
		params = append(params, study.Param{Name: p.Name, Dist: p.Dist, Value: study.F64(float64((n*7919+i*104729)%10007) / 10007)})
	}
	fence, err := tx.LifecycleClaim(ref.ID, study.Claim{From: study.Waiting, HeartbeatMillis: 1, Params: params})
	if err != nil {
		return err
	}
	return tx.LifecycleTerminal(fence, study.Completed(float64(n%997)), nil)
}
