package optuna

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

const intDist = `{"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 0, "high": 10}}`
const catDist = `{"name": "CategoricalDistribution", "attributes": {"choices": ["a", 1, 1.5, true, null, NaN, -Infinity, [1, {"k": []}], 123456789012345678901234567890]}}`
const nanInside = `{"name": "CategoricalDistribution", "attributes": {"choices": [[NaN], 1]}}`

// harness is a client of a server on a storage in memory.
type harness struct {
	*testing.T
	pb.StorageServiceClient
	store *study.Memory
	ctx   context.Context
}

func newHarness(t *testing.T) *harness {
	store := study.NewMemory(study.MemoryOptions{})
	return &harness{t, serve(t, store)(), store, context.Background()}
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func (h *harness) code(want codes.Code, err error) {
	h.Helper()
	if status.Code(err) != want {
		h.Errorf("got %v, want %v", err, want)
	}
}

func (h *harness) newStudy(name string, directions ...pb.StudyDirection) int64 {
	h.Helper()
	if len(directions) == 0 {
		directions = []pb.StudyDirection{pb.StudyDirection_MINIMIZE}
	}
	r, err := h.CreateNewStudy(h.ctx, &pb.CreateNewStudyRequest{StudyName: name, Directions: directions})
	h.must(err)
	return r.StudyId
}

func (h *harness) newTrial(id int64, tpl *pb.Trial) int64 {
	h.Helper()
	r, err := h.CreateNewTrial(h.ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrial: tpl, TemplateTrialIsNone: tpl == nil})
	h.must(err)
	return r.TrialId
}

func (h *harness) trial(id int64) *pb.Trial {
	h.Helper()
	r, err := h.GetTrial(h.ctx, &pb.GetTrialRequest{TrialId: id})
	h.must(err)
	return r.Trial
}

func (h *harness) setState(id int64, state pb.TrialState, values ...float64) (bool, error) {
	r, err := h.SetTrialStateValues(h.ctx, &pb.SetTrialStateValuesRequest{TrialId: id, State: state, Values: values})
	return r.GetTrialUpdated(), err
}

func (h *harness) setParam(id int64, name string, x float64, dist string) error {
	_, err := h.SetTrialParameter(h.ctx, &pb.SetTrialParameterRequest{TrialId: id, ParamName: name, ParamValueInternal: x, Distribution: dist})
	return err
}

