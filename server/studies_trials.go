package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
)

func whenOf(st *study.Study, c study.Condition) wire.ParamWhen {
	values, low, high := c.JSON(st.Config.Space.Dist(c.Param))
	v := wire.ParamWhen{Param: c.Param, Values: []wire.Any{}, Low: wire.Any(low), High: wire.Any(high)}
	for _, value := range values {
		v.Values = append(v.Values, wire.Any(value))
	}
	return v
}

func spaceOf(st *study.Study) []wire.ParamSpace {
	list := []wire.ParamSpace{}
	if st.Config.Space == nil {
		return list
	}
	num := func(v float64) *wire.Number { n := wire.Number(v); return &n }
	for _, p := range st.Config.Space.Params {
		v := wire.ParamSpace{Name: p.Name, Type: "other", Choices: []wire.Any{}, When: []wire.ParamWhen{}}
		switch d := p.Dist.(type) {
		case study.FloatDist:
			v.Type, v.Log, v.Low, v.High = "float", d.Log, num(d.Low), num(d.High)
			if d.Step != 0 {
				v.Step = num(d.Step)
			}
		case study.IntDist:
			v.Type, v.Log, v.Low, v.High = "int", d.Log, num(float64(d.Low)), num(float64(d.High))
			if d.Step != 0 {
				v.Step = num(float64(d.Step))
			}
		case study.BoolDist:
			v.Type = "bool"
		case *study.CatDist:
			v.Type = "categorical"
			for _, c := range d.Choices {
				v.Choices = append(v.Choices, wire.Any(c.Value.JSON))
			}
		}
		for _, c := range p.When {
			v.When = append(v.When, whenOf(st, c))
		}
		list = append(list, v)
	}
	return list
}

type studyInput struct {
	ID string `path:"id" maxLength:"64" doc:"of the study in this API"`
}

func (s *Server) getStudy(ctx context.Context, in *studyInput) (*struct{ Body wire.StudyDetail }, error) {
	log, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &struct{ Body wire.StudyDetail }{wire.StudyDetail{StudyItem: log.itemOf(snap, st), Space: spaceOf(st), Attrs: attrsOf(st.Attrs())}}, nil
}

// attrsOf is the user attributes, without those that are Foldlog's own.
func attrsOf(attrs iter.Seq2[string, study.Attr]) wire.Object {
	found := map[string]json.RawMessage{}
	for key, attr := range attrs {
		if !strings.HasPrefix(key, study.SystemPrefix) {
			found[key] = attr.Value
		}
	}
	b, err := json.Marshal(found)
	if err != nil {
		return nil
	}
	return b
}

func trialItem(snap *study.Snapshot, st *study.Study, t *study.Trial) wire.TrialItem {
	v := wire.TrialItem{
		Number: int(t.Number), ID: wire.Count(t.ID), State: t.State.Name(), Values: t.Values,
		Params: study.AppendParams(nil, t.Params), Fixed: fixedOf(st, t), Managed: t.Managed, Epoch: wire.Count(t.Epoch),
		LeaseMS: t.Lease().Milliseconds(), Attempt: int(t.Attempt), MaxAttempts: int(t.MaxAttempts),
		CreatedMS: int64(t.CreatedMillis), StartedMS: int64(t.StartedMillis), EndedMS: int64(t.EndedMillis), HeartbeatMS: int64(t.HeartbeatMillis),
		Error: cutError(t.Error, 300), Reports: t.NumReports(), Attrs: userAttrs(t),
	}
	v.Run, _ = runner.TrialRun(t)
	if t.Epoch > 0 {
		worker := wire.Count(t.Owner)
		v.Worker = &worker
	}
	if id, ok := t.Parent(); ok {
		if parent, err := snap.Trial(id); err == nil && parent.Study == t.Study {
			n := int(parent.Number)
			v.RetryOf = &n
		}
	}
	if step, _, ok := t.LastReport(); ok {
		last := wire.Count(step)
		v.LastStep = &last
	}
	return v
}

// userAttrs counts the attributes that are not Foldlog's own.
func userAttrs(t *study.Trial) (n int) {
	if t.NumAttrs() == 0 {
		return 0
	}
	for key := range t.Attrs() {
		if !strings.HasPrefix(key, study.SystemPrefix) {
			n++
		}
	}
	return n
}

func cutRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}

// cutError cuts an error of several lines to n runes. What happened is its first line,
// and why at its end, where most languages name the exception.
func cutError(s string, n int) string {
	first, rest, more := strings.Cut(s, "\n")
	if !more || utf8.RuneCountInString(s) <= n {
		return cutRunes(s, n)
	}
	first = cutRunes(first, n/3)
	end := []rune(rest)
	if room := n - utf8.RuneCountInString(first) - len("\n.\n"); len(end) > room {
		return first + "\n…" + string(end[len(end)-room:])
	}
	return first + "\n" + rest
}

func fixedOf(st *study.Study, t *study.Trial) wire.Object {
	if t.Template == nil {
		return nil
	}
	params := make([]study.Param, len(t.Template.Fixed))
	for i, f := range t.Template.Fixed {
		params[i] = study.Param{Name: f.Name, Value: f.Value, Dist: st.Config.Space.Dist(f.Name)}
	}
	return study.AppendParams(nil, params)
}

type trialListInput struct {
	ID     string   `path:"id" maxLength:"64"`
	State  []string `query:"state,explode" doc:"only these states"`
	Where  []string `query:"where,explode" maxItems:"20" doc:"only trials for which all of these hold: KEY, a relation (= != < <= > >= ~) and a value. KEY is number, value, value:N, duration (ms), error, worker, param:NAME or attr:NAME."`
	Sort   string   `query:"sort" maxLength:"600" doc:"number (the default), started, ended, or a KEY as in where; descending with a minus before it. Trials without it come last."`
	From   int      `query:"from" minimum:"0" doc:"begin at this number, in the order of numbers"`
	Limit  int      `query:"limit" minimum:"0" maximum:"1000" doc:"trials per page, 100 if 0"`
	Offset int      `query:"offset" minimum:"0" doc:"begin behind so many of the trials that match; a cursor goes before it"`
	Cursor string   `query:"cursor" maxLength:"200"`
}

// sortedTrial is a trial with what it is ordered by.
type sortedTrial struct {
	trial *study.Trial
	key   sortKey
}

func (s *Server) listTrials(ctx context.Context, in *trialListInput) (*struct{ Body wire.TrialPage }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	list, err := chooseTrials(snap, st, in)
	if err != nil {
		return nil, err
	}
	if in.Cursor == "" {
		from = in.Offset
	}
	page := wire.TrialPage{Items: []wire.TrialItem{}, Total: len(list), Seq: wire.Count(snap.Seq())}
	list, page.Next = pageOf(list, from, pageSize(in.Limit))
	for _, t := range list {
		page.Items = append(page.Items, trialItem(snap, st, t.trial))
	}
	return &struct{ Body wire.TrialPage }{page}, nil
}

func chooseTrials(snap *study.Snapshot, st *study.Study, in *trialListInput) ([]sortedTrial, error) {
	filter := study.TrialFilter{From: uint64(in.From)}
	for _, name := range in.State {
		state, err := study.ParseState(name)
		if err != nil {
			return nil, problem(http.StatusBadRequest, "state "+strconv.Quote(name)+" is none")
		}
		filter.States = append(filter.States, state)
	}
	var keep []func(*study.Trial) bool
	for _, where := range in.Where {
		k, err := relation(where, trialKey)
		if err != nil {
			return nil, err
		}
		keep = append(keep, k)
	}
	order, down := strings.CutPrefix(in.Sort, "-")
	key, err := trialKey(cmp.Or(order, "number"))
	if err != nil {
		return nil, err
	}
	var list []sortedTrial
	for t := range snap.Trials(st.ID, filter) {
		if !slices.ContainsFunc(keep, func(k func(*study.Trial) bool) bool { return !k(t) }) {
			list = append(list, sortedTrial{t, key(t)})
		}
	}
	if order != "" && (order != "number" || down) {
		slices.SortStableFunc(list, func(a, b sortedTrial) int { return a.key.compare(b.key, down) })
	}
	return list, nil
}

