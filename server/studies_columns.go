package server

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
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

// TrialColumns is trials by column, each as long as numbers: what history, slices,
// parallel coordinates and timelines are drawn from.
type TrialColumns struct {
	Seq     Count               `json:"seq" doc:"operations in the journal as of this answer"`
	Numbers Integers            `json:"numbers"`
	States  string              `json:"states" doc:"one letter for each trial: w, r, s (paused), c, p (pruned), f"`
	Values  []Numbers           `json:"values" doc:"one column for each objective; NaN where a trial has none"`
	Params  map[string]RawArray `json:"params" doc:"one column for each parameter; null where a trial has none"`
	Started Integers            `json:"started" doc:"milliseconds, 0 before"`
	Ended   Integers            `json:"ended" doc:"milliseconds, 0 before"`
	Workers []Count             `json:"workers" doc:"who claimed it last, 0 if nobody"`
}

// RawArray is an array of JSON values as they were written.
type RawArray []byte

// MarshalJSON implements json.Marshaler.
func (a RawArray) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("[]"), nil
	}
	return a, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *RawArray) UnmarshalJSON(b []byte) error {
	*a = append(RawArray(nil), b...)
	return nil
}

// Schema implements huma.SchemaProvider.
func (RawArray) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: &huma.Schema{}, Description: "any JSON values"}
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
	c := TrialColumns{Seq: Count(seq), Numbers: make(Integers, n), Values: make([]Numbers, len(st.Config.Directions)),
		Started: make(Integers, n), Ended: make(Integers, n), Workers: make([]Count, n), Params: paramColumns(list)}
	for i := range c.Values {
		c.Values[i] = make(Numbers, n)
	}
	states := make([]byte, n)
	for i, it := range list {
		t := it.trial
		c.Numbers[i], states[i] = int64(t.Number), stateLetter(t.State)
		c.Started[i], c.Ended[i] = int64(t.StartedMillis), int64(t.EndedMillis)
		if t.Epoch > 0 {
			c.Workers[i] = Count(t.Owner)
		}
		for k := range c.Values {
			c.Values[k][i] = nan
			if k < len(t.Values) {
				c.Values[k][i] = t.Values[k]
			}
		}
	}
	c.States = string(states)
	return c.append(nil)
}

func stateLetter(s study.State) byte { return "wrscpf"[s] }

// paramColumn is a column that is being built: a value or null for each of the
// first n trials.
type paramColumn struct {
	name string
	b    RawArray
	n    int
}

func (c *paramColumn) pad(to int) {
	for ; c.n < to; c.n++ {
		c.b = append(c.separate(), "null"...)
	}
}

func (c *paramColumn) separate() RawArray {
	if c.n == 0 {
		return append(c.b, '[')
	}
	return append(c.b, ',')
}

func paramColumns(list []sortedTrial) map[string]RawArray {
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
	out := make(map[string]RawArray, len(columns))
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

// append spells the columns; encoding/json would look at each of their bytes
// several times.
func (c *TrialColumns) append(b []byte) ([]byte, error) {
	b = append(b, `{"seq":"`...)
	b = strconv.AppendUint(b, uint64(c.Seq), 10)
	b = append(append(b, `","numbers":`...), c.Numbers.json()...)
	b = append(append(append(b, `,"states":"`...), c.States...), `","values":[`...)
	for i, v := range c.Values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v.json()...)
	}
	b = append(b, `],"params":{`...)
	names := slices.Sorted(maps.Keys(c.Params))
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(serde.AppendString(b, name), ':'), c.Params[name]...)
	}
	b = append(append(b, `},"started":`...), c.Started.json()...)
	b = append(append(b, `,"ended":`...), c.Ended.json()...)
	workers, err := json.Marshal(c.Workers)
	b = append(append(b, `,"workers":`...), workers...)
	return append(b, '}'), err
}

type studyCurvesInput struct {
	ID        string   `path:"id" maxLength:"64"`
	Number    []uint64 `query:"number,explode" maxItems:"1000" doc:"trials; left out: those with reports, the newest limit"`
	Limit     int      `query:"limit" minimum:"0" maximum:"1000" doc:"trials at most, 100 if 0"`
	Objective int      `query:"objective" minimum:"0"`
	Points    int      `query:"points" minimum:"0" maximum:"100000" doc:"points per trial at most, 200 if 0"`
}

// TrialCurves are the intermediate values of trials.
type TrialCurves struct {
	Seq   Count      `json:"seq"`
	Items []OneCurve `json:"items"`
}

// OneCurve is the current value at every step of one trial.
type OneCurve struct {
	Number  int      `json:"number"`
	State   string   `json:"state"`
	Steps   Integers `json:"steps"`
	Values  Numbers  `json:"values"`
	Total   int      `json:"total"`
	Sampled bool     `json:"sampled" doc:"there are fewer points here: the ends, and of each stretch the minimum and the maximum"`
}

func (s *Server) studyCurves(ctx context.Context, in *studyCurvesInput) (*struct{ Body TrialCurves }, error) {
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
	out := TrialCurves{Seq: Count(snap.Seq()), Items: []OneCurve{}}
	for _, t := range trials {
		out.Items = append(out.Items, oneCurve(t, in.Objective, points))
	}
	return &struct{ Body TrialCurves }{out}, nil
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

func oneCurve(t *study.Trial, objective, most int) OneCurve {
	points := t.Curve(objective)
	c := OneCurve{Number: int(t.Number), State: t.State.Name(), Steps: Integers{}, Values: Numbers{}, Total: len(points)}
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

// OutboxPage is what is still to be done after trials ended.
type OutboxPage struct {
	Items []OutboxItem `json:"items" doc:"the first 1000"`
	Total int          `json:"total"`
}

// OutboxItem is one entry.
type OutboxItem struct {
	Number  int            `json:"number" doc:"of the ended trial"`
	Epoch   Count          `json:"epoch"`
	Phase   string         `json:"phase" doc:"what comes next"`
	Effects []OutboxEffect `json:"effects"`
}

// OutboxEffect is one thing to be carried out.
type OutboxEffect struct {
	Name string `json:"name"`
	Done bool   `json:"done"`
}

func (s *Server) studyOutbox(ctx context.Context, in *studyInput) (*struct{ Body OutboxPage }, error) {
	_, snap, st, err := s.study(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	page := OutboxPage{Items: []OutboxItem{}}
	for t, e := range snap.Pending() {
		if t.Study != st.ID {
			continue
		}
		if page.Total++; len(page.Items) >= mostPage {
			continue
		}
		item := OutboxItem{Number: int(t.Number), Epoch: Count(e.Key.Epoch), Phase: e.Phase.Name(), Effects: []OutboxEffect{}}
		for _, effect := range e.Effects {
			item.Effects = append(item.Effects, OutboxEffect{effect.Name, effect.Done})
		}
		page.Items = append(page.Items, item)
	}
	return &struct{ Body OutboxPage }{page}, nil
}

func uitoa(n uint64) string { return strconv.FormatUint(n, 10) }