func TestErrorsHaveTheCodesThatClientsExpect(t *testing.T) {
	h := newHarness(t)
	id := h.newStudy("a")
	running, ended := h.newTrial(id, nil), h.newTrial(id, nil)
	h.must(h.setParam(running, "x", 0.5, floatDist))
	_, err := h.setState(ended, pb.TrialState_COMPLETE, 1)
	h.must(err)

	_, err = h.CreateNewStudy(h.ctx, &pb.CreateNewStudyRequest{StudyName: "a", Directions: []pb.StudyDirection{0}})
	h.code(codes.AlreadyExists, err)
	for _, missing := range []int64{99, -1, math.MaxInt64} {
		_, err = h.DeleteStudy(h.ctx, &pb.DeleteStudyRequest{StudyId: missing})
		h.code(codes.NotFound, err)
		_, err = h.GetTrials(h.ctx, &pb.GetTrialsRequest{StudyId: missing})
		h.code(codes.NotFound, err)
		_, err = h.GetStudyUserAttributes(h.ctx, &pb.GetStudyUserAttributesRequest{StudyId: missing})
		h.code(codes.NotFound, err)
		_, err = h.CreateNewTrial(h.ctx, &pb.CreateNewTrialRequest{StudyId: missing, TemplateTrialIsNone: true})
		h.code(codes.NotFound, err)
		_, err = h.GetTrial(h.ctx, &pb.GetTrialRequest{TrialId: missing})
		h.code(codes.NotFound, err)
		_, err = h.setState(missing, pb.TrialState_COMPLETE, 1)
		h.code(codes.NotFound, err)
		h.code(codes.NotFound, h.setParam(missing, "x", 0.5, floatDist))
		_, err = h.GetTrialIdFromStudyIdTrialNumber(h.ctx, &pb.GetTrialIdFromStudyIdTrialNumberRequest{StudyId: id, TrialNumber: missing})
		h.code(codes.NotFound, err)
	}
	_, err = h.GetStudyIdFromName(h.ctx, &pb.GetStudyIdFromNameRequest{StudyName: "b"})
	h.code(codes.NotFound, err)

	for state := range pb.TrialState_name {
		_, err = h.setState(ended, pb.TrialState(state), 1)
		h.code(codes.FailedPrecondition, err)
	}
	h.code(codes.FailedPrecondition, h.setParam(ended, "x", 0.5, intDist))
	_, err = h.SetTrialIntermediateValue(h.ctx, &pb.SetTrialIntermediateValueRequest{TrialId: ended})
	h.code(codes.FailedPrecondition, err)
	_, err = h.SetTrialUserAttribute(h.ctx, &pb.SetTrialUserAttributeRequest{TrialId: ended, Key: "k", Value: "1"})
	h.code(codes.FailedPrecondition, err)

	for name, bad := range map[string]error{
		"another kind of distribution": h.setParam(running, "x", 1, intDist),
		"no JSON":                      h.setParam(running, "y", 1, "{"),
		"an unknown distribution":      h.setParam(running, "y", 1, `{"name": "X", "attributes": {}}`),
		"a category out of range":      h.setParam(running, "y", 9, catDist),
		"NaN for an integer":           h.setParam(running, "y", math.NaN(), intDist),
	} {
		if status.Code(bad) != codes.InvalidArgument {
			t.Errorf("%s: got %v", name, bad)
		}
	}
	_, err = h.SetTrialSystemAttribute(h.ctx, &pb.SetTrialSystemAttributeRequest{TrialId: running, Key: "k", Value: "nan"})
	h.code(codes.InvalidArgument, err)
	if got := h.trial(running); len(got.Params) != 1 || len(got.SystemAttributes) != 0 {
		t.Errorf("refused calls left traces: %v", got)
	}
}

