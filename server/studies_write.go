package server

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// fenceOf is the right to change a trial: shown for a managed one, absent for a raw
// one.
func fenceOf(f wire.FenceBody, t *study.Trial) (study.Fence, error) {
	shown := f.Worker != nil && f.Epoch != nil
	switch {
	case t.Managed && !shown:
		return study.Fence{}, problem(http.StatusConflict, "the trial is managed: show worker and epoch, as ask told them")
	case !t.Managed && (f.Worker != nil || f.Epoch != nil):
		return study.Fence{}, problem(http.StatusConflict, "the trial is raw and has no owner: leave worker and epoch out")
	case !t.Managed:
		return study.Fence{Trial: t.ID}, nil
	}
	return study.Fence{Trial: t.ID, Worker: uint64(*f.Worker), Epoch: uint64(*f.Epoch)}, nil
}

type askInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		Key     string      `json:"key,omitempty" maxLength:"1000" doc:"drawn by the client for each trial: the same key gives the trial that was started, as long as it runs"`
		LeaseMS int64       `json:"lease_ms,omitempty" minimum:"0" doc:"how long the owner may be silent; makes the trial a managed one. 0 asks for a raw trial"`
		Budget  wire.Count  `json:"budget,omitempty" doc:"with lease_ms: reserve no trial beyond so many"`
		Worker  *wire.Count `json:"worker,omitempty" nullable:"true" doc:"with lease_ms: the id of the owner, below 2^53; left out: the server's"`
	}
}

type trialOutput struct{ Body wire.TrialItem }

type tellInput struct {
	ID     string `path:"id" maxLength:"64"`
	Number uint64 `path:"number"`
	Body   struct {
		wire.FenceBody
		State   string        `json:"state,omitempty" enum:"complete,pruned,failed" doc:"complete if left out, failed if there is an error"`
		Values  []wire.Number `json:"values,omitempty" maxItems:"1000" doc:"of a complete trial: one for each objective"`
		Error   string        `json:"error,omitempty" doc:"why it failed"`
		Retries *uint64       `json:"retries,omitempty" nullable:"true" doc:"try a managed trial that failed again, so often at most"`
	}
}

type reportInput struct {
	ID     string `path:"id" maxLength:"64"`
	Number uint64 `path:"number"`
	Body   struct {
		wire.FenceBody
		Step   wire.Integer  `json:"step" doc:"from 0"`
		Values []wire.Number `json:"values" minItems:"1" maxItems:"1000"`
	}
}

type renewInput struct {
	ID     string `path:"id" maxLength:"64"`
	Number uint64 `path:"number"`
	Body   wire.FenceBody
}

type claimInput struct {
	ID     string `path:"id" maxLength:"64"`
	Number uint64 `path:"number"`
	Body   struct {
		LeaseMS int64       `json:"lease_ms" minimum:"1" doc:"how long the owner may be silent"`
		Worker  *wire.Count `json:"worker,omitempty" nullable:"true" doc:"the id of the owner; left out: the server's"`
	}
}

type enqueueInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		Params map[string]wire.Any `json:"params" doc:"values given in advance; the rest is drawn"`
		Key    string              `json:"key,omitempty" maxLength:"1000" doc:"the same key gives the same trial"`
		Raw    bool                `json:"raw,omitempty" doc:"a raw trial, for ask without lease_ms"`
	}
}

type attrInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		wire.FenceBody
		Key    string   `json:"key" minLength:"1" maxLength:"1000"`
		Value  wire.Any `json:"value" doc:"any JSON"`
		Number *uint64  `json:"number,omitempty" nullable:"true" doc:"of a trial; left out: the study's"`
	}
}

