package server

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

var nan = math.NaN()

type columnsInput struct {
	ID    string   `path:"id" maxLength:"64"`
	State []string `query:"state,explode" doc:"only these states"`
	Where []string `query:"where,explode" maxItems:"20" doc:"as of list-trials"`
	// Accept names packedType for the columns as arrays of numbers.
	Accept string `header:"Accept" maxLength:"1000" doc:"application/vnd.foldlog.columns for arrays of numbers: a PackedHead as the first line, and the bytes of the columns"`
}

func (s *Server) studyColumns(ctx context.Context, in *columnsInput) (*huma.StreamResponse, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	list, err := chooseTrials(snap, st, &trialListInput{State: in.State, Where: in.Where})
	if err != nil {
		return nil, err
	}
	kind, spell := "application/json", spellColumns
	if acceptsPacked(in.Accept) {
		kind, spell = packedType, packColumns
	}
	b, err := spell(snap.Seq(), st, list)
	if err != nil {
		return nil, s.answer(err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", kind)
		hc.SetHeader("Vary", "Accept")
		hc.BodyWriter().Write(b)
	}}, nil
}

// spellColumns spells trials as a TrialColumns.
func spellColumns(seq uint64, st *study.Study, list []sortedTrial) ([]byte, error) {
	n := len(list)
	c := wire.TrialColumns{Seq: wire.Count(seq), Numbers: make(wire.Integers, n), Values: make([]wire.Numbers, len(st.Config.Directions)),
		Started: make(wire.Integers, n), Ended: make(wire.Integers, n), Workers: make([]wire.Count, n), Params: paramColumns(list)}
	for i := range c.Values {
		c.Values[i] = make(wire.Numbers, n)
	}
	states := make([]byte, n)
	for i, it := range list {
		t := it.trial
		c.Numbers[i], states[i] = int64(t.Number), stateLetter(t.State)
		c.Started[i], c.Ended[i] = int64(t.StartedMillis), int64(t.EndedMillis)
		if t.Epoch > 0 {
			c.Workers[i] = wire.Count(t.Owner)
		}
		for k := range c.Values {
			c.Values[k][i] = nan
			if k < len(t.Values) {
				c.Values[k][i] = t.Values[k]
			}
		}
	}
	c.States = string(states)
	return c.AppendJSON(nil)
}

func stateLetter(s study.State) byte { return "wrscpf"[s] }

// paramColumn is a column that is being built: a value or null for each of the
// first n trials.
type paramColumn struct {
	name string
	b    wire.RawArray
	n    int
}

func (c *paramColumn) pad(to int) {
	for ; c.n < to; c.n++ {
		c.b = append(c.separate(), "null"...)
	}
}

func (c *paramColumn) separate() wire.RawArray {
	if c.n == 0 {
		return append(c.b, '[')
	}
	return append(c.b, ',')
}

func paramColumns(list []sortedTrial) map[string]wire.RawArray {
	var columns []*paramColumn
	at := map[string]int{}
	for i, it := range list {
		for k := range it.trial.Params {
			p := &it.trial.Params[k]
			// Trials have their parameters in the same order, mostly.
			if k >= len(columns) || columns[k].name != p.Name {
				j, ok := at[p.Name]
				if !ok {
					j = len(columns)
					at[p.Name] = j
					columns = append(columns, &paramColumn{name: p.Name})
				}
				columns[j].add(i, p)
				continue
			}
			columns[k].add(i, p)
		}
	}
	out := make(map[string]wire.RawArray, len(columns))
	for _, c := range columns {
		c.pad(len(list))
		out[c.name] = append(c.b, ']')
	}
	return out
}

func (c *paramColumn) add(i int, p *study.Param) {
	c.pad(i)
	c.b = p.Value.AppendJSON(c.separate(), p.Dist)
	c.n++
}

