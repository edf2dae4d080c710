//go:build unix

package runner

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

func TestATrialThatAsksForItIsOnHoldAndGoesOnWithWhatItHas(t *testing.T) {
	path, j := newStudy(t)
	c := kept(path, `cat "$FOLDLOG_STATE_DIR/state.json" 2>/dev/null && exit; echo "{\"step\":3,\"loss\":7}"; echo "{\"loss\":2}" > "$FOLDLOG_STATE_DIR/state.json"; exit 75`)
	report := mustWork(t, j, c)
	if diff := cmp.Diff(Report{OnHold: 1}, report); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	tr := trials(t, j)[0]
	if tr.State != study.Paused || tr.NumReports() != 1 || tr.Blob == nil || string(tr.Blob.Data) != `{"loss":2}` {
		t.Errorf("trial is %v with %d reports and state %v", tr.State, tr.NumReports(), tr.Blob)
	}
	if report := mustWork(t, j, c); report != (Report{}) {
		t.Errorf("report of a run with nothing but a trial on hold: %+v", report)
	}
	if err := j.Update(t.Context(), func(tx *study.Tx) error { return Resume(tx, tr.ID) }); err != nil {
		t.Fatal(err)
	}
	if report := mustWork(t, j, c); report.Complete != 1 {
		t.Errorf("report after it was resumed: %+v", report)
	}
	if tr := trials(t, j)[0]; tr.State != study.Complete || tr.Values[0] != 2 || tr.Epoch != 2 {
		t.Errorf("trial is %v with %v at epoch %d", tr.State, tr.Values, tr.Epoch)
	}
}

func TestATrialIsPutOnHoldWhileOthersGoOn(t *testing.T) {
	path, j := newStudy(t)
	c := kept(path, `test $FOLDLOG_TRIAL = 1 && while :; do sleep 0.01; done; echo "{\"loss\":1}"`)
	c.Trials, c.Jobs, c.Grace = 6, 2, MinGrace*4
	held := make(chan error, 1)
	report, err := Work(t.Context(), nil, j, c, func(e Event) {
		if e.Kind == Started && e.Number == 1 {
			go func() {
				held <- j.Update(t.Context(), func(tx *study.Tx) error { return Hold(tx, e.Trial) })
			}()
		}
	})
	if err := errors.Join(err, <-held); err != nil {
		t.Fatal(err)
	}
	if report.OnHold != 1 || report.Complete != 5 {
		t.Errorf("report %+v", report)
	}
	st, _ := j.Snapshot().Study(0)
	for _, tr := range trials(t, j) {
		if got, want := OnHold(st, tr), tr.Number == 1; got != want {
			t.Errorf("trial %d (%v) on hold: %v", tr.Number, tr.State, got)
		}
	}
}

// Whoever else writes the attribute cannot keep a study from going on.
func TestAListOfHoldsThatIsNoneHoldsNothing(t *testing.T) {
	path, j := newStudy(t)
	for _, text := range []string{`"0"`, `{"0":true}`, `[-1]`, `[0.5]`, `null`} {
		err := j.Update(t.Context(), func(tx *study.Tx) error { return tx.SetStudySystemAttr(0, holdAttr, []byte(text)) })
		if err != nil {
			t.Fatal(err)
		}
		c := kept(path, `echo "{\"loss\":1}"`)
		c.Trials = uint64(len(trials(t, j)) + 1)
		if report := mustWork(t, j, c); report.Complete != 1 {
			t.Errorf("%s: report %+v", text, report)
		}
	}
}
