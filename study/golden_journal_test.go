package study_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

const goldenData = "data-0000000000000000-00000000-0000000000000000"

// goldenStep is one transaction of the golden and when it happened.
type goldenStep struct {
	at int64
	do func(tx *study.Tx) error
}

func goldenSteps() []goldenStep {
	seed := uint64(167)
	lr := study.FloatDist{Low: 1e-5, High: 0.1, Log: true}
	opt := &study.CatDist{Version: 1, Choices: []study.Choice{study.StringChoice("adam"), study.StringChoice("sgd")}}
	create := func(tpl *study.Template) func(tx *study.Tx) error {
		return func(tx *study.Tx) error { _, err := tx.CreateTrial(0, tpl); return err }
	}
	move := func(t study.TrialID, from, to study.State) func(tx *study.Tx) error {
		return func(tx *study.Tx) error { return tx.Transition(t, from, to) }
	}
	report := func(t study.TrialID, step uint64, v ...float64) func(tx *study.Tx) error {
		return func(tx *study.Tx) error { return tx.Report(t, step, v...) }
	}
	values := func(t study.TrialID, v ...float64) func(tx *study.Tx) error {
		return func(tx *study.Tx) error { return tx.SetValues(t, v...) }
	}
	params := func(t study.TrialID, ps ...study.Param) func(tx *study.Tx) error {
		return func(tx *study.Tx) error { return tx.ParamsBatch(t, ps) }
	}
	return []goldenStep{
		{1000000, func(tx *study.Tx) error {
			_, err := tx.CreateStudy(study.Config{Name: "golden", Directions: []study.Direction{study.Minimize, study.Maximize},
				Seed: &seed, ResourceUnit: "Steps", MetricNames: []string{"loss", "reward"}})
			return err
		}},
		{1000000, func(tx *study.Tx) error { return tx.SetStudyUserAttr(0, "team", []byte(`"control"`)) }},
		{1000000, create(nil)},
		{1000000, move(0, study.Waiting, study.Running)},
		{1000000, params(0,
			study.Param{Name: "lr", Dist: lr, Value: study.F64(0.01)},
			study.Param{Name: "opt", Dist: opt, Value: study.Cat(0)},
			study.Param{Name: "layers", Dist: study.IntDist{Low: 1, High: 8, Step: 1}, Value: study.I64(4)},
			study.Param{Name: "use_bn", Dist: study.BoolDist{}, Value: study.Bool(true)})},
		{1000000, func(tx *study.Tx) error {
			return tx.SetTrialUserAttr(0, "dataset", []byte(`{"split":"train","fold":2}`))
		}},
		{1000050, func(tx *study.Tx) error { return tx.Heartbeat(0, 1000050) }},
		{1000050, report(0, 1, 0.9, 0.1)},
		{1000050, report(0, 2, 0.5, 0.4)},
		{1000050, values(0, 0.42, 0.58)},
		{1000050, move(0, study.Running, study.Complete)},
		{1001050, create(nil)},
		{1001050, move(1, study.Waiting, study.Running)},
		{1001050, params(1, study.Param{Name: "lr", Dist: lr, Value: study.F64(0.05)})},
		{1001050, report(1, 1, 1.2, 0.05)},
		{1001050, move(1, study.Running, study.Pruned)},
		{1002050, create(nil)},
		{1002050, move(2, study.Waiting, study.Running)},
		{1002050, func(tx *study.Tx) error { return tx.SetError(2, "objective panicked: NaN loss at step 3") }},
		{1002050, move(2, study.Running, study.Failed)},
		{1003050, create(&study.Template{Fixed: []study.FixedParam{{Name: "opt", Value: study.Cat(1)}, {Name: "lr", Value: study.F64(0.001)}}})},
		{1003050, func(tx *study.Tx) error {
			return tx.PutState(study.SamplerScope(0), study.Blob{Kind: "tpe", Version: 1, Data: []byte(`{"observations":3,"gamma":0.25}`)})
		}},
		{1004050, create(nil)},
		{1004050, move(4, study.Waiting, study.Running)},
		{1004050, report(4, 0, math.NaN(), math.Inf(1))},
		{1004050, values(4, math.NaN(), math.Inf(-1))},
		{1004050, move(4, study.Running, study.Complete)},
	}
}

// The same calls, clock, version and file name make the golden's files again,
// byte for byte.
func TestTheGoldenIsWrittenByteForByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.atj")
	at := int64(1000000)
	s, err := study.CreateJournal(context.Background(), path, journal.WriterOptions{
		Worker: new(uint64(0)), Program: "0.0.0",
		Clock:    func() time.Time { return time.UnixMilli(at) },
		DataFile: func(uint64, uint64) string { return goldenData },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range goldenSteps() {
		at = step.at
		if err := s.Update(context.Background(), step.do); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golden.atj", filepath.Join("golden.atj.d", goldenData)} {
		want, err := os.ReadFile(filepath.Join("testdata", name))
		got, err2 := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("%s differs:\n%s", name, got)
		}
	}
}

func TestTheGoldenJournalReplays(t *testing.T) {
	r, err := study.OpenJournalReader("testdata/golden.atj", journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	study.CheckGoldenStudy(t, r.Snapshot())
}

// A journal that holds what can never have happened is refused with the
// operation's sequence number and kind.
func TestReplayNamesTheOperationItRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	w, err := journal.Create(context.Background(), path, journal.WriterOptions{}, deaf{})
	if err != nil {
		t.Fatal(err)
	}
	err = w.Do(context.Background(), func(tx *journal.Tx) error {
		return errors.Join(
			tx.Append([]byte(`{"kind":"create-study","study":0,"config":{"name":"a","directions":[],"seed":0,"space":null,"resource_unit":null,"metric_names":null}}`)),
			tx.Append([]byte(`{"kind":"transition","trial":3,"from":"Waiting","to":"Running"}`)))
	})
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = study.OpenJournalReader(path, journal.ReaderOptions{})
	var refused *study.ReplayError
	if !errors.As(err, &refused) || refused.Seq != 2 || refused.Kind != "transition" || !errors.Is(err, study.ErrNotFound) {
		t.Errorf("reader: %v", err)
	}
	if _, err = study.OpenJournal(context.Background(), path, journal.WriterOptions{}); !errors.As(err, &refused) || refused.Seq != 2 {
		t.Errorf("writer: %v", err)
	}
}

// deaf is a machine that believes everything.
type deaf struct{}

func (deaf) Apply(*journal.Record) error { return nil }
func (deaf) Reset()                      {}
func (deaf) Settle(bool)                 {}
