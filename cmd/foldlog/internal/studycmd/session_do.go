package studycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
	"github.com/foldlog/foldlog/study/space"
)

// request is one line of the input of `foldlog study session`. Each
// request has the fields that it needs.
type request struct {
	ID json.RawMessage `json:"id"` // comes back with the answer
	Do string          `json:"do"`

	Name       string          `json:"name"` // of a study or a parameter
	Directions []string        `json:"directions"`
	Metrics    []string        `json:"metrics"`
	Space      json.RawMessage `json:"space"`
	Seed       *uint64         `json:"seed"`
	Sampler    string          `json:"sampler"`
	Pruner     string          `json:"pruner"`
	Open       bool            `json:"open"` // use a study that is there

	Trial  *uint64                    `json:"trial"`
	Budget uint64                     `json:"budget"`
	Dist   json.RawMessage            `json:"dist"`
	Step   uint64                     `json:"step"`
	Values []json.RawMessage          `json:"values"`
	State  string                     `json:"state"`
	Error  string                     `json:"error"`
	Key    string                     `json:"key"`
	Value  json.RawMessage            `json:"value"`
	Params map[string]json.RawMessage `json:"params"`
	States []string                   `json:"states"`
}

// do does one request and returns what is answered.
func (s *conversation) do(ctx context.Context, r *request) (any, error) {
	switch {
	case r.Do == "create" || r.Do == "open":
		return s.open(ctx, r)
	case s.st == nil:
		return nil, cli.Usagef("request %q: the first one must be create or open", r.Do)
	}
	switch r.Do {
	case "ask":
		return s.ask(ctx, r)
	case "enqueue":
		return s.enqueue(ctx, r)
	case "study", "trials", "best", "trial":
		return s.look(ctx, r)
	case "set_attr":
		if r.Trial == nil {
			return nil, s.setAttr(ctx, r, nil)
		}
	case "suggest", "report", "tell", "should_prune":
	default:
		return nil, cli.Usagef("unknown request %.40q", r.Do)
	}
	if r.Trial == nil {
		return nil, cli.Usagef("request %q: it has no trial", r.Do)
	}
	t, ok := s.running[*r.Trial]
	if !ok {
		return nil, cli.Usagef("trial %d was not asked for in this session, or has been told", *r.Trial)
	}
	switch r.Do {
	case "suggest":
		return s.suggest(t, r)
	case "report":
		return nil, s.report(ctx, t, r)
	case "tell":
		return s.tell(ctx, t, r)
	case "should_prune":
		return s.shouldPrune(r)
	}
	return nil, s.setAttr(ctx, r, t)
}

// open opens the journal and finds or creates the study.
func (s *conversation) open(ctx context.Context, r *request) (any, error) {
	if s.st != nil {
		return nil, cli.Usagef("request %q: the session has a study", r.Do)
	}
	created := false
	if r.Do == "create" {
		config, err := r.config(s.path)
		if err != nil {
			return nil, err
		}
		search := searchOptions{r.Sampler, r.Pruner}
		if err := search.check(config); err != nil {
			return nil, err
		}
		if _, _, created, err = s.createStudy(ctx, s.path, config, search, r.Open); err != nil {
			return nil, err
		}
		r.Name = config.Name
	}
	j, err := s.OpenJournalSoon(ctx, s.path)
	if err != nil {
		return nil, err
	}
	st, err := pickStudy(j.Snapshot(), s.path, r.Name)
	if err != nil {
		j.Close()
		return nil, err
	}
	s.st, s.id = j, st.ID
	return CreatedStudy{created, studyview.SummaryOf(j.Snapshot(), st)}, nil
}

func (r *request) config(path string) (study.Config, error) {
	c := study.Config{Name: r.Name, Seed: r.Seed, MetricNames: r.Metrics, ResourceUnit: "Steps"}
	if c.Name == "" {
		c.Name = nameOfStudy(path)
	}
	var err error
	if c.Directions, err = directions("direction", r.Directions, len(r.Metrics)); err != nil {
		return c, err
	}
	if c.Seed == nil {
		seed := rand.Uint64N(1 << 53)
		c.Seed = &seed
	}
	if given(r.Space) {
		if c.Space, err = space.Parse("space", r.Space); err != nil {
			return c, cli.Usagef("%v", err)
		}
	}
	return c, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// study is the study as it stands.
func (s *conversation) study() (*study.Snapshot, *study.Study, error) {
	snap := s.st.Snapshot()
	st, err := snap.Study(s.id)
	return snap, st, err
}

// values are the results in a request: numbers, "NaN", "Infinity", "-Infinity".
func (r *request) values(st *study.Study) ([]float64, error) {
	values := make([]float64, len(r.Values))
	for i, raw := range r.Values {
		v, err := strconv.ParseFloat(plainText(raw), 64)
		if err != nil && !math.IsInf(v, 0) {
			return nil, cli.Usagef("value %.40s is not a number", raw)
		}
		values[i] = v
	}
	return values, checkCount(st, values)
}

// report writes an intermediate value. One that comes again, because its outcome was
// unknown, is not written again.
func (s *conversation) report(ctx context.Context, t *runningTrial, r *request) error {
	_, st, err := s.study()
	if err != nil {
		return err
	}
	values, err := r.values(st)
	if err != nil {
		return err
	}
	report := &study.MutateReport{Step: r.Step, Values: values}
	err = s.change(ctx, t, func(tx *study.Tx) error {
		if t.unsure != nil && sameReport(t.unsure, report) {
			if now, err := tx.Snapshot().Trial(t.fence.Trial); err != nil || reported(now, report) {
				return err
			}
		}
		return tx.LifecycleFenced(t.fence, report)
	})
	t.unsure = nil
	if cli.As[*journal.UncertainError](err) {
		t.unsure = report
	}
	return err
}

// reported tells whether a report is the latest of its trial.
func reported(t *study.Trial, r *study.MutateReport) bool {
	step, values, ok := t.LastReport()
	return ok && sameReport(r, &study.MutateReport{Step: step, Values: values})
}

func sameReport(a, b *study.MutateReport) bool {
	return a.Step == b.Step && slices.EqualFunc(a.Values, b.Values, func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y)
	})
}

