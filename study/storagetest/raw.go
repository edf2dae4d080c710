package storagetest

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

func testRaw(t *testing.T, open Factory) {
	t.Run("a trial goes through its life", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		var ref study.TrialRef
		update(t, s, func(tx *study.Tx) (err error) {
			ref, err = tx.CreateTrial(id, nil)
			return errors.Join(err,
				tx.Transition(ref.ID, study.Waiting, study.Running),
				tx.ParamsBatch(ref.ID, params()),
				tx.SetTrialUserAttr(ref.ID, "note", []byte(`{ "b": 1, "a": [1.50] }`)),
				tx.Heartbeat(ref.ID, 1234),
				tx.Report(ref.ID, 1, 0.9),
				tx.Report(ref.ID, 2, 0.5),
				tx.Report(ref.ID, 1, 0.8),
				tx.SetValues(ref.ID, 0.42),
				tx.Transition(ref.ID, study.Running, study.Complete))
		})
		tr := trial(t, s, ref.ID)
		if tr.State != study.Complete || tr.Managed || tr.Number != 0 || tr.HeartbeatMillis != 1234 || tr.Attempt != 1 {
			t.Errorf("trial %+v", tr)
		}
		if diff := cmp.Diff([]study.Point{{Step: 1, Value: 0.8}, {Step: 2, Value: 0.5}}, tr.Curve(0)); diff != "" {
			t.Errorf("curve: (-want +got)\n%s", diff)
		}
		if a, _ := tr.Attr("note"); string(a.Value) != `{"a":[1.5],"b":1}` {
			t.Errorf("attribute %s", a.Value)
		}
		if p, ok := tr.Param("opt"); !ok || string(p.Value.AppendJSON(nil, p.Dist)) != `"sgd"` {
			t.Errorf("parameter %+v", p)
		}
	})
	t.Run("a deleted study sets its name free and stays", func(t *testing.T) {
		s := open(t)
		first := newStudy(t, s, config("a"))
		mark := func(id study.StudyID, v string) {
			update(t, s, func(tx *study.Tx) error { return tx.SetStudySystemAttr(id, study.DeletedAttr, []byte(v)) })
		}
		byName := func() any {
			if st, ok := s.Snapshot().StudyByName("a"); ok {
				return st.ID
			}
			return nil
		}
		mark(first, "true")
		if st, err := s.Snapshot().Study(first); err != nil || !st.Deleted() || byName() != nil {
			t.Errorf("after deletion: %+v, %v, by name %v", st, err, byName())
		}
		second := newStudy(t, s, config("a"))
		if second == first || byName() != any(second) {
			t.Errorf("the name means %v, the second study is %d", byName(), second)
		}
		mark(first, "false")
		if byName() != any(first) {
			t.Errorf("once it is back the name means %v", byName())
		}
		mark(first, "true")
		if byName() != any(second) {
			t.Errorf("deleted again, the name means %v", byName())
		}
	})
	t.Run("what the fold accepts can be applied", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		p := study.Param{Name: "x", Dist: study.IntDist{Low: 0, High: 9, Step: 1}}
		update(t, s, func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			err = errors.Join(err, tx.Transition(ref.ID, study.Waiting, study.Running))
			for i := range int64(2) {
				p.Value = study.I64(i)
				err = errors.Join(err, tx.Apply(&study.ParamsBatch{Trial: ref.ID, Params: []study.Param{p}}))
			}
			if refused := tx.Apply(&study.Transition{Trial: ref.ID, From: study.Waiting, To: study.Running}); !errors.Is(refused, study.ErrConflict) {
				t.Errorf("a move from another state: %v", refused)
			}
			return errors.Join(err, tx.Apply(&study.Transition{Trial: ref.ID, From: study.Running, To: study.Complete}))
		})
		tr := trial(t, s, 0)
		if got, _ := tr.Param("x"); tr.State != study.Complete || tr.Values != nil || len(tr.Params) != 1 || got.Value.I64() != 1 {
			t.Errorf("trial %+v", tr)
		}
	})
	t.Run("study attributes and states replace", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		for _, v := range []string{"1", "2"} {
			update(t, s, func(tx *study.Tx) error {
				blob := study.Blob{Kind: "tpe", Version: 1, Data: []byte(v)}
				return errors.Join(tx.SetStudyUserAttr(id, "k", []byte(v)), tx.SetStudySystemAttr(id, "foldlog:x", []byte(v)),
					tx.PutState(study.SamplerScope(id), blob), tx.PutState(study.SchedulerScope(id), blob))
			})
		}
		snap := s.Snapshot()
		st, err := snap.Study(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"k", "foldlog:x"} {
			if a, _ := st.Attr(key); string(a.Value) != "2" {
				t.Errorf("%s is %s", key, a.Value)
			}
		}
		for _, scope := range []study.Scope{study.SamplerScope(id), study.SchedulerScope(id)} {
			if b := snap.State(scope); b == nil || string(b.Data) != "2" {
				t.Errorf("state of %+v is %v", scope, b)
			}
		}
	})
	// A13
	t.Run("every float comes back as it was", func(t *testing.T) {
		s := open(t)
		c := config("a")
		c.Directions = []study.Direction{study.Minimize, study.Maximize}
		id := newStudy(t, s, c)
		for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 5e-324, 1.797e308, 0.1, 1e16} {
			var ref study.TrialRef
			update(t, s, func(tx *study.Tx) (err error) {
				ref, err = tx.CreateTrial(id, nil)
				return errors.Join(err, tx.Transition(ref.ID, study.Waiting, study.Running),
					tx.ParamsBatch(ref.ID, []study.Param{{Name: "x", Dist: lr, Value: study.F64(f)}}),
					tx.Report(ref.ID, math.MaxUint64, f, 1), tx.SetValues(ref.ID, f, -f), tx.Transition(ref.ID, study.Running, study.Complete))
			})
			tr := trial(t, s, ref.ID)
			step, values, _ := tr.LastReport()
			p, _ := tr.Param("x")
			for _, got := range []float64{tr.Values[0], values[0], p.Value.F64()} {
				if math.Float64bits(got) != math.Float64bits(f) {
					t.Errorf("%g came back as %g", f, got)
				}
			}
			if step != math.MaxUint64 || math.Float64bits(tr.Values[1]) != math.Float64bits(-f) && f == f {
				t.Errorf("step %d, values %v", step, tr.Values)
			}
		}
	})
	t.Run("a retry of a raw trial has a lineage", func(t *testing.T) {
		s := open(t)
		id := newStudy(t, s, config("a"))
		var last study.TrialID
		update(t, s, func(tx *study.Tx) error {
			ref, err := tx.CreateTrial(id, nil)
			for range 2 {
				err = errors.Join(err, tx.Transition(ref.ID, study.Waiting, study.Failed))
				old, err2 := tx.Snapshot().Trial(ref.ID)
				if err := errors.Join(err, err2); err != nil {
					return err
				}
				ref, err = tx.CreateTrial(id, study.Repeat(old))
			}
			last = ref.ID
			return err
		})
		chain, err := s.Snapshot().Lineage(last)
		if err != nil || len(chain) != 3 || chain[0].Attempt != 3 || chain[2].ID != 0 {
			t.Errorf("chain %v, %v", chain, err)
		}
	})
}

