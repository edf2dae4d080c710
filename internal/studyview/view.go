// Package studyview is what people and programs see of studies: the JSON of the study
// commands, the CSV and JSON of exports, comparisons and importances, and how values
// are spelled for people.
//
// The structs are the --json contract that docs/json.md describes: fields are added and
// never renamed or removed. Times are Unix milliseconds by the clock of whoever wrote,
// 0 if it has not happened. Lists and objects are never null.
package studyview

import (
	"encoding/json"
	"iter"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// Number is a float whose NaN and infinities are the strings "NaN",
// "Infinity" and "-Infinity" in JSON.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) { return serde.AppendFloat(nil, float64(n)), nil }

// String is the number as people and CSV readers get it.
func (n Number) String() string { return serde.Text(serde.AppendFloat(nil, float64(n))) }

// Numbers are values as they are in JSON.
func Numbers(values []float64) []Number {
	list := make([]Number, len(values))
	for i, v := range values {
		list[i] = Number(v)
	}
	return list
}

// Params is an object of parameter values in the order of the parameters:
// numbers, truth values, and what a choice stands for.
type Params []study.Param

// MarshalJSON implements json.Marshaler.
func (ps Params) MarshalJSON() ([]byte, error) {
	return study.AppendParams(nil, ps), nil
}

// FixedParams are the values given in advance, with their distributions where
// the study declares them.
func FixedParams(st *study.Study, t *study.Trial) Params {
	if t.Template == nil {
		return Params{}
	}
	ps := make(Params, len(t.Template.Fixed))
	for i, f := range t.Template.Fixed {
		ps[i] = study.Param{Name: f.Name, Value: f.Value, Dist: st.Config.Space.Dist(f.Name)}
	}
	return ps
}

// Attrs is an object of user attributes.
type Attrs map[string]json.RawMessage

// Trial is one trial in JSON.
type Trial struct {
	Number      uint64   `json:"number"` // within its study, from 0
	ID          uint64   `json:"id"`     // within its journal, from 0
	State       string   `json:"state"`  // waiting, running, paused, complete, pruned or failed
	Values      []Number `json:"values"` // final, one per objective; empty without
	Params      Params   `json:"params"`
	Fixed       Params   `json:"fixed"`        // given in advance
	Managed     bool     `json:"managed"`      // driven by lifecycle operations
	Worker      *uint64  `json:"worker"`       // who claimed it last, null if nobody
	Epoch       uint64   `json:"epoch"`        // how often it was claimed
	GraceMS     *int64   `json:"grace_ms"`     // the lease that its claim stated, null if none
	Attempt     uint64   `json:"attempt"`      // from 1
	MaxAttempts uint64   `json:"max_attempts"` // 0 without a cap
	RetryOf     *uint64  `json:"retry_of"`     // the number of the trial that it repeats, null if none
	CreatedMS   uint64   `json:"created_ms"`
	StartedMS   uint64   `json:"started_ms"` // the last start
	EndedMS     uint64   `json:"ended_ms"`
	HeartbeatMS uint64   `json:"heartbeat_ms"` // the owner's last sign of life
	Error       string   `json:"error"`        // why it failed
	Reports     int64    `json:"reports"`      // how many intermediate values there are
	Attrs       Attrs    `json:"attrs"`        // user attributes
	Log         *string  `json:"log"`          // its output, relative to the journal's directory or absolute; null without
	Run         *string  `json:"run"`          // slug of the run that its metrics are kept as, null without
	OnHold      bool     `json:"on_hold"`      // it is not taken up before study resume
}

// TrialOf is a trial in JSON.
func TrialOf(snap *study.Snapshot, st *study.Study, t *study.Trial) Trial {
	v := Trial{
		Number: t.Number, ID: uint64(t.ID), State: t.State.Name(), Values: Numbers(t.Values),
		Params: Params(t.Params), Fixed: FixedParams(st, t), Managed: t.Managed,
		Epoch: t.Epoch, GraceMS: GraceMillis(t), Attempt: t.Attempt, MaxAttempts: t.MaxAttempts,
		CreatedMS: t.CreatedMillis, StartedMS: t.StartedMillis, EndedMS: t.EndedMillis, HeartbeatMS: t.HeartbeatMillis,
		Error: t.Error, Reports: int64(t.NumReports()), Attrs: Attrs{},
	}
	if t.Epoch > 0 {
		owner := t.Owner
		v.Worker = &owner
	}
	if parent := ParentOf(snap, t); parent != nil {
		v.RetryOf = &parent.Number
	}
	for key, attr := range UserAttrs(t.Attrs()) {
		v.Attrs[key] = attr.Value
	}
	v.OnHold = runner.OnHold(st, t)
	v.Log = serde.OrNull(runner.TrialLog(t))
	slug, _ := runner.TrialRun(t)
	v.Run = serde.OrNull(slug)
	return v
}

// ParentOf is the trial of the same study that t repeats, nil without.
func ParentOf(snap *study.Snapshot, t *study.Trial) *study.Trial {
	id, ok := t.Parent()
	if !ok {
		return nil
	}
	parent, err := snap.Trial(id)
	if err != nil || parent.Study != t.Study {
		return nil
	}
	return parent
}

// CurvedTrial is a trial with everything that was reported.
type CurvedTrial struct {
	Trial
	Curve []Report `json:"curve"` // in the order written; a step may come again, the last one counts
}

// Report is one report of intermediate values.
type Report struct {
	Step   uint64   `json:"step"`
	Values []Number `json:"values"`
}

// CurveOf is a trial with its reports in JSON.
func CurveOf(snap *study.Snapshot, st *study.Study, t *study.Trial) CurvedTrial {
	v := CurvedTrial{Trial: TrialOf(snap, st, t), Curve: make([]Report, 0, t.NumReports())}
	for step, values := range t.Reports() {
		v.Curve = append(v.Curve, Report{step, Numbers(values)})
	}
	return v
}

// Summary is one study in JSON.
type Summary struct {
	Name       string      `json:"name"`
	ID         uint64      `json:"id"`         // within its journal, from 0
	Directions []string    `json:"directions"` // minimize or maximize, one per objective
	Metrics    []string    `json:"metrics"`    // the names of the objectives
	Seed       *string     `json:"seed"`       // all 64 bits in decimal, null if there is none
	Unit       string      `json:"unit"`       // what steps count, "" if it is not said
	Space      []Param     `json:"space"`      // the declared parameters
	CreatedMS  uint64      `json:"created_ms"`
	Trials     int64       `json:"trials"`
	States     StateCounts `json:"states"`  // how many trials are in each
	Best       []BestTrial `json:"best"`    // the best trial, or the Pareto front
	Attrs      Attrs       `json:"attrs"`   // user attributes
	Deleted    bool        `json:"deleted"` // hidden, its name free for another
}

// StateCounts is the number of trials in every state.
type StateCounts struct {
	Waiting  int `json:"waiting"`
	Running  int `json:"running"`
	Paused   int `json:"paused"`
	Complete int `json:"complete"`
	Pruned   int `json:"pruned"`
	Failed   int `json:"failed"`
}

// CountsOf counts the trials of a study.
func CountsOf(st *study.Study) StateCounts {
	c := st.Counts()
	return StateCounts{c[study.Waiting], c[study.Running], c[study.Paused], c[study.Complete], c[study.Pruned], c[study.Failed]}
}

// Add adds the counts of another study.
func (c *StateCounts) Add(o StateCounts) {
	c.Waiting, c.Running, c.Paused = c.Waiting+o.Waiting, c.Running+o.Running, c.Paused+o.Paused
	c.Complete, c.Pruned, c.Failed = c.Complete+o.Complete, c.Pruned+o.Pruned, c.Failed+o.Failed
}

// String is "1 waiting, 4 complete", without the states that no trial is in.
func (c StateCounts) String() string {
	var texts []string
	for _, s := range []struct {
		n    int
		name string
	}{
		{c.Waiting, "waiting"}, {c.Running, "running"}, {c.Paused, "paused"},
		{c.Complete, "complete"}, {c.Pruned, "pruned"}, {c.Failed, "failed"},
	} {
		if s.n > 0 {
			texts = append(texts, cli.Count(int64(s.n))+" "+s.name)
		}
	}
	return strings.Join(texts, ", ")
}

// BestTrial names a trial and its values.
type BestTrial struct {
	Number uint64   `json:"number"`
	Values []Number `json:"values"`
}

// Param is one declared parameter.
type Param struct {
	Name    string            `json:"name"`
	Type    string            `json:"type"`    // float, int, categorical or bool; other if it is unknown
	Low     json.RawMessage   `json:"low"`     // number, null if there is none
	High    json.RawMessage   `json:"high"`    // number, null if there is none
	Log     bool              `json:"log"`     // drawn in the logarithm
	Step    json.RawMessage   `json:"step"`    // number, null without a grid
	Choices []json.RawMessage `json:"choices"` // of a categorical parameter
	When    []Condition       `json:"when"`    // what it is there for, all of them; empty for always
}

// Condition is what a parameter depends on.
type Condition struct {
	Param  string            `json:"param"`  // the other parameter
	Values []json.RawMessage `json:"values"` // the values that it may have; empty for a range
	Low    json.RawMessage   `json:"low"`    // the least value, null if it is open
	High   json.RawMessage   `json:"high"`   // the greatest value, null if it is open
}

// Summaries describes every study of a journal.
func Summaries(snap *study.Snapshot) []Summary {
	list := []Summary{}
	for st := range snap.Studies() {
		list = append(list, SummaryOf(snap, st))
	}
	return list
}

// SummaryOf describes one study.
func SummaryOf(snap *study.Snapshot, st *study.Study) Summary {
	s := Summary{
		Name: st.Config.Name, ID: uint64(st.ID), Directions: st.DirectionNames(), Metrics: st.ObjectiveNames(),
		Unit: st.Config.ResourceUnit, Space: SpaceOf(st), CreatedMS: st.CreatedMillis, Trials: int64(st.NumTrials()),
		States: CountsOf(st),
		Best:   []BestTrial{}, Attrs: Attrs{}, Deleted: st.Deleted(),
	}
	if st.Config.Seed != nil {
		seed := strconv.FormatUint(*st.Config.Seed, 10)
		s.Seed = &seed
	}
	best, _ := snap.Best(st.ID) // the study is of this snapshot
	for _, t := range best {
		s.Best = append(s.Best, BestTrial{t.Number, Numbers(t.Values)})
	}
	for key, attr := range UserAttrs(st.Attrs()) {
		s.Attrs[key] = attr.Value
	}
	return s
}

// UserAttrs leaves out the attributes that are Foldlog's own.
func UserAttrs(attrs iter.Seq2[string, study.Attr]) iter.Seq2[string, study.Attr] {
	return func(yield func(string, study.Attr) bool) {
		for key, attr := range attrs {
			if !strings.HasPrefix(key, study.SystemPrefix) && !yield(key, attr) {
				return
			}
		}
	}
}

// Objectives spells what a study is about: "minimize loss, maximize reward".
func Objectives(st *study.Study) string {
	parts := st.DirectionNames()
	for i, name := range st.ObjectiveNames() {
		parts[i] += " " + name
	}
	return strings.Join(parts, ", ")
}

// SpaceOf are the declared parameters of a study.
func SpaceOf(st *study.Study) []Param {
	list := []Param{}
	if st.Config.Space == nil {
		return list
	}
	for _, p := range st.Config.Space.Params {
		v := viewParam(p)
		for _, c := range p.When {
			v.When = append(v.When, viewCondition(c, st.Config.Space.Dist(c.Param)))
		}
		list = append(list, v)
	}
	return list
}

func viewParam(p study.SpaceParam) Param {
	v := Param{Name: p.Name, Type: "other", Choices: []json.RawMessage{}, When: []Condition{}}
	switch d := p.Dist.(type) {
	case study.FloatDist:
		v.Type, v.Log = "float", d.Log
		v.Low, v.High = serde.AppendFloat(nil, d.Low), serde.AppendFloat(nil, d.High)
		if d.Step != 0 {
			v.Step = serde.AppendFloat(nil, d.Step)
		}
	case study.IntDist:
		v.Type, v.Log = "int", d.Log
		v.Low, v.High = strconv.AppendInt(nil, d.Low, 10), strconv.AppendInt(nil, d.High, 10)
		if d.Step != 0 {
			v.Step = strconv.AppendInt(nil, d.Step, 10)
		}
	case study.BoolDist:
		v.Type = "bool"
	case *study.CatDist:
		v.Type = "categorical"
		for _, c := range d.Choices {
			v.Choices = append(v.Choices, json.RawMessage(c.Value.JSON))
		}
	}
	return v
}

func viewCondition(c study.Condition, dist study.Distribution) Condition {
	values, low, high := c.JSON(dist)
	return Condition{c.Param, values, low, high}
}

// String is a condition as people read it: "optimizer is adam or sgd".
func (c Condition) String() string {
	texts := make([]string, len(c.Values))
	for i, v := range c.Values {
		texts[i] = serde.Text(v)
	}
	switch {
	case len(texts) > 0:
		return c.Param + " is " + strings.Join(texts, " or ")
	case c.High == nil:
		return c.Param + " is at least " + string(c.Low)
	case c.Low == nil:
		return c.Param + " is at most " + string(c.High)
	}
	return c.Param + " is from " + string(c.Low) + " to " + string(c.High)
}

// String is a declared parameter as people read it.
func (p Param) String() string {
	s := p.Name + ": " + p.Type
	switch p.Type {
	case "float", "int":
		s += " from " + string(p.Low) + " to " + string(p.High)
	case "categorical":
		texts := make([]string, len(p.Choices))
		for i, c := range p.Choices {
			texts[i] = serde.Text(c)
		}
		s += ", one of " + strings.Join(texts, ", ")
	}
	if p.Log {
		s += ", logarithmic"
	}
	if step := string(p.Step); step != "" && step != "1" {
		s += ", step " + step
	}
	for i, c := range p.When {
		s += []string{", if ", " and "}[min(i, 1)] + c.String()
	}
	return s
}

// RoundCells are a trial's values and parameters in a row of a table, "" where it has none.
func RoundCells(t *study.Trial, objectives int, params []string) []string {
	row := Cells(t, objectives, params)
	for i := range min(objectives, len(t.Values)) {
		row[i] = Significant(t.Values[i])
	}
	for i, name := range params {
		if p, ok := t.Param(name); ok && p.Value.Kind() == study.ValueF64 {
			row[objectives+i] = Significant(p.Value.F64())
		}
	}
	return row
}

// Cells are a trial's values and parameters in whole, "" where it has none.
func Cells(t *study.Trial, objectives int, params []string) []string {
	row := make([]string, objectives+len(params))
	for i := range min(objectives, len(t.Values)) {
		row[i] = Number(t.Values[i]).String()
	}
	for i, name := range params {
		if p, ok := t.Param(name); ok {
			row[objectives+i] = p.Text()
		}
	}
	return row
}

// Results spells values in whole with the names of their objectives: "loss 0.42,
// reward 0.58".
func Results(st *study.Study, values []float64) string {
	return resultsText(st, values, func(v float64) string { return Number(v).String() })
}

// RoundResults are Results with six digits.
func RoundResults(st *study.Study, values []float64) string {
	return resultsText(st, values, Significant)
}

func resultsText(st *study.Study, values []float64, spell func(float64) string) string {
	names := st.ObjectiveNames()
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = spell(v)
		if i < len(names) {
			parts[i] = names[i] + " " + parts[i]
		}
	}
	return strings.Join(parts, ", ")
}

// GraceMillis is the lease that the owner of a trial asked for, nil without.
func GraceMillis(t *study.Trial) *int64 {
	millis := t.Lease().Milliseconds()
	if millis == 0 {
		return nil
	}
	return &millis
}