func (s *Server) registerStudyWrites(api huma.API) {
	post := func(path, id, summary string) huma.Operation {
		op := operation(http.MethodPost, "/api/v1/studies/{id}"+path, id, summary, "studies")
		op.Errors = append(op.Errors, http.StatusConflict, http.StatusInsufficientStorage)
		return op
	}
	ask := post("/ask", "ask", "Start a trial: one that waits, or a new one")
	ask.Description = "A client whose answer was lost asks again with the same key. 409 if that trial has ended, or was asked for in another way."
	huma.Register(api, ask, s.ask)
	huma.Register(api, post("/enqueue", "enqueue", "Create a trial with given parameters that waits"), s.enqueue)
	huma.Register(api, post("/attrs", "set-attr", "Set a user attribute of the study or of a trial"), s.setAttr)
	huma.Register(api, post("/trials/{number}/claim", "claim", "Claim a managed trial that waits or pauses"), s.claim)
	tell := post("/trials/{number}/tell", "tell", "End a trial: its values, that it was pruned, or why it failed")
	tell.Description = "Telling the same again is answered as the first time."
	huma.Register(api, tell, s.tell)
	huma.Register(api, post("/trials/{number}/report", "report", "Report intermediate values"), s.report)
	huma.Register(api, post("/trials/{number}/renew", "renew", "Show that the owner lives"), s.renew)
}

// mayWrite finds a study and answers 403 if the token may not write to it.
func (s *Server) mayWrite(ctx context.Context, id string) (*journalLog, *study.Study, error) {
	log, _, st, err := s.study(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return log, st, need(ctx, ScopeWrite, "studies/"+st.Config.Name)
}

// trialAfter is a trial as a snapshot has it.
func trialAfter(snap *study.Snapshot, st *study.Study, id study.TrialID) (wire.TrialItem, error) {
	t, err := snap.Trial(id)
	if err != nil {
		return wire.TrialItem{}, err
	}
	return trialItem(snap, st, t), nil
}

func (s *Server) ask(ctx context.Context, in *askInput) (*trialOutput, error) {
	log, st, err := s.mayWrite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if w := in.Body.Worker; w != nil && *w >= 1<<53 {
		return nil, problem(http.StatusUnprocessableEntity, "a worker's id is below 2^53")
	}
	o := asktell.AskOptions{Key: in.Body.Key, Lease: time.Duration(max(0, in.Body.LeaseMS)) * time.Millisecond,
		Budget: uint64(in.Body.Budget), Worker: (*uint64)(in.Body.Worker)}
	var id study.TrialID
	snap, err := log.write(ctx, func(w study.Storage) (err error) {
		id, err = asktell.Ask(ctx, w, st.ID, o)
		return err
	})
	return s.answerTrial(snap, st, id, err)
}

func (s *Server) answerTrial(snap *study.Snapshot, st *study.Study, id study.TrialID, err error) (*trialOutput, error) {
	if err != nil {
		return nil, s.answer(err)
	}
	item, err := trialAfter(snap, st, id)
	if err != nil {
		return nil, s.answer(err)
	}
	return &trialOutput{item}, nil
}

// updateTrial changes a trial of a study in one transaction, and returns its id as well.
func (l *journalLog) updateTrial(ctx context.Context, of study.StudyID, number uint64, do func(*study.Tx, *study.Trial) error) (snap *study.Snapshot, id study.TrialID, err error) {
	snap, err = l.update(ctx, func(tx *study.Tx) error {
		t, err := tx.Snapshot().TrialByNumber(of, number)
		if err != nil {
			return err
		}
		id = t.ID
		return do(tx, t)
	})
	return snap, id, err
}

func (s *Server) claim(ctx context.Context, in *claimInput) (*trialOutput, error) {
	log, st, err := s.mayWrite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	snap, id, err := log.updateTrial(ctx, st.ID, in.Number, func(tx *study.Tx, t *study.Trial) error {
		return claimTrial(tx, t, in.Body.LeaseMS, in.Body.Worker)
	})
	return s.answerTrial(snap, st, id, err)
}

// claimTrial claims a trial, and draws the parameters that it lacks.
func claimTrial(tx *study.Tx, t *study.Trial, leaseMS int64, worker *wire.Count) error {
	switch {
	case !t.Managed:
		return problem(http.StatusConflict, "the trial is raw: ask without lease_ms starts it")
	case t.State != study.Waiting && t.State != study.Paused:
		return &study.StateError{Trial: t.ID, State: t.State, What: "claim"}
	}
	params, err := asktell.Suggest(tx, t)
	if err != nil {
		return err
	}
	owner := tx.Worker()
	if worker != nil {
		owner = uint64(*worker)
	}
	fence, err := tx.LifecycleClaim(t.ID, study.Claim{From: t.State, Worker: owner, HeartbeatMillis: tx.AtMillis(), Params: params})
	if err != nil {
		return err
	}
	return tx.SetLease(fence, time.Duration(leaseMS)*time.Millisecond)
}

func (s *Server) enqueue(ctx context.Context, in *enqueueInput) (*struct{ Body wire.Enqueued }, error) {
	log, st, err := s.mayWrite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	tpl := new(study.Template)
	for name, raw := range in.Body.Params {
		v, err := asktell.ParseParam(st, name, paramText(st, name, raw))
		if err != nil {
			return nil, problem(http.StatusUnprocessableEntity, "parameter "+name+": "+err.Error())
		}
		tpl.Fixed = append(tpl.Fixed, study.FixedParam{Name: name, Value: v})
	}
	slices.SortFunc(tpl.Fixed, func(a, b study.FixedParam) int { return strings.Compare(a.Name, b.Name) })
	var id study.TrialID
	var created bool
	snap, err := log.update(ctx, func(tx *study.Tx) (err error) {
		id, created, err = asktell.Enqueue(tx, st.ID, tpl, asktell.EnqueueOptions{Key: in.Body.Key, Raw: in.Body.Raw})
		return err
	})
	if err != nil {
		return nil, s.answer(err)
	}
	item, err := trialAfter(snap, st, id)
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.Enqueued }{wire.Enqueued{Created: created, TrialItem: item}}, nil
}

