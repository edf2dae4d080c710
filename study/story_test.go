package study

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/serde"
)

// storyLog writes the lines of a transaction as a journal would.
type storyLog struct {
	seq   uint64
	lines []byte
}

func (l *storyLog) NextSeq() uint64  { return l.seq + 1 }
func (l *storyLog) AtMillis() uint64 { return 1_700_000_000_000 + l.seq*1000 }
func (l *storyLog) Worker() uint64   { return 7 }

func (l *storyLog) Append(op []byte) error {
	l.lines = fmt.Appendf(l.lines, `{"record":"op","seq":%d,"worker":7,"at_millis":%d,"op":%s}`+"\n", l.seq+1, l.AtMillis(), op)
	l.seq++
	return nil
}

// story uses every operation, every mutation and every outcome once at least.
func story(tx *Tx) error {
	seed := uint64(math.MaxUint64)
	lr := FloatDist{Low: 1e-5, High: 0.1, Log: true}
	q := FloatDist{Low: 0, High: 1, Step: 0.25}
	cat := &CatDist{Version: 1, Choices: []Choice{StringChoice("adam"), IntChoice(-3), FloatChoice(0.5), FloatChoice(math.Inf(1)), BoolChoice(true), NullChoice()}}
	deep, err := JSONChoice([]byte(`{"b":[1],"a":2}`))
	cat.Choices = append(cat.Choices, deep)
	id, err2 := tx.CreateStudy(Config{
		Name: "quoted \"name\" <&> \u2028 \U0001F600\x01", Directions: []Direction{Minimize, Maximize}, Seed: &seed, ResourceUnit: "Steps",
		MetricNames: []string{"loss", "reward"},
		Space:       &Space{Params: []SpaceParam{{Name: "lr", Dist: lr}, {Name: "opt", Dist: cat}}},
	})
	raw, err3 := tx.CreateTrial(id, nil)
	managed := storyRaw(tx, id, raw.ID, []Param{
		{Name: "lr", Dist: lr, Value: F64(0.01)}, {Name: "q", Dist: q, Value: F64(math.Copysign(0, -1))}, {Name: "opt", Dist: cat, Value: Cat(6)},
		{Name: "layers", Dist: IntDist{Low: math.MinInt64, High: math.MaxInt64}, Value: I64(math.MinInt64)},
		{Name: "use_bn", Dist: BoolDist{}, Value: Bool(true)},
	})
	return errors.Join(err, err2, err3, managed, storyManaged(tx, id, lr), storyEnds(tx, id))
}

func storyRaw(tx *Tx, id StudyID, raw TrialID, params []Param) error {
	return errors.Join(
		tx.SetStudyUserAttr(id, "team", []byte(`"control"`)),
		tx.Transition(raw, Waiting, Running),
		tx.ParamsBatch(raw, params),
		tx.SetTrialUserAttr(raw, "dataset", []byte(`{"split":"train","fold":2,"rate":1.50,"big":123456789012345678901234567890}`)),
		tx.Heartbeat(raw, 1_700_000_000_123),
		tx.Report(raw, 0, math.NaN(), math.Inf(-1)),
		tx.Report(raw, math.MaxUint64, 5e-324, 1e16),
		tx.SetValues(raw, 0.42, math.Inf(1)),
		tx.Transition(raw, Running, Complete),
		tx.PutState(SamplerScope(id), Blob{Kind: "tpe", Version: 1, Data: []byte(`{"observations":3,"gamma":0.25}`)}))
}

