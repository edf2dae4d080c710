//go:build unix

package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// choose stores a sampler or a pruner in the study.
func choose(t *testing.T, j *study.Journal, key, text string) {
	t.Helper()
	err := j.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudySystemAttr(0, key, []byte(`"`+text+`"`)) })
	if err != nil {
		t.Fatal(err)
	}
}

// A command that is pruned may catch the signal, report once more and end well:
// the trial is pruned all the same.
func TestAPrunedCommandMayFinishItsReports(t *testing.T) {
	path, j := newStudy(t)
	choose(t, j, pruner.Attribute, "threshold:upper=5")
	report, err := Work(t.Context(), nil, j, Config{Journal: path, Trials: 1, Retries: 3, Command: shell(
		`trap 'echo "{\"loss\": 7}"; exit 0' TERM; echo '{"loss": 9}'; sleep 60 & wait`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Report{Pruned: 1}, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	all := trials(t, j)
	if len(all) != 1 || all[0].State != study.Pruned {
		t.Fatalf("%d trials, the first is %v", len(all), all[0].State)
	}
	if diff := cmp.Diff([]study.Point{{Step: 0, Value: 9}, {Step: 1, Value: 7}}, all[0].Curve(0)); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

// A command that no pruner minds is left alone.
func TestATrialWithinBoundsIsNotPruned(t *testing.T) {
	path, j := newStudy(t)
	choose(t, j, pruner.Attribute, "threshold:upper=5")
	report, err := Work(t.Context(), nil, j, Config{Journal: path, Trials: 1, Command: shell(`echo '{"loss": 4}'`)}, nil)
	if diff := cmp.Diff(Report{Complete: 1}, report); err != nil || diff != "" {
		t.Errorf("error %v, report (-want +got):\n%s", err, diff)
	}
}

// Work that is stopped and taken up again draws what one that never stopped
// does.
func TestWorkTakenUpAgainGoesOnAsIfNeverStopped(t *testing.T) {
	run := func(budgets ...uint64) (params [][]study.Param) {
		path, j := newStudy(t)
		choose(t, j, sampler.Attribute, "tpe:startup=4")
		for _, n := range budgets {
			_, err := Work(t.Context(), nil, j, Config{Journal: path, Trials: n, Command: shell(
				`awk -v x="$1" 'BEGIN { printf "{\"loss\": %.17g}\n", x*x }'`)}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, trial := range trials(t, j) {
			params = append(params, trial.Params)
		}
		return params
	}
	equal := cmp.Comparer(func(a, b study.Value) bool { return a.Equal(b) })
	if diff := cmp.Diff(run(12), run(5, 9, 12), equal); diff != "" {
		t.Errorf("parameters:\n%s", diff)
	}
}

func TestAnUnknownSamplerOrPrunerIsRefused(t *testing.T) {
	for key, text := range map[string]string{sampler.Attribute: "magic", pruner.Attribute: "halving:reduction=0"} {
		_, j := newStudy(t)
		choose(t, j, key, text)
		if err := (Config{Command: shell("true"), Trials: 1}).Check(j.Snapshot()); err == nil {
			t.Errorf("%s %s is taken", key, text)
		}
	}
}