func testRefusals(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	var waiting, done study.TrialRef
	fence := claimed(t, s, id, 7)
	update(t, s, func(tx *study.Tx) (err error) {
		waiting, err = tx.CreateTrial(id, nil)
		if err == nil {
			done, err = tx.CreateTrial(id, nil)
		}
		return errors.Join(err, tx.Transition(done.ID, study.Waiting, study.Running), tx.SetValues(done.ID, 1),
			tx.Transition(done.ID, study.Running, study.Complete))
	})
	m := fence.Trial
	huge := []byte(`"` + strings.Repeat("x", 17<<20) + `"`)
	cases := []struct {
		name string
		want error
		do   func(tx *study.Tx) error
	}{
		{"a second study of the name", study.ErrExists, func(tx *study.Tx) error { _, err := tx.CreateStudy(config("a")); return err }},
		{"a study without a name", study.ErrInvalid, func(tx *study.Tx) error { _, err := tx.CreateStudy(config("")); return err }},
		{"a study without a direction", study.ErrInvalid, func(tx *study.Tx) error { _, err := tx.CreateStudy(study.Config{Name: "x"}); return err }},
		{"a name that is not UTF-8", serde.ErrUTF8, func(tx *study.Tx) error { _, err := tx.CreateStudy(config("\xff")); return err }},
		{"a trial of no study", study.ErrNotFound, func(tx *study.Tx) error { _, err := tx.CreateTrial(9, nil); return err }},
		{"a parent that does not exist", study.ErrNotFound, func(tx *study.Tx) error {
			parent := study.TrialID(99)
			_, err := tx.CreateTrial(id, &study.Template{Parent: &parent})
			return err
		}},
		{"no trial", study.ErrNotFound, func(tx *study.Tx) error { return tx.Report(99, 1, 1) }},
		{"a move from another state", study.ErrConflict, func(tx *study.Tx) error { return tx.Transition(waiting.ID, study.Running, study.Failed) }},
		{"a forbidden move", study.ErrBadState, func(tx *study.Tx) error { return tx.Transition(waiting.ID, study.Waiting, study.Complete) }},
		{"a move out of the end", study.ErrBadState, func(tx *study.Tx) error { return tx.Transition(done.ID, study.Complete, study.Running) }},
		{"completion without values", study.ErrBadState, func(tx *study.Tx) error {
			return errors.Join(tx.Transition(waiting.ID, study.Waiting, study.Running), tx.Transition(waiting.ID, study.Running, study.Complete))
		}},
		{"a wrong number of values", study.ErrInvalid, func(tx *study.Tx) error { return tx.SetValues(waiting.ID, 1, 2) }},
		{"a report after the end", study.ErrBadState, func(tx *study.Tx) error { return tx.Report(done.ID, 1, 1) }},
		{"an empty report", study.ErrInvalid, func(tx *study.Tx) error { return tx.Report(waiting.ID, 1) }},
		{"a value of another type", study.ErrInvalid, func(tx *study.Tx) error {
			return tx.ParamsBatch(waiting.ID, []study.Param{{Name: "x", Dist: lr, Value: study.I64(1)}})
		}},
		{"a choice that does not exist", study.ErrInvalid, func(tx *study.Tx) error {
			return tx.ParamsBatch(waiting.ID, []study.Param{{Name: "x", Dist: opt, Value: study.Cat(2)}})
		}},
		{"a parameter without distribution", study.ErrInvalid, func(tx *study.Tx) error {
			return tx.ParamsBatch(waiting.ID, []study.Param{{Name: "x", Value: study.F64(2)}})
		}},
		{"a doubled parameter", study.ErrInvalid, func(tx *study.Tx) error { return tx.ParamsBatch(waiting.ID, append(params(), params()...)) }},
		{"a parameter that is set", study.ErrExists, func(tx *study.Tx) error {
			return errors.Join(tx.ParamsBatch(waiting.ID, params()), tx.ParamsBatch(waiting.ID, params()))
		}},
		{"a key of atune", study.ErrReserved, func(tx *study.Tx) error { return tx.SetStudyUserAttr(id, "atune:x", []byte("1")) }},
		{"a key of foldlog", study.ErrReserved, func(tx *study.Tx) error { return tx.SetTrialUserAttr(waiting.ID, "foldlog:x", []byte("1")) }},
		{"a system key of a user", study.ErrInvalid, func(tx *study.Tx) error { return tx.SetTrialSystemAttr(waiting.ID, "x", []byte("1")) }},
		{"an attribute with NaN", serde.ErrNonFinite, func(tx *study.Tx) error { return tx.SetTrialUserAttr(waiting.ID, "x", []byte("[NaN]")) }},
		{"an attribute with a doubled key", serde.ErrDuplicateKey, func(tx *study.Tx) error { return tx.SetTrialUserAttr(waiting.ID, "x", []byte(`{"a":1,"a":1}`)) }},
		{"an attribute that is no JSON", serde.ErrSyntax, func(tx *study.Tx) error { return tx.SetStudyUserAttr(id, "x", []byte("{")) }},
		{"an attribute over the cap", study.ErrTooLarge, func(tx *study.Tx) error { return tx.SetStudyUserAttr(id, "x", huge) }},
		{"state that is no JSON", serde.ErrSyntax, func(tx *study.Tx) error { return tx.PutState(study.SamplerScope(id), study.Blob{Kind: "x"}) }},
		{"raw transition of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.Transition(m, study.Running, study.Failed) }},
		{"raw parameters of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.ParamsBatch(m, params()) }},
		{"raw report of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.Report(m, 1, 1) }},
		{"raw values of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.SetValues(m, 1) }},
		{"raw error of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.SetError(m, "x") }},
		{"raw heartbeat of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.Heartbeat(m, 1) }},
		{"raw attribute of a managed trial", study.ErrManaged, func(tx *study.Tx) error { return tx.SetTrialUserAttr(m, "x", []byte("1")) }},
		{"raw state of a managed trial", study.ErrManaged, func(tx *study.Tx) error {
			return tx.PutState(study.TrialScope(m), study.Blob{Kind: "x", Data: []byte("1")})
		}},
		{"claim of a raw trial", study.ErrManaged, func(tx *study.Tx) error { _, err := tx.LifecycleClaim(waiting.ID, study.Claim{}); return err }},
		{"abandoning a running trial", study.ErrConflict, func(tx *study.Tx) error { return tx.LifecycleAbandon(m, "x") }},
		{"claiming a running trial", study.ErrConflict, func(tx *study.Tx) error { _, err := tx.LifecycleClaim(m, study.Claim{}); return err }},
		{"claiming from running", study.ErrInvalid, func(tx *study.Tx) error {
			_, err := tx.LifecycleClaim(m, study.Claim{From: study.Running})
			return err
		}},
		{"an outbox entry that is not there", study.ErrNotFound, func(tx *study.Tx) error {
			return tx.OutboxAdvance(study.EntryKey{Trial: m, Epoch: 1}, study.PhaseSampler, study.Advance{})
		}},
		{"final state of a running trial", study.ErrBadState, func(tx *study.Tx) error {
			return tx.LifecycleFinalizedState(m, study.Blob{Kind: "x", Data: []byte("1")})
		}},
		{"a mutation of unknown shape", study.ErrInvalid, func(tx *study.Tx) error { return tx.LifecycleFenced(fence, &study.MutateOther{Raw: []byte("1")}) }},
		{"an outcome that is no end", study.ErrInvalid, func(tx *study.Tx) error {
			return tx.LifecycleTerminal(fence, study.Outcome{State: study.Paused}, nil)
		}},
	}
	seq := s.Snapshot().Seq()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if err := s.Update(context.Background(), c.do); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if now := s.Snapshot().Seq(); now != seq {
				t.Errorf("%d operations were published", now-seq)
			}
		})
	}
}