type studyCurvesInput struct {
	ID        string   `path:"id" maxLength:"64"`
	Number    []uint64 `query:"number,explode" maxItems:"1000" doc:"trials; left out: those with reports, the newest limit"`
	Limit     int      `query:"limit" minimum:"0" maximum:"1000" doc:"trials at most, 100 if 0"`
	Objective int      `query:"objective" minimum:"0"`
	Points    int      `query:"points" minimum:"0" maximum:"100000" doc:"points per trial at most, 200 if 0"`
}

func (s *Server) studyCurves(ctx context.Context, in *studyCurvesInput) (*struct{ Body wire.TrialCurves }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Objective >= len(st.Config.Directions) {
		return nil, problem(http.StatusBadRequest, "the study has no such objective")
	}
	var trials []*study.Trial
	for _, n := range in.Number {
		if t, err := snap.TrialByNumber(st.ID, n); err == nil {
			trials = append(trials, t)
		}
	}
	if len(in.Number) == 0 {
		trials = newestReported(snap, st, pageSize(in.Limit))
	}
	points := in.Points
	if points == 0 {
		points = 200
	}
	out := wire.TrialCurves{Seq: wire.Count(snap.Seq()), Items: []wire.OneCurve{}}
	for _, t := range trials {
		out.Items = append(out.Items, oneCurve(t, in.Objective, points))
	}
	return &struct{ Body wire.TrialCurves }{out}, nil
}

func newestReported(snap *study.Snapshot, st *study.Study, limit int) []*study.Trial {
	var list []*study.Trial
	for n := st.NumTrials() - 1; n >= 0 && len(list) < limit; n-- {
		if t, err := snap.TrialByNumber(st.ID, uint64(n)); err == nil && t.NumReports() > 0 {
			list = append(list, t)
		}
	}
	slices.Reverse(list)
	return list
}

func oneCurve(t *study.Trial, objective, most int) wire.OneCurve {
	points := t.Curve(objective)
	c := wire.OneCurve{Number: int(t.Number), State: t.State.Name(), Steps: wire.Integers{}, Values: wire.Numbers{}, Total: len(points)}
	for _, at := range spread(points, most) {
		c.Steps, c.Values = append(c.Steps, int64(points[at].Step)), append(c.Values, points[at].Value)
	}
	c.Sampled = len(c.Steps) < len(points)
	return c
}

// spread picks at most so many of the points: the ends, and of each stretch the
// lowest and the highest.
func spread(points []study.Point, most int) []int {
	n := len(points)
	var picked []int
	if n <= max(most, 4) {
		for i := range n {
			picked = append(picked, i)
		}
		return picked
	}
	buckets := max((most-2)/2, 1)
	picked = append(picked, 0)
	for b := range buckets {
		lo, hi := 1+b*(n-2)/buckets, 1+(b+1)*(n-2)/buckets
		low, high := lo, lo
		for i := lo; i < hi; i++ {
			if points[i].Value < points[low].Value {
				low = i
			}
			if points[i].Value > points[high].Value {
				high = i
			}
		}
		for _, i := range []int{min(low, high), max(low, high)} {
			if i > picked[len(picked)-1] {
				picked = append(picked, i)
			}
		}
	}
	return append(picked, n-1)
}

func (s *Server) studyOutbox(ctx context.Context, in *studyInput) (*struct{ Body wire.OutboxPage }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	page := wire.OutboxPage{Items: []wire.OutboxItem{}}
	for t, e := range snap.Pending() {
		if t.Study != st.ID {
			continue
		}
		if page.Total++; len(page.Items) >= mostPage {
			continue
		}
		item := wire.OutboxItem{Number: int(t.Number), Epoch: wire.Count(e.Key.Epoch), Phase: e.Phase.Name(), Effects: []wire.OutboxEffect{}}
		for _, effect := range e.Effects {
			item.Effects = append(item.Effects, wire.OutboxEffect{Name: effect.Name, Done: effect.Done})
		}
		page.Items = append(page.Items, item)
	}
	return &struct{ Body wire.OutboxPage }{page}, nil
}

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }
