package study

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// randomOp makes an operation that is plausible in the present state: mostly
// valid, sometimes not.
func randomOp(t *rapid.T, s *Snapshot) Op {
	u := func(name string, n int) uint64 { return uint64(rapid.IntRange(0, max(n, 0)).Draw(t, name)) }
	trial := TrialID(u("trial", s.NumTrials()-1))
	if rapid.IntRange(0, 3).Draw(t, "recent") > 0 && s.NumTrials() > 0 {
		trial = TrialID(s.NumTrials()-1) - TrialID(u("back", min(2, s.NumTrials()-1)))
	}
	tr, err := s.Trial(trial)
	if err != nil {
		tr = &Trial{}
	}
	values := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1, -2.5, math.NaN(), math.Inf(1)}), 1, 1).Draw(t, "values")
	blob := Blob{Kind: "k", Version: u("version", 3), Data: []byte("[1]")}
	key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
	study := StudyID(u("study", s.NumStudies()-1))
	number := uint64(0)
	if st, err := s.Study(study); err == nil {
		number = uint64(st.NumTrials())
	}
	next := TrialID(s.NumTrials()) + TrialID(u("skip", 20)/20)
	worker := tr.Owner + u("stranger", 10)/10
	var template *Template
	if u("template", 3) == 0 {
		template = &Template{Fixed: []FixedParam{{key, I64(3)}}, Parent: &trial}
	}
	state := State(u("state", int(numStates)-1))
	switch u("kind", 27) {
	case 0:
		return &CreateStudy{Study: StudyID(s.NumStudies()), Config: Config{Name: key, Directions: []Direction{Maximize}}}
	case 1, 2:
		return &CreateTrial{Study: study, Trial: next, Number: number, Template: template}
	case 3, 4, 5:
		return &Transition{Trial: trial, From: tr.State, To: state}
	case 6:
		return &ParamsBatch{Trial: trial, Params: []Param{{Name: key, Dist: BoolDist{}, Value: Bool(true)}}}
	case 7, 8:
		return &Report{Trial: trial, Step: u("step", 3), Values: values}
	case 9:
		return &SetValues{Trial: trial, Values: values}
	case 10:
		return &SetError{Trial: trial, Message: key}
	case 11:
		return &Heartbeat{Trial: trial, AtMillis: u("at", 100)}
	case 12:
		return &SetStudyUserAttr{Study: study, Key: key, Value: []byte("1")}
	case 13:
		return &SetTrialUserAttr{Trial: trial, Key: key, Value: []byte("2")}
	case 14:
		scopes := []Scope{SamplerScope(study), SchedulerScope(study), TrialScope(trial), {Kind: ScopeOther, Raw: `"x"`}}
		return &PutState{Scope: scopes[u("scope", 3)], Blob: blob}
	case 15, 16:
		return &LifecycleReserve{Study: study, Trial: next, Number: number, Template: template}
	case 17:
		return &LifecycleAbandon{Trial: trial, Reason: key}
	case 18, 19:
		return &LifecycleClaim{Trial: trial, From: tr.State, Worker: u("worker", 3), Epoch: tr.Epoch + 1, HeartbeatSeq: 1, State: &blob,
			Params: []Param{{Name: key, Dist: BoolDist{}, Value: Bool(false)}}}
	case 20:
		return &LifecycleRenew{Trial: trial, Worker: worker, Epoch: tr.Epoch, HeartbeatSeq: tr.HeartbeatSeq + 1, HeartbeatMillis: u("beat", 100)}
	case 21:
		return &LifecycleFailStale{Trial: trial, ObservedState: tr.State, Owner: worker, Epoch: tr.Epoch, HeartbeatMillis: tr.HeartbeatMillis,
			HeartbeatSeq: tr.HeartbeatSeq, NowMillis: tr.HeartbeatMillis + u("late", 5), GraceMillis: 2, Intent: &Intent{Retry: &Attempt{Number: 2, Max: 3}}}
	case 22:
		muts := []Mutation{&MutateReport{Step: 1, Values: values}, &MutatePause{}, &MutateUserAttr{Key: key, Value: []byte("3")},
			&MutateState{Blob: blob}, &MutateError{Message: key}, &MutateOther{Raw: []byte(`"x"`)},
			&MutateParams{Params: []Param{{Name: key, Dist: BoolDist{}, Value: Bool(true)}}}}
		return &LifecycleFenced{Trial: trial, Worker: worker, Epoch: tr.Epoch, Mutation: muts[u("mutation", len(muts)-1)]}
	case 23:
		outs := []Outcome{Completed(values...), PrunedEarly(), FailedWith(key), {State: Failed, Raw: []byte("1"), Error: "outcome of unknown shape: 1"}}
		intents := []*Intent{nil, {}, {Retry: &Attempt{Number: 2, Max: 2}}, {Raw: []byte("7")}}
		return &LifecycleTerminal{Trial: trial, Worker: worker, Epoch: tr.Epoch, Outcome: outs[u("outcome", 3)], Intent: intents[u("intent", 3)]}
	case 24, 25:
		return randomOutboxOp(t, s, tr, key)
	case 26:
		return &OutboxReplacement{Effect: EffectKey{Trial: trial, Epoch: tr.Epoch, Effect: RetryEffect}, Study: study, Trial: next, Number: number,
			Template: template, Attempt: Attempt{Number: 2, Max: 2}, RetryOf: &trial}
	}
	return &LifecycleFinalizedState{Trial: trial, Scope: TrialScope(trial), Blob: blob}
}