func TestParametersComeBackAsTheyWereSet(t *testing.T) {
	h := newHarness(t)
	id := h.newTrial(h.newStudy("a"), nil)
	want := map[string]float64{}
	set := func(name string, x float64, dist string) {
		t.Helper()
		h.must(h.setParam(id, name, x, dist))
		want[name] = x
	}
	set("f", 0.25, floatDist)
	set("f", 0.75, floatDist)
	set("i", 4, intDist)
	set("nan", 0, nanInside)
	for i := range 9 {
		set(fmt.Sprint("c", i), float64(i), catDist)
	}
	got := h.trial(id)
	if diff := cmp.Diff(want, got.Params); diff != "" {
		t.Errorf("values (-want +got)\n%s", diff)
	}
	for name, dist := range map[string]string{"f": floatDist, "i": intDist, "c3": catDist, "nan": nanInside} {
		a, err := parseDist(dist)
		h.must(err)
		b, err := parseDist(got.Distributions[name])
		h.must(err)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestAttributesComeBackAsTheyWereSet(t *testing.T) {
	h := newHarness(t)
	study := h.newStudy("a")
	trial := h.newTrial(study, nil)
	attrs := map[string]string{
		"plain": "1", "nested": `{"a":[1,{"b":null}]}`, "nan": "NaN", "list": "[Infinity, -Infinity]", "half": `"\ud800"`,
		"huge": "1e999", "foldlog:deleted": "true", "atune:x": `"y"`, "": `""`, "twice": `{"a": 1, "a": 2}`,
	}
	for key, value := range attrs {
		_, err := h.SetStudyUserAttribute(h.ctx, &pb.SetStudyUserAttributeRequest{StudyId: study, Key: key, Value: value})
		h.must(err)
		_, err = h.SetStudySystemAttribute(h.ctx, &pb.SetStudySystemAttributeRequest{StudyId: study, Key: key, Value: value})
		h.must(err)
		_, err = h.SetTrialUserAttribute(h.ctx, &pb.SetTrialUserAttributeRequest{TrialId: trial, Key: key, Value: value})
		h.must(err)
		_, err = h.SetTrialSystemAttribute(h.ctx, &pb.SetTrialSystemAttributeRequest{TrialId: trial, Key: key, Value: value})
		h.must(err)
	}
	all, err := h.GetAllStudies(h.ctx, &pb.GetAllStudiesRequest{})
	h.must(err)
	user, err := h.GetStudyUserAttributes(h.ctx, &pb.GetStudyUserAttributesRequest{StudyId: study})
	h.must(err)
	got := h.trial(trial)
	for what, m := range map[string]map[string]string{
		"study, user": user.UserAttributes, "study, system": all.Studies[0].SystemAttributes,
		"trial, user": got.UserAttributes, "trial, system": got.SystemAttributes,
	} {
		if diff := cmp.Diff(attrs, m); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", what, diff)
		}
	}
	for _, value := range []string{"NaN", "2", "NaN", "3"} { // the last one counts, however it is kept
		_, err := h.SetTrialUserAttribute(h.ctx, &pb.SetTrialUserAttributeRequest{TrialId: trial, Key: "plain", Value: value})
		h.must(err)
		if got := h.trial(trial).UserAttributes["plain"]; got != value {
			t.Errorf("set to %s, got %s", value, got)
		}
	}
}

func TestTemplatesBecomeTrialsWhole(t *testing.T) {
	h := newHarness(t)
	id := h.newStudy("a", pb.StudyDirection_MAXIMIZE)
	templates := map[string]*pb.Trial{
		"finished": {
			State: pb.TrialState_COMPLETE, Values: []float64{math.Inf(1)},
			DatetimeStart: "2022-09-01 00:00:00.123456", DatetimeComplete: "2022-09-02 01:02:03.000001",
			Params: map[string]float64{"x": 0.5}, Distributions: map[string]string{"x": floatDist},
			UserAttributes: map[string]string{"u": "1"}, SystemAttributes: map[string]string{"s": `"t"`},
			IntermediateValues: map[int64]float64{1: 10, 2: math.Inf(-1), -3: 4},
		},
		"waiting":                 {State: pb.TrialState_WAITING, SystemAttributes: map[string]string{"fixed_params": `{"x":1}`}},
		"failed without times":    {State: pb.TrialState_FAIL},
		"complete without values": {State: pb.TrialState_COMPLETE},
		"pruned":                  {State: pb.TrialState_PRUNED, Values: []float64{1}, DatetimeStart: "1999-12-31 23:59:59.999999"},
		"more values than directions": {State: pb.TrialState_RUNNING, Values: []float64{1, 2, 3},
			DatetimeStart: "2022-09-01 00:00:00.000000"},
	}
	for name, tpl := range templates {
		got := h.trial(h.newTrial(id, tpl))
		if diff := cmp.Diff(tpl, got, protocmp.Transform(), protocmp.IgnoreFields(&pb.Trial{}, "trial_id", "number", "distributions"),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestTrialsGoThroughOptunasStates(t *testing.T) {
	h := newHarness(t)
	id := h.newStudy("a")
	waiting := h.newTrial(id, &pb.Trial{State: pb.TrialState_WAITING})
	first, err := h.setState(waiting, pb.TrialState_RUNNING)
	h.must(err)
	second, err := h.setState(waiting, pb.TrialState_RUNNING)
	h.must(err)
	if !first || second {
		t.Errorf("claimed: %v, and again: %v", first, second)
	}
	start := h.trial(waiting).DatetimeStart
	if start == "" {
		t.Error("a running trial has no start")
	}
	if _, err = h.setState(waiting, pb.TrialState_WAITING, 1, 2); err != nil {
		t.Error(err)
	}
	if got := h.trial(waiting); got.State != pb.TrialState_WAITING || !slices.Equal(got.Values, []float64{1, 2}) {
		t.Errorf("put back: %v", got)
	}
	if ok, err := h.setState(waiting, pb.TrialState_PRUNED, 3); !ok || err != nil {
		t.Errorf("pruned: %v, %v", ok, err)
	}
	if got := h.trial(waiting); got.State != pb.TrialState_PRUNED || !slices.Equal(got.Values, []float64{3}) ||
		got.DatetimeStart != start || got.DatetimeComplete == "" {
		t.Errorf("pruned: %v", got)
	}
	fresh := h.newTrial(id, &pb.Trial{State: pb.TrialState_WAITING})
	if _, err := h.setState(fresh, pb.TrialState_COMPLETE); err != nil {
		t.Error(err)
	}
	if got := h.trial(fresh); got.State != pb.TrialState_COMPLETE || got.Values != nil || got.DatetimeStart != "" {
		t.Errorf("complete without having run: %v", got)
	}
}

func TestDeletedStudiesAreHidden(t *testing.T) {
	h := newHarness(t)
	old := h.newStudy("a")
	trial := h.newTrial(old, nil)
	_, err := h.DeleteStudy(h.ctx, &pb.DeleteStudyRequest{StudyId: old})
	h.must(err)
	_, err = h.DeleteStudy(h.ctx, &pb.DeleteStudyRequest{StudyId: old})
	h.code(codes.NotFound, err)
	_, err = h.GetTrial(h.ctx, &pb.GetTrialRequest{TrialId: trial})
	h.code(codes.NotFound, err)
	_, err = h.setState(trial, pb.TrialState_COMPLETE, 1)
	h.code(codes.NotFound, err)
	again := h.newStudy("a")
	all, err := h.GetAllStudies(h.ctx, &pb.GetAllStudiesRequest{})
	h.must(err)
	if len(all.Studies) != 1 || all.Studies[0].StudyId != again || again == old {
		t.Errorf("studies: %v", all.Studies)
	}
	if n := h.store.Snapshot().NumStudies(); n != 2 {
		t.Errorf("the storage holds %d studies", n)
	}
}

func TestListsGoOnWhereTheClientIs(t *testing.T) {
	h := newHarness(t)
	a, b := h.newStudy("a"), h.newStudy("b")
	for i := range 40 {
		h.newTrial([]int64{a, b}[i%2], nil)
	}
	for _, test := range []struct {
		name     string
		included []int64
		greater  int64
		want     []int64
	}{
		{"everything", nil, -1, seq(0, 40)},
		{"what is new", nil, 30, []int64{32, 34, 36, 38}},
		{"what is new and what had not ended", []int64{4, 2, 4, 32}, 33, []int64{2, 4, 32, 34, 36, 38}},
		{"nothing new", []int64{}, 39, nil},
		{"ids of other studies, and of none", []int64{1, 3, 999, -7}, 38, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := h.GetTrials(h.ctx, &pb.GetTrialsRequest{StudyId: a, IncludedTrialIds: test.included, TrialIdGreaterThan: test.greater})
			h.must(err)
			var got []int64
			for _, tr := range r.Trials {
				got = append(got, tr.TrialId)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// seq counts in steps of two.
func seq(from, to int64) (s []int64) {
	for ; from < to; from += 2 {
		s = append(s, from)
	}
	return s
}

func TestLongListsHaveWhatSingleTrialsHave(t *testing.T) {
	store := study.NewMemory(study.MemoryOptions{})
	const trials = 2*portion + 100
	if err := store.Update(t.Context(), func(tx *study.Tx) error {
		c := change{target: tx}
		if _, err := c.createStudy("a", []study.Direction{study.Minimize}); err != nil {
			return err
		}
		for i := range trials {
			tpl := &template{state: study.Running, attrs: []attr{{userSide, "i", fmt.Sprint(i)}}}
			for k := range i % 5 {
				dist := []string{floatDist, intDist, catDist, `{"type":"int","low":0,"high":9}`}[(k+i/7)%4]
				d, err := parseDist(dist)
				if err != nil {
					return err
				}
				tpl.params = append(tpl.params, param{fmt.Sprint("p", k, i/7%4), 0, d})
				tpl.curve = append(tpl.curve, point{int64(k), float64(i)})
			}
			if _, err := c.createFrom(0, tpl); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h := &harness{t, serve(t, store)(), store, t.Context()}
	all, err := h.GetTrials(h.ctx, &pb.GetTrialsRequest{TrialIdGreaterThan: -1})
	h.must(err)
	if len(all.Trials) != trials {
		t.Fatalf("%d trials are listed, there are %d", len(all.Trials), trials)
	}
	for i, got := range all.Trials {
		if i%10 > 0 && i < trials-10 {
			continue
		}
		want, err := h.GetTrial(h.ctx, &pb.GetTrialRequest{TrialId: int64(i)})
		h.must(err)
		if diff := cmp.Diff(want.Trial, got, protocmp.Transform()); diff != "" {
			t.Fatalf("trial %d (-alone +listed):\n%s", i, diff)
		}
	}
}

func TestManagedTrialsAreSeenAndNotChanged(t *testing.T) {
	h := newHarness(t)
	id := h.newStudy("a")
	h.must(h.store.Update(h.ctx, func(tx *study.Tx) error {
		ref, err := tx.LifecycleReserve(study.StudyID(id), nil, 0)
		if err != nil {
			return err
		}
		_, err = tx.LifecycleReserve(study.StudyID(id), nil, 0)
		if err == nil {
			_, err = tx.LifecycleClaim(ref.ID, study.Claim{From: study.Waiting, Worker: 1, HeartbeatMillis: 1})
		}
		return err
	}))
	if got := h.trial(0); got.State != pb.TrialState_RUNNING {
		t.Errorf("claimed: %v", got)
	}
	for trial := range int64(2) {
		if ok, err := h.setState(trial, pb.TrialState_RUNNING); ok || err != nil {
			t.Errorf("trial %d taken: %v, %v", trial, ok, err)
		}
		_, err := h.setState(trial, pb.TrialState_FAIL)
		h.code(codes.FailedPrecondition, err)
		h.code(codes.FailedPrecondition, h.setParam(trial, "x", 0.5, floatDist))
	}
}

func TestSeveralServersOnOneJournal(t *testing.T) {
	first := newJournal(t)
	second, err := study.OpenJournal(context.Background(), first.Writer().Path(), journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	dials := []func() pb.StorageServiceClient{serve(t, first), serve(t, second)}
	ctx := context.Background()
	r, err := dials[0]().CreateNewStudy(ctx, &pb.CreateNewStudyRequest{StudyName: "a", Directions: []pb.StudyDirection{0}})
	if err != nil {
		t.Fatal(err)
	}
	queued := dials[1]()
	const n = 12
	for range n {
		if _, err := queued.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: r.StudyId, TemplateTrial: &pb.Trial{State: pb.TrialState_WAITING}}); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	taken := map[int64]int{}
	for i := range 8 {
		wg.Go(func() {
			c := dials[i%2]()
			for id := range int64(n) {
				r, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: id, State: pb.TrialState_RUNNING})
				if err != nil {
					t.Error(err)
				} else if r.TrialUpdated {
					mu.Lock()
					taken[id]++
					mu.Unlock()
				}
			}
			if err := oneTrial(ctx, c, r.StudyId); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(taken) != n || slices.Max(slices.Collect(maps.Values(taken))) != 1 {
		t.Errorf("waiting trials were taken so often: %v", taken)
	}
	for i, dial := range dials {
		all, err := dial().GetTrials(ctx, &pb.GetTrialsRequest{StudyId: r.StudyId, TrialIdGreaterThan: -1})
		if err != nil || len(all.Trials) != n+8 {
			t.Fatalf("server %d lists %d trials, %v", i, len(all.GetTrials()), err)
		}
		for number, tr := range all.Trials {
			if tr.Number != int64(number) {
				t.Errorf("server %d: trial %d has number %d", i, number, tr.Number)
			}
		}
	}
}