func (s *conversation) shouldPrune(r *request) (any, error) {
	snap, st, err := s.study()
	if err != nil {
		return nil, err
	}
	t, err := pickTrial(snap, st, *r.Trial)
	if err != nil {
		return nil, err
	}
	return viewPrune(snap, st, t)
}

func (s *conversation) tell(ctx context.Context, t *runningTrial, r *request) (any, error) {
	_, st, err := s.study()
	if err != nil {
		return nil, err
	}
	o := tellOptions{number: *r.Trial, reason: r.Error}
	if o.state, err = study.ParseState(r.State); err != nil || !o.state.Terminal() {
		return nil, cli.Usagef("state %q: complete, pruned or failed", r.State)
	}
	if o.state == study.Complete {
		if o.values, err = r.values(st); err != nil {
			return nil, err
		}
	}
	err = s.finish(ctx, t, study.Outcome{State: o.state, Values: o.values, Error: o.reason})
	if err != nil && !cli.Is(study.ErrFenced)(err) {
		return nil, o.keep(err)
	}
	delete(s.running, *r.Trial)
	if err != nil {
		return nil, o.keep(err)
	}
	if err := s.deliverPending(ctx); err != nil {
		return nil, fmt.Errorf("the result is recorded, but what follows it is not: %w", err)
	}
	return s.look(ctx, &request{Do: "trial", Trial: r.Trial})
}

func (s *conversation) setAttr(ctx context.Context, r *request, t *runningTrial) error {
	if r.Key == "" || !given(r.Value) && string(r.Value) != "null" {
		return cli.Usagef("request %q: key or value is missing", r.Do)
	}
	value, err := serde.AppendPortable([]byte{}, r.Value)
	if err != nil {
		return cli.Usagef("value: %v", err)
	}
	if t == nil {
		return s.st.Update(ctx, func(tx *study.Tx) error { return tx.SetStudyUserAttr(s.id, r.Key, value) })
	}
	return s.change(ctx, t, func(tx *study.Tx) error {
		return tx.LifecycleFenced(t.fence, &study.MutateUserAttr{Key: r.Key, Value: value})
	})
}

// textsKey is the study attribute that keeps the given values of a trial which
// are not numbers or truth values, where the study does not declare their
// choices.
func textsKey(id study.TrialID) string {
	return study.SystemPrefix + "given:" + strconv.FormatUint(uint64(id), 10)
}

func (s *conversation) enqueue(ctx context.Context, r *request) (any, error) {
	_, st, err := s.study()
	if err != nil {
		return nil, err
	}
	tpl, texts := new(study.Template), map[string]json.RawMessage{}
	for name, raw := range r.Params {
		if c := raw[0]; st.Config.Space == nil && (c == '"' || c == '[' || c == '{' || c == 'n') {
			texts[name] = raw
			continue
		}
		v, err := asktell.ParseParam(st, name, plainText(raw))
		if err != nil {
			return nil, cli.Usagef("parameter %q: %w", name, err)
		}
		tpl.Fixed = append(tpl.Fixed, study.FixedParam{Name: name, Value: v})
	}
	var id study.TrialID
	var created bool
	err = s.st.Update(ctx, func(tx *study.Tx) error {
		if id, created, err = asktell.Enqueue(tx, s.id, tpl, asktell.EnqueueOptions{Key: r.Key}); err != nil || !created || len(texts) == 0 {
			return err
		}
		value, err := json.Marshal(texts)
		if err != nil {
			return err
		}
		return tx.SetStudySystemAttr(s.id, textsKey(id), value)
	})
	if err != nil {
		return nil, err
	}
	snap, st, err := s.study()
	if err != nil {
		return nil, err
	}
	t, err := snap.Trial(id)
	if err != nil {
		return nil, err
	}
	return EnqueuedTrial{created, AskedTrial{st.Config.Name, studyview.TrialOf(snap, st, t)}}, nil
}

// look answers what only reads, after what others have written.
func (s *conversation) look(ctx context.Context, r *request) (any, error) {
	if err := s.st.Refresh(ctx); err != nil {
		return nil, err
	}
	snap, st, err := s.study()
	if err != nil {
		return nil, err
	}
	switch r.Do {
	case "study":
		return studyview.SummaryOf(snap, st), nil
	case "trial":
		if r.Trial == nil {
			return nil, cli.Usagef("request %q: it has no trial", r.Do)
		}
		t, err := pickTrial(snap, st, *r.Trial)
		if err != nil {
			return nil, err
		}
		return studyview.CurveOf(snap, st, t), nil
	}
	list := []studyview.CurvedTrial{}
	if r.Do == "best" {
		best, err := snap.Best(s.id)
		for _, t := range best {
			list = append(list, studyview.CurveOf(snap, st, t))
		}
		return list, err
	}
	for t := range snap.Trials(s.id, study.TrialFilter{}) {
		if len(r.States) == 0 || slices.Contains(r.States, t.State.Name()) {
			list = append(list, studyview.CurveOf(snap, st, t))
		}
	}
	return list, nil
}