func storyManaged(tx *Tx, id StudyID, lr Distribution) error {
	tpl := &Template{Fixed: []FixedParam{{"opt", Cat(1)}, {"lr", F64(0.001)}}}
	ref, err := tx.LifecycleReserve(id, tpl, 10)
	f, err2 := tx.LifecycleClaim(ref.ID, Claim{Worker: 1 << 52, HeartbeatMillis: 1000, Params: []Param{{Name: "lr", Dist: lr, Value: F64(0.001)}}})
	err3 := errors.Join(
		tx.LifecycleRenew(f, 2000),
		tx.LifecycleFenced(f, &MutateReport{Step: 1, Values: []float64{0.5, math.NaN()}}),
		tx.LifecycleFenced(f, &MutateParams{Params: []Param{{Name: "late", Dist: BoolDist{}, Value: Bool(false)}}}),
		tx.LifecycleFenced(f, &MutateUserAttr{Key: "host", Value: []byte(`"node 1"`)}),
		tx.LifecycleFenced(f, &MutateState{Blob: Blob{Kind: "ckpt", Version: 1, Data: []byte(`{"epoch":3}`)}}),
		tx.LifecycleFenced(f, &MutateError{Message: "warming up"}),
		tx.LifecycleFenced(f, &MutatePause{}))
	g, err4 := tx.LifecycleClaim(ref.ID, Claim{From: Paused, Worker: 8, HeartbeatMillis: 3000, State: &Blob{Kind: "ckpt", Version: 1, Data: []byte(`{"epoch":3}`)}})
	err5 := tx.LifecycleTerminal(g, FailedWith("exit status 1"), &RetryPolicy{MaxRetries: 1})
	key := EntryKey{Trial: ref.ID, Epoch: g.Epoch}
	err6 := errors.Join(
		tx.OutboxAdvance(key, PhaseSampler, Advance{SamplerState: &Blob{Kind: "tpe", Version: 1, Data: []byte(`{"observations":4}`)}}),
		tx.OutboxAdvance(key, PhaseScheduler, Advance{
			SchedulerState: &Blob{Kind: "asha", Version: 1, Data: []byte(`{}`)},
			Effects:        []Effect{{Name: "mail", Payload: []byte(`{"to":"team"}`)}},
		}),
		tx.OutboxEffectComplete(EffectKey{Trial: ref.ID, Epoch: g.Epoch, Effect: "mail"}))
	_, err7 := tx.OutboxReplacement(EffectKey{Trial: ref.ID, Epoch: g.Epoch, Effect: RetryEffect})
	return errors.Join(err, err2, err3, err4, err5, err6, err7,
		tx.OutboxAdvance(key, PhaseEffects, Advance{}),
		tx.LifecycleFinalizedState(ref.ID, Blob{Kind: "ckpt", Version: 1, Data: []byte(`{"epoch":4}`)}))
}

func storyEnds(tx *Tx, id StudyID) error {
	var errs []error
	claim := func() Fence {
		ref, err := tx.LifecycleReserve(id, nil, 0)
		f, err2 := tx.LifecycleClaim(ref.ID, Claim{Worker: 8, HeartbeatMillis: 1000})
		errs = append(errs, err, err2)
		return f
	}
	errs = append(errs,
		tx.LifecycleTerminal(claim(), Outcome{State: Complete, Values: []float64{1, math.NaN()}, Blob: &Blob{Kind: "ckpt", Version: 1, Data: []byte("null")}}, &RetryPolicy{}),
		tx.LifecycleTerminal(claim(), PrunedEarly(), nil))
	stale := claim()
	errs = append(errs, tx.LifecycleFailStale(Observation{Trial: stale.Trial, State: Running, Owner: 8, Epoch: 1, HeartbeatMillis: 1000, HeartbeatSeq: 1,
		ElapsedMillis: 60_000, GraceMillis: 60_000}, "stale: worker 8 was silent", &RetryPolicy{MaxRetries: 2}))
	ref, err := tx.LifecycleReserve(id, nil, 0)
	errs = append(errs, err, tx.LifecycleAbandon(ref.ID, "not needed"))
	failed, err := tx.CreateTrial(id, nil)
	errs = append(errs, err, tx.SetError(failed.ID, "objective panicked: NaN loss at step 3"), tx.Transition(failed.ID, Waiting, Failed))
	return errors.Join(errs...)
}