func randomOutboxOp(t *rapid.T, s *Snapshot, tr *Trial, key string) Op {
	for p := range s.Pending() {
		tr = p
		break
	}
	if rapid.Bool().Draw(t, "complete") {
		return &OutboxEffectComplete{Key: EffectKey{Trial: tr.ID, Epoch: tr.Epoch, Effect: key}}
	}
	op := &OutboxAdvance{Key: EntryKey{Trial: tr.ID, Epoch: tr.Epoch}, SamplerState: &Blob{Kind: "k", Data: []byte("2")}}
	if tr.Outbox != nil {
		op.Phase = tr.Outbox.Phase
	}
	if op.Phase >= PhaseDone {
		op.Phase = PhaseSampler
	}
	if op.Phase < PhaseEffects && rapid.Bool().Draw(t, "effect") {
		op.Effects = []Effect{{Name: key, Payload: []byte("1")}}
	}
	return op
}

// Whatever happens, folding step by step, through drafts that are nested,
// committed and dropped, with readers looking on, is the same as replaying the
// bytes from the beginning; and a refused operation changes nothing.
func TestFoldIsAFunctionOfItsOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFold()
		var log [][]byte
		var views []*Snapshot
		var dumps [][]string
		for range rapid.IntRange(1, 40).Draw(t, "rounds") {
			d := f.Draft()
			pending := randomOps(t, d, rapid.IntRange(1, 6).Draw(t, "ops"))
			if rapid.Bool().Draw(t, "nested") {
				inner := d.Draft()
				more := randomOps(t, inner, 3)
				if rapid.Bool().Draw(t, "keep inner") {
					if err := inner.Commit(); err != nil {
						t.Fatal(err)
					}
					pending = append(pending, more...)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "drop") == 0 {
				continue
			}
			if err := d.Commit(); err != nil {
				t.Fatal(err)
			}
			log = append(log, pending...)
			if rapid.IntRange(0, 5).Draw(t, "look") == 0 {
				views = append(views, f.Snapshot())
				dumps = append(dumps, dump(f.Snapshot()))
			}
		}
		again := NewFold()
		var dec Decoder
		for i, raw := range log {
			op, err := dec.Decode(raw)
			if err == nil {
				err = again.Apply(uint64(i+1), 1, uint64(i+1), op)
			}
			if err != nil {
				t.Fatalf("replay %s: %v", raw, err)
			}
		}
		if diff := DiffSnapshots(f.Snapshot(), again.Snapshot()); diff != "" {
			t.Fatalf("(-folded +replayed)\n%s", diff)
		}
		for i, v := range views {
			if diff := cmp.Diff(dumps[i], dump(v)); diff != "" {
				t.Fatalf("a snapshot has changed: %s", diff)
			}
		}
		checkIndexes(t, f.Snapshot())
	})
}