// trialKey is what trials are ordered by and compared with.
func trialKey(key string) (func(*study.Trial) sortKey, error) {
	number := func(v func(*study.Trial) uint64) func(*study.Trial) sortKey {
		return func(t *study.Trial) sortKey {
			if n := v(t); n > 0 || key == "number" {
				return sortKey{number: float64(n)}
			}
			return noKey
		}
	}
	switch key {
	case "number":
		return number(func(t *study.Trial) uint64 { return t.Number }), nil
	case "started":
		return number(func(t *study.Trial) uint64 { return t.StartedMillis }), nil
	case "ended":
		return number(func(t *study.Trial) uint64 { return t.EndedMillis }), nil
	case "worker":
		return number(func(t *study.Trial) uint64 { return t.Owner }), nil
	case "duration":
		return number(func(t *study.Trial) uint64 {
			if t.EndedMillis > t.StartedMillis && t.StartedMillis > 0 {
				return t.EndedMillis - t.StartedMillis
			}
			return 0
		}), nil
	case "error":
		return func(t *study.Trial) sortKey { return textKey(t.Error) }, nil
	}
	kind, name, _ := strings.Cut(key, ":")
	switch kind {
	case "value":
		at, err := strconv.ParseUint(cmp.Or(name, "0"), 10, 16)
		if err == nil {
			return func(t *study.Trial) sortKey {
				if int(at) < len(t.Values) {
					return sortKey{number: t.Values[at]}
				}
				return noKey
			}, nil
		}
	case "param":
		return func(t *study.Trial) sortKey {
			if p, ok := t.Param(name); ok {
				return valueKey(p.Text())
			}
			return noKey
		}, nil
	case "attr":
		return func(t *study.Trial) sortKey {
			if a, ok := t.Attr(name); ok {
				return valueKey(serde.Text(a.Value))
			}
			return noKey
		}, nil
	}
	return nil, problem(http.StatusBadRequest, "a trial has no "+strconv.Quote(key))
}

type trialInput struct {
	ID     string `path:"id" maxLength:"64"`
	Number uint64 `path:"number"`
}

// trial finds a trial or answers 404.
func (s *Server) trial(ctx context.Context, id string, number uint64) (*journalLog, *study.Snapshot, *study.Study, *study.Trial, error) {
	log, snap, st, err := s.study(ctx, id)
	if err != nil {
		return nil, nil, nil, nil, err
	}
	t, err := snap.TrialByNumber(st.ID, number)
	if err != nil {
		return nil, nil, nil, nil, problem(http.StatusNotFound, fmt.Sprintf("study %q has no trial %d", st.Config.Name, number))
	}
	return log, snap, st, t, nil
}

func (s *Server) getTrial(ctx context.Context, in *trialInput) (*struct{ Body wire.TrialDetail }, error) {
	_, snap, st, t, err := s.trial(ctx, in.ID, in.Number)
	if err != nil {
		return nil, err
	}
	d := wire.TrialDetail{TrialItem: trialItem(snap, st, t), FullError: t.Error, UserAttrs: attrsOf(t.Attrs()), Lineage: []int{}}
	d.Curve.Steps, d.Curve.Values = wire.Integers{}, make([]wire.Numbers, len(st.Config.Directions))
	for i := range d.Curve.Values {
		d.Curve.Values[i] = wire.Numbers{}
	}
	for step, values := range t.Reports() {
		d.Curve.Steps = append(d.Curve.Steps, int64(step))
		for i := range d.Curve.Values {
			v := nan
			if i < len(values) {
				v = values[i]
			}
			d.Curve.Values[i] = append(d.Curve.Values[i], v)
		}
	}
	if line, err := snap.Lineage(t.ID); err == nil {
		for _, p := range line[1:] {
			d.Lineage = append(d.Lineage, int(p.Number))
		}
	}
	return &struct{ Body wire.TrialDetail }{d}, nil
}

func (s *Server) shouldPrune(ctx context.Context, in *trialInput) (*struct{ Body wire.PruneVerdict }, error) {
	_, snap, st, t, err := s.trial(ctx, in.ID, in.Number)
	if err != nil {
		return nil, err
	}
	p, err := pruner.Of(st)
	if err != nil {
		return nil, s.answer(err)
	}
	v := wire.PruneVerdict{Prune: p.Prune(pruner.NewHistory(snap, st), t), Pruner: pruner.TextOf(st)}
	if step, _, ok := t.LastReport(); ok {
		last := wire.Count(step)
		v.Step = &last
	}
	return &struct{ Body wire.PruneVerdict }{v}, nil
}