// TestEveryOperationIsSpelledAsTheGolden writes the story and compares it byte
// by byte; FOLDLOG_BLESS=1 renews the file.
func TestEveryOperationIsSpelledAsTheGolden(t *testing.T) {
	const path = "testdata/operations.golden.jsonl"
	log := &storyLog{}
	f := NewFold()
	if err := story(&Tx{draft: f.Draft(), log: log}); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("FOLDLOG_BLESS") == "1" {
		if err := os.WriteFile(path, log.lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bytes.Split(want, []byte("\n")), bytes.Split(log.lines, []byte("\n"))); diff != "" {
		t.Fatalf("(-golden +written)\n%s", diff)
	}
	var d Decoder
	seen := map[string]bool{}
	for _, l := range readLines(t, path) {
		op, err := d.Decode(l.op)
		if err != nil {
			t.Fatal(err)
		}
		seen[op.Kind()] = true
		if w := notes(op); w != nil {
			t.Errorf("%s: %v", l.op, w)
		}
		if again, err := AppendOp(nil, op); err != nil || !bytes.Equal(again, l.op) {
			t.Fatalf("%v\n read  %s\n wrote %s", err, l.op, again)
		}
		if err := f.Apply(l.seq, l.worker, l.at, op); err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range kinds {
		if !seen[k.name] {
			t.Errorf("the story does without %s", k.name)
		}
	}
}

// fieldsOf splits an object into the texts `"key":value`.
func fieldsOf(t *testing.T, op []byte) (fields []string) {
	t.Helper()
	s := serde.NewScanner(op)
	for s.Object(); s.NextKey(); {
		key := string(s.RawKey())
		fields = append(fields, key+":"+string(s.Raw()))
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	return fields
}

func object(fields []string) []byte {
	var b []byte
	for i, f := range fields {
		b = append(b, "{,"[min(i, 1)])
		b = append(b, f...)
	}
	return append(b, '}')
}

// optional are the fields that may be left out.
var optional = map[string]bool{`"template"`: true, `"state"`: true, `"intent"`: true, `"sampler_state"`: true, `"scheduler_state"`: true, `"retry_of"`: true}

func TestFieldsOfEveryOperation(t *testing.T) {
	var d Decoder
	for _, l := range readLines(t, "testdata/operations.golden.jsonl") {
		fields := fieldsOf(t, l.op)
		for i, f := range fields {
			key, _, _ := bytes.Cut([]byte(f), []byte(":"))
			missing := append(append([]string{}, fields[:i]...), fields[i+1:]...)
			_, err := d.Decode(object(missing))
			if wantErr := !optional[string(key)]; wantErr != errors.Is(err, ErrField) {
				t.Errorf("%s without %s: %v", l.op, key, err)
			}
			if _, err := d.Decode(object(append(append([]string{}, fields...), f))); !errors.Is(err, ErrField) {
				t.Errorf("%s with %s twice: %v", l.op, key, err)
			}
		}
		turned := append([]string{}, fields...)
		for i, j := 0, len(turned)-1; i < j; i, j = i+1, j-1 {
			turned[i], turned[j] = turned[j], turned[i]
		}
		checkEncodes(t, &d, object(turned), l.op)
		more := object(append(append([]string{}, fields...), `"x\u0001":{"b":1, "a":[]}`, `"y":2`))
		checkEncodes(t, &d, more, more)
		if op, err := d.Decode(more); err != nil || len(notes(op)) != 2 {
			t.Errorf("%s: %v, %v", more, notes(op), err)
		}
	}
}

func checkEncodes(t *testing.T, d *Decoder, in, want []byte) {
	t.Helper()
	op, err := d.Decode(in)
	if err != nil {
		t.Errorf("%s: %v", in, err)
		return
	}
	if got, err := AppendOp(nil, op); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n read  %s\n wrote %s", err, in, got)
	}
}

// notes is what a replay finds odd about one operation.
func notes(op Op) []string {
	r := NewReplay()
	r.look(op)
	return r.Notes()
}

func TestDecoderRefusesByName(t *testing.T) {
	for text, want := range map[string]error{
		`{"kind":"no-such-kind","trial":1}`: ErrUnknownKind,
		`{"trial":1}`:                       ErrField,
		`{}`:                                ErrField,
		``:                                  serde.ErrSyntax,
		`[]`:                                serde.ErrType,
		`{"kind":7}`:                        serde.ErrType,
		`{"kind":"transition","kind":"transition","trial":0,"from":"Waiting","to":"Running"}`:                                                        ErrField,
		`{"trial":0,"kind":"transition","from":"Waiting","to":"Running","kind":"transition"}`:                                                        ErrField,
		`{"kind":"transition","trial":0,"from":"waiting","to":"Running"}`:                                                                            ErrField,
		`{"kind":"transition","trial":1.0,"from":"Waiting","to":"Running"}`:                                                                          serde.ErrType,
		`{"kind":"transition","trial":-1,"from":"Waiting","to":"Running"}`:                                                                           serde.ErrType,
		`{"kind":"transition","trial":18446744073709551616,"from":"Waiting","to":"Running"}`:                                                         serde.ErrRange,
		`{"kind":"transition","trial":0,"from":"Waiting","to":"Running"} x`:                                                                          serde.ErrSyntax,
		`{"kind":"transition","trial":0,"from":"Waiting","to":"Running","x":1,"x":2}`:                                                                ErrField,
		`{"kind":"report","trial":0,"step":1,"values":[NaN]}`:                                                                                        serde.ErrNonFinite,
		`{"kind":"report","trial":0,"step":1,"values":[null]}`:                                                                                       serde.ErrType,
		`{"kind":"report","trial":0,"step":1,"values":[1e999]}`:                                                                                      serde.ErrRange,
		"{\"kind\":\"set-error\",\"trial\":0,\"message\":\"\xff\"}":                                                                                  serde.ErrUTF8,
		`{"kind":"set-error","trial":0,"message":"\ud800"}`:                                                                                          serde.ErrSurrogate,
		`{"kind":"lifecycle-reserve","study":0,"trial":0,"number":0,"managed":false}`:                                                                ErrField,
		`{"kind":"create-trial","study":0,"trial":0,"number":0,"template":{"fixed":{}}}`:                                                             ErrField,
		`{"kind":"create-trial","study":0,"trial":0,"number":0,"template":{"fixed":{"a":{"F64":1},"a":{"F64":1}},"parent":null}}`:                    ErrField,
		`{"kind":"create-study","study":0,"config":{"name":"a","directions":["Up"],"seed":1,"space":null,"resource_unit":null,"metric_names":null}}`: ErrField,
		`{"kind":"create-study","study":0,"config":{"name":"a","directions":["Minimize"],"seed":1,"space":null,"resource_unit":null}}`:               ErrField,
		`{"kind":"params-batch","trial":0,"params":[{"name":"a","dist":"Bool"}]}`:                                                                    ErrField,
		`{"kind":"params-batch","trial":0,"params":[{"name":"a","dist":"Bool","value":{"F64":"x"}}]}`:                                                serde.ErrType,
	} {
		var d Decoder
		_, err := d.Decode([]byte(text))
		var typed *DecodeError
		if !errors.Is(err, want) || !errors.As(err, &typed) {
			t.Errorf("%s: got %v, want %v", text, err, want)
		}
	}
}

func TestStrangeShapesAreKept(t *testing.T) {
	var d Decoder
	for _, text := range []string{
		`{"kind":"create-study","study":0,"config":{"name":"a","directions":["Minimize"],"seed":null,"space":{"v":1},"resource_unit":null,"metric_names":null,"more":[1, 2]}}`,
		`{"kind":"create-study","study":0,"config":{"name":"a","directions":[],"seed":1,"space":[{"name":"x"}],"resource_unit":"Epochs","metric_names":[]}}`,
		`{"kind":"create-trial","study":0,"trial":0,"number":0,"template":{"fixed":{"a":{"Str":"x"},"b":7},"parent":3,"why":"x"}}`,
		`{"kind":"params-batch","trial":0,"params":[{"name":"a","dist":{"Normal":{"mu":0}},"value":{"F64":1.0},"note":1},{"name":"b","dist":{"Float":{"low":0,"high":1,"log":false,"step":0}},"value":{"F64":1.0,"x":2}}]}`,
		`{"kind":"params-batch","trial":0,"params":[{"name":"a","dist":{"Cat":{"choices":{"version":2,"choices":["x"]}}},"value":{"Cat":0}},{"name":"b","dist":"Other","value":null}]}`,
		`{"kind":"put-state","scope":{"Study":0},"blob":{"data":1}}`,
		`{"kind":"put-state","scope":"Global","blob":[1]}`,
		`{"kind":"lifecycle-fenced","trial":0,"worker":1,"epoch":1,"mutation":{"Report":{"step":1,"values":[1],"x":2}}}`,
		`{"kind":"lifecycle-fenced","trial":0,"worker":1,"epoch":1,"mutation":{"type":"report","step":1}}`,
		`{"kind":"lifecycle-fenced","trial":0,"worker":1,"epoch":1,"mutation":"Resume"}`,
		`{"kind":"lifecycle-terminal","trial":0,"worker":1,"epoch":1,"outcome":"Complete","intent":[1]}`,
		`{"kind":"lifecycle-terminal","trial":0,"worker":1,"epoch":1,"outcome":{"Complete":{"values":[1],"took":3}},"intent":{"retry":{"n":1}}}`,
		`{"kind":"lifecycle-terminal","trial":0,"worker":1,"epoch":1,"outcome":{"Failed":{}},"intent":{"retry":null,"x":1}}`,
		`{"kind":"lifecycle-terminal","trial":0,"worker":1,"epoch":1,"outcome":{"Complete":{"values":["x"]}}}`,
		`{"kind":"lifecycle-terminal","trial":0,"worker":1,"epoch":1,"outcome":7}`,
		`{"kind":"outbox-advance","key":"k","phase":{"P":1},"effects":{}}`,
		`{"kind":"outbox-advance","key":{"trial":0,"epoch":1,"x":1},"phase":"Done","effects":[1,{"name":"x"}]}`,
		`{"kind":"outbox-effect-complete","key":17}`,
		`{"kind":"outbox-replacement","effect":"e","study":0,"trial":0,"number":0,"attempt":2}`,
	} {
		checkEncodes(t, &d, []byte(text), []byte(text))
		if op, err := d.Decode([]byte(text)); err != nil || len(notes(op)) == 0 {
			t.Errorf("%s: no warning, %v", text, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, path := range []string{"testdata/operations.golden.jsonl", "testdata/golden.ops.jsonl"} {
		for _, l := range readLines(f, path) {
			f.Add(l.op)
		}
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, raw []byte) {
		op, err := d.Decode(raw)
		if err != nil {
			return
		}
		once, err := AppendOp(nil, op)
		if err != nil {
			if bytes.IndexByte(raw, '\n') < 0 {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		NewFold().Apply(1, 1, 1, op)
		checkEncodes(t, &d, once, once)
	})
}