// paramText is a value as a person would type it: choices are JSON, of anything
// else a text goes without its quotes.
func paramText(st *study.Study, name string, raw wire.Any) string {
	if _, ok := st.Config.Space.Dist(name).(*study.CatDist); ok {
		return string(raw)
	}
	return serde.Text(raw)
}

func (s *Server) setAttr(ctx context.Context, in *attrInput) (*struct{}, error) {
	log, st, err := s.mayWrite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	value, err := serde.AppendPortable([]byte{}, in.Body.Value)
	if err != nil {
		return nil, problem(http.StatusUnprocessableEntity, "value: "+err.Error())
	}
	if in.Body.Number == nil {
		_, err = log.update(ctx, func(tx *study.Tx) error { return tx.SetStudyUserAttr(st.ID, in.Body.Key, value) })
		return nil, s.answer(err)
	}
	_, _, err = log.updateTrial(ctx, st.ID, *in.Body.Number, func(tx *study.Tx, t *study.Trial) error {
		f, err := fenceOf(in.Body.FenceBody, t)
		if err != nil {
			return err
		}
		if t.Managed {
			return tx.LifecycleFenced(f, &study.MutateUserAttr{Key: in.Body.Key, Value: value})
		}
		return tx.SetTrialUserAttr(t.ID, in.Body.Key, value)
	})
	return nil, s.answer(err)
}

func floats(ns []wire.Number) []float64 {
	out := make([]float64, len(ns))
	for i, n := range ns {
		out[i] = float64(n)
	}
	return out
}