// randomOps applies random operations and returns the bytes of those accepted.
func randomOps(t *rapid.T, d *Draft, n int) (accepted [][]byte) {
	for range n {
		op := randomOp(t, d.Snapshot())
		raw, err := AppendOp(nil, op)
		if err != nil {
			t.Fatal(err)
		}
		seq := d.Seq() + 1
		before := d.Snapshot()
		err = d.Apply(seq, 1, seq, op)
		var refused *ReplayError
		switch {
		case err == nil:
			accepted = append(accepted, raw)
		case !errors.As(err, &refused) || refused.Seq != seq || refused.Kind != op.Kind():
			t.Fatalf("%s: untyped %v", raw, err)
		default:
			if diff := DiffSnapshots(before, d.Snapshot()); diff != "" {
				t.Fatalf("%s was refused (%v) and changed\n%s", raw, err, diff)
			}
		}
	}
	return accepted
}

// checkIndexes recounts what the fold keeps count of.
func checkIndexes(t *rapid.T, s *Snapshot) {
	pending := 0
	for st := range s.Studies() {
		var counts Counts
		var reserved, number uint64
		live := map[State][]TrialID{}
		for tr := range s.Trials(st.ID, TrialFilter{}) {
			if tr.Number != number {
				t.Fatalf("number %d where %d is next", tr.Number, number)
			}
			number++
			counts[tr.State]++
			if !tr.State.Terminal() {
				live[tr.State] = append(live[tr.State], tr.ID)
			}
			if tr.Managed && !tr.Abandoned && !tr.Replacement {
				reserved++
			}
			if tr.Outbox != nil && tr.Outbox.Phase != PhaseDone {
				pending++
			}
		}
		if counts != st.Counts() || reserved != st.Reserved() {
			t.Fatalf("counts %v and %d, recounted %v and %d", st.Counts(), st.Reserved(), counts, reserved)
		}
		for state := Waiting; state <= Paused; state++ {
			var ids []TrialID
			for _, id := range st.Live(state) {
				ids = append(ids, id)
			}
			if !slices.Equal(ids, live[state]) {
				t.Fatalf("%v trials are %v, recounted %v", state, ids, live[state])
			}
		}
	}
	if pending != s.NumPending() {
		t.Fatalf("%d pending, recounted %d", s.NumPending(), pending)
	}
}

func TestDraftsDieWhenTheirParentChanges(t *testing.T) {
	f := NewFold()
	a, b := f.Draft(), f.Draft()
	op := func(name string) Op {
		return &CreateStudy{Config: Config{Name: name, Directions: []Direction{Minimize}}}
	}
	if err := errors.Join(a.Apply(1, 0, 0, op("a")), b.Apply(1, 0, 0, op("b")), a.Commit()); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"commit": b.Commit(), "apply": b.Apply(2, 0, 0, op("c")), "twice": a.Commit()} {
		if !errors.Is(err, ErrStaleDraft) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, ok := f.Snapshot().StudyByName("b"); ok || f.Seq() != 1 {
		t.Error("the dead draft has left something")
	}
}

// refusals are single operations that replay refuses after the story, by the
// trial they meet.
func TestReplayRefusesWhatCannotHaveHappened(t *testing.T) {
	f := NewFold()
	var dec Decoder
	for _, l := range readLines(t, "testdata/operations.golden.jsonl") {
		op, err := dec.Decode(l.op)
		if err == nil {
			err = f.Apply(l.seq, l.worker, l.at, op)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const raw, managed, next = 0, 1, 8
	other, missing := TrialID(managed), TrialID(99)
	done := EntryKey{Trial: managed, Epoch: 2}
	for name, c := range map[string]struct {
		op   Op
		want error
	}{
		"a transition from another state":     {&Transition{Trial: raw, From: Running, To: Failed}, ErrConflict},
		"a forbidden move":                    {&Transition{Trial: raw, From: Complete, To: Running}, ErrBadState},
		"a raw transition of a managed trial": {&Transition{Trial: managed, From: Failed, To: Running}, ErrManaged},
		"a transition of no trial":            {&Transition{Trial: 99}, ErrNotFound},
		"a study id that is not next":         {&CreateStudy{Study: 2}, ErrOutOfOrder},
		"a trial id that is not next":         {&CreateTrial{Trial: next + 1, Number: next}, ErrOutOfOrder},
		"a number that is not next":           {&LifecycleReserve{Trial: next, Number: 0}, ErrOutOfOrder},
		"a trial of no study":                 {&CreateTrial{Study: 7, Trial: next}, ErrNotFound},
		"one value for two directions":        {&SetValues{Trial: raw, Values: []float64{1}}, ErrInvalid},
		"a claim of an ended trial":           {&LifecycleClaim{Trial: managed, From: Paused, Epoch: 3}, ErrBadState},
		"a claim from another state":          {&LifecycleClaim{Trial: 2, From: Paused, Epoch: 1}, ErrConflict},
		"a claim at epoch 0":                  {&LifecycleClaim{Trial: 2, From: Waiting, Epoch: 0}, ErrOutOfOrder},
		"a claim two epochs on":               {&LifecycleClaim{Trial: 2, From: Waiting, Epoch: 2}, ErrOutOfOrder},
		"a claim of a raw trial":              {&LifecycleClaim{Trial: raw, From: Waiting, Epoch: 1}, ErrManaged},
		"a fence of an ended trial":           {&LifecycleRenew{Trial: managed, Worker: 8, Epoch: 2, HeartbeatSeq: 9}, ErrFenced},
		"a fence of a waiting trial":          {&LifecycleFenced{Trial: 2, Mutation: &MutatePause{}}, ErrFenced},
		"a second end":                        {&LifecycleTerminal{Trial: managed, Worker: 8, Epoch: 2, Outcome: PrunedEarly()}, ErrFenced},
		"abandoning an ended trial":           {&LifecycleAbandon{Trial: managed}, ErrConflict},
		"failing what is not as observed":     {&LifecycleFailStale{Trial: 2, ObservedState: Running}, ErrConflict},
		"failing what is not stale":           {&LifecycleFailStale{Trial: 2, ObservedState: Waiting, NowMillis: 4, GraceMillis: 5}, ErrConflict},
		"a final state of a waiting trial":    {&LifecycleFinalizedState{Trial: 2, Scope: TrialScope(2)}, ErrBadState},
		"a final state of another scope":      {&LifecycleFinalizedState{Trial: managed, Scope: TrialScope(2)}, ErrInvalid},
		"an entry that is done":               {&OutboxAdvance{Key: done, Phase: PhaseEffects}, ErrConflict},
		"an entry that is not there":          {&OutboxAdvance{Key: EntryKey{Trial: 2, Epoch: 1}}, ErrNotFound},
		"a phase that is not next":            {&OutboxAdvance{Key: EntryKey{Trial: 5, Epoch: 1}, Phase: PhaseScheduler}, ErrConflict},
		"an effect twice":                     {&OutboxEffectComplete{Key: EffectKey{Trial: managed, Epoch: 2, Effect: "mail"}}, ErrExists},
		"an effect that is not there":         {&OutboxEffectComplete{Key: EffectKey{Trial: managed, Epoch: 2, Effect: "x"}}, ErrNotFound},
		"a replacement twice": {&OutboxReplacement{Effect: EffectKey{Trial: managed, Epoch: 2, Effect: RetryEffect}, Trial: next, Number: next,
			Attempt: Attempt{Number: 2, Max: 2}, RetryOf: &other}, ErrExists},
		"a replacement over the cap": {&OutboxReplacement{Effect: EffectKey{Raw: "1"}, Trial: next, Number: next, Attempt: Attempt{Number: 3, Max: 2}}, ErrInvalid},
		"a replacement of no trial":  {&OutboxReplacement{Effect: EffectKey{Raw: "1"}, Trial: next, Number: next, RetryOf: &missing}, ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			before := f.Snapshot()
			seq := f.Seq() + 1
			err := f.Apply(seq, 1, 1, c.op)
			var refused *ReplayError
			if !errors.Is(err, c.want) || !errors.As(err, &refused) || refused.Seq != seq || refused.Kind != c.op.Kind() {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if diff := DiffSnapshots(before, f.Snapshot()); diff != "" {
				t.Errorf("the fold has changed: %s", diff)
			}
		})
	}
	if err := f.Apply(f.Seq()+2, 1, 1, &CreateTrial{Trial: next, Number: next}); !errors.Is(err, ErrOutOfOrder) {
		t.Errorf("a gap in the sequence: %v", err)
	}
	for _, op := range []Op{
		&Report{Trial: managed, Values: []float64{1}}, &SetError{Trial: managed, Message: "x"}, &Heartbeat{Trial: managed, AtMillis: 5},
		&SetTrialUserAttr{Trial: managed, Key: "atune:x", Value: []byte("1")}, &PutState{Scope: TrialScope(managed)},
	} {
		if err := f.Apply(f.Seq()+1, 1, 1, op); err != nil {
			t.Errorf("raw operation on a managed trial: %v", err)
		}
	}
	if tr, _ := f.Snapshot().Trial(managed); tr.HeartbeatMillis != 3000 {
		t.Errorf("a raw heartbeat has moved the owner's to %d", tr.HeartbeatMillis)
	}
}

func TestParetoFront(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, c := range map[string]struct {
		dirs   []Direction
		values [][]float64
		want   []uint64
	}{
		"two objectives": {[]Direction{Minimize, Maximize}, [][]float64{{1, 1}, {2, 2}, {2, 1}, {0, 0}, {1, 0}}, []uint64{0, 1, 3}},
		"equal vectors":  {[]Direction{Minimize, Minimize}, [][]float64{{1, 1}, {1, 1}, {2, 2}}, []uint64{0, 1}},
		"NaN":            {[]Direction{Minimize, Minimize}, [][]float64{{nan, 0}, {0, nan}, {5, 5}}, []uint64{2}},
		"infinities":     {[]Direction{Minimize, Maximize}, [][]float64{{-inf, -inf}, {inf, inf}, {0, -inf}}, []uint64{0, 1}},
		"three":          {[]Direction{Minimize, Minimize, Minimize}, [][]float64{{1, 2, 3}, {3, 2, 1}, {2, 2, 2}, {3, 3, 3}, {1, 2, 4}}, []uint64{0, 1, 2}},
		"only NaN":       {[]Direction{Maximize}, [][]float64{{nan}}, nil},
		"ties":           {[]Direction{Maximize}, [][]float64{{1}, {2}, {2}, {nan}}, []uint64{1}},
		"zeros":          {[]Direction{Minimize}, [][]float64{{0}, {math.Copysign(0, -1)}}, []uint64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFold()
			apply := func(op Op) {
				if err := f.Apply(f.Seq()+1, 0, 0, op); err != nil {
					t.Fatal(err)
				}
			}
			apply(&CreateStudy{Config: Config{Name: "a", Directions: c.dirs}})
			for i, v := range c.values {
				id := TrialID(i)
				apply(&CreateTrial{Trial: id, Number: uint64(i)})
				apply(&Transition{Trial: id, From: Waiting, To: Running})
				apply(&SetValues{Trial: id, Values: v})
				apply(&Transition{Trial: id, From: Running, To: Complete})
			}
			best, err := f.Snapshot().Best(0)
			var got []uint64
			for _, b := range best {
				got = append(got, b.Number)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// A19: a list of numbers and values builds nothing.
func TestListingAllocatesNothing(t *testing.T) {
	s := replay(t, history(t, 300)).Snapshot()
	sum := 0.0
	n := testing.AllocsPerRun(100, func() {
		for tr := range s.Trials(0, TrialFilter{}) {
			sum += tr.Values[0]
		}
	})
	if n > 0 || sum == 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestDecodingCommonOperationsAllocatesNothing(t *testing.T) {
	var d Decoder
	for i, raw := range history(t, 1)[1:] {
		n := testing.AllocsPerRun(100, func() {
			if _, err := d.Decode(raw); err != nil {
				t.Fatal(err)
			}
		})
		if n > 0 {
			t.Errorf("operation %d: %v allocations for %s", i, n, raw)
		}
	}
}

func ExampleSnapshot_Best() {
	f := NewFold()
	seq := uint64(0)
	apply := func(op Op) {
		seq++
		if err := f.Apply(seq, 1, 0, op); err != nil {
			fmt.Println(err)
		}
	}
	apply(&CreateStudy{Config: Config{Name: "demo", Directions: []Direction{Minimize}}})
	for i, loss := range []float64{0.3, 0.1, math.NaN()} {
		id := TrialID(i)
		apply(&CreateTrial{Trial: id, Number: uint64(i)})
		apply(&Transition{Trial: id, From: Waiting, To: Running})
		apply(&SetValues{Trial: id, Values: []float64{loss}})
		apply(&Transition{Trial: id, From: Running, To: Complete})
	}
	best, _ := f.Snapshot().Best(0)
	fmt.Println(best[0].Number, best[0].Values)
	// Output: 1 [0.1]
}