// outcome is what a tell says.
func (in *tellInput) outcome(st *study.Study) (study.Outcome, error) {
	name := in.Body.State
	if name == "" {
		if name = "complete"; in.Body.Error != "" {
			name = "failed"
		}
	}
	state, err := study.ParseState(name)
	o := study.Outcome{State: state, Values: floats(in.Body.Values), Error: in.Body.Error}
	switch {
	case err != nil || !state.Terminal():
		return o, problem(http.StatusUnprocessableEntity, "the state is complete, pruned or failed")
	case state == study.Complete && len(o.Values) != len(st.Config.Directions):
		return o, problem(http.StatusUnprocessableEntity, "a complete trial has one value for each of "+strconv.Itoa(len(st.Config.Directions))+" objectives")
	case state != study.Complete && len(o.Values) > 0:
		return o, problem(http.StatusUnprocessableEntity, "a trial that is not complete has no values: report has intermediate ones")
	case state != study.Failed && (o.Error != "" || in.Body.Retries != nil):
		return o, problem(http.StatusUnprocessableEntity, "error and retries are of trials that failed")
	}
	return o, nil
}

func (s *Server) tell(ctx context.Context, in *tellInput) (*trialOutput, error) {
	log, st, err := s.mayWrite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	outcome, err := in.outcome(st)
	if err != nil {
		return nil, err
	}
	snap, id, err := log.updateTrial(ctx, st.ID, in.Number, func(tx *study.Tx, t *study.Trial) error {
		f, err := fenceOf(in.Body.FenceBody, t)
		if err != nil {
			return err
		}
		if asktell.FinishedBefore(t, f, outcome) {
			return settled(tx, t)
		}
		if !t.Managed {
			if in.Body.Retries != nil {
				return problem(http.StatusConflict, "the trial is raw: retries is for managed ones")
			}
			return asktell.End(tx, t.ID, outcome)
		}
		var policy *study.RetryPolicy
		if in.Body.Retries != nil {
			policy = &study.RetryPolicy{MaxRetries: *in.Body.Retries}
		}
		_, err = asktell.Finish(tx, f, outcome, policy)
		return err
	})
	return s.answerTrial(snap, st, id, err)
}

// settled carries out what follows from the end of a trial, should that have been left
// by who wrote the end.
func settled(tx *study.Tx, t *study.Trial) error {
	if t.Outbox == nil {
		return nil
	}
	_, err := tx.OutboxSettle(t.Outbox.Key)
	return err
}

// change makes one change to a trial.
func (s *Server) change(ctx context.Context, id string, number uint64, show wire.FenceBody, do func(*study.Tx, *study.Study, *study.Trial, study.Fence) error) (*trialOutput, error) {
	log, st, err := s.mayWrite(ctx, id)
	if err != nil {
		return nil, err
	}
	snap, trial, err := log.updateTrial(ctx, st.ID, number, func(tx *study.Tx, t *study.Trial) error {
		f, err := fenceOf(show, t)
		if err != nil {
			return err
		}
		return do(tx, st, t, f)
	})
	return s.answerTrial(snap, st, trial, err)
}

func (s *Server) report(ctx context.Context, in *reportInput) (*trialOutput, error) {
	values := floats(in.Body.Values)
	return s.change(ctx, in.ID, in.Number, in.Body.FenceBody, func(tx *study.Tx, st *study.Study, t *study.Trial, f study.Fence) error {
		if in.Body.Step < 0 {
			return problem(http.StatusUnprocessableEntity, "steps count from 0")
		}
		if len(values) != len(st.Config.Directions) {
			return problem(http.StatusUnprocessableEntity, "a report has one value for each of "+strconv.Itoa(len(st.Config.Directions))+" objectives")
		}
		if t.Managed {
			return tx.LifecycleFenced(f, &study.MutateReport{Step: uint64(in.Body.Step), Values: values})
		}
		return tx.Report(t.ID, uint64(in.Body.Step), values...)
	})
}

func (s *Server) renew(ctx context.Context, in *renewInput) (*trialOutput, error) {
	return s.change(ctx, in.ID, in.Number, in.Body, func(tx *study.Tx, _ *study.Study, t *study.Trial, f study.Fence) error {
		if t.Managed {
			return tx.LifecycleRenew(f, tx.AtMillis())
		}
		return tx.Heartbeat(t.ID, tx.AtMillis())
	})
}
