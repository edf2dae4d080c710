package main

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/foldlog/foldlog/metrics"
)

// The structs here are what the metrics commands have in common in their
// --json contract: fields are added and never renamed or removed. Times are
// Unix milliseconds; a number that is not finite is the string "NaN",
// "Infinity" or "-Infinity"; integers stay integers.

// runView is a run, and one line of `foldlog metrics show --json`.
type runView struct {
	Path        string           `json:"path"`
	Slug        string           `json:"slug"`
	Description string           `json:"description"`
	Status      metrics.Status   `json:"status"`      // running, done or failed
	Interrupted string           `json:"interrupted"` // the signal that stopped the newest process, "" if none did
	Stage       string           `json:"stage"`       // that the newest stage change moved to
	FirstMS     int64            `json:"first_ms"`    // the time of the first event
	LastMS      int64            `json:"last_ms"`     // the time of the last event
	Events      int64            `json:"events"`
	Points      int64            `json:"points"`     // metric events
	BadLines    int64            `json:"bad_lines"`  // that are no events
	TornBytes   int64            `json:"torn_bytes"` // of a last line without its newline
	Metadata    json.RawMessage  `json:"metadata"`   // of the newest open
	Segments    []segmentView    `json:"segments"`   // one per process
	Checkpoints []checkpointView `json:"checkpoints"`
	Failures    []failureView    `json:"failures"`
	Curves      []curveView      `json:"curves"` // one per name, those that --metric wants
}

// segmentView is what one process wrote.
type segmentView struct {
	FirstMS     int64        `json:"first_ms"`
	LastMS      int64        `json:"last_ms"`
	FirstStep   int64        `json:"first_step"` // of its metrics, 0 without any
	LastStep    int64        `json:"last_step"`
	Points      int64        `json:"points"`
	Resumed     string       `json:"resumed"`     // the checkpoint it continued from
	Interrupted string       `json:"interrupted"` // the signal that stopped it
	Done        bool         `json:"done"`
	Failed      bool         `json:"failed"`
	Changes     []changeView `json:"changes"` // of its open against the one before
}

// changeView is one difference.
type changeView struct {
	Path string `json:"path"` // keys joined with "/"; a source is "sources/" and its path
	From string `json:"from"` // "" if it is new
	To   string `json:"to"`   // "" if it is gone
}

// checkpointView is a checkpoint that was written.
type checkpointView struct {
	Step    int64   `json:"step"`
	MS      int64   `json:"ms"`
	Path    string  `json:"path"`
	Seconds float64 `json:"seconds"`
}

// failureView is a failure that was told.
type failureView struct {
	Step  int64  `json:"step"`
	MS    int64  `json:"ms"`
	Error string `json:"error"`
}

// curveView is a metric name.
type curveView struct {
	Name string `json:"name"`
	statsView
	Series []seriesView `json:"series"`
}

// seriesView is the points of a name with one metadata.
type seriesView struct {
	Metadata json.RawMessage `json:"metadata"`
	statsView
}

// statsView sums up points.
type statsView struct {
	Count     int64          `json:"count"`
	NonFinite int64          `json:"non_finite"` // NaN and infinities among them
	Last      metrics.Number `json:"last"`
	LastStep  int64          `json:"last_step"`
	LastMS    int64          `json:"last_ms"`
	Min       *float64       `json:"min"` // of the finite points, null without any
	MinStep   int64          `json:"min_step"`
	Max       *float64       `json:"max"`
	MaxStep   int64          `json:"max_step"`
}

func viewRun(run *foldedRun, want func(name string) bool) runView {
	f := &run.fold
	v := runView{
		Path: run.path, Slug: f.Slug, Description: f.Description, Status: f.Status, Interrupted: f.Interrupted(), Stage: f.Stage(),
		FirstMS: f.FirstTSMS, LastMS: f.LastTSMS, Events: f.Events, Points: f.Metrics, BadLines: run.bad, TornBytes: run.torn,
		Metadata: rawMetadata(f.Metadata), Segments: viewSegments(f), Curves: []curveView{},
		Checkpoints: []checkpointView{}, Failures: []failureView{},
	}
	for _, m := range f.MarksOf(metrics.NoteCheckpoint) {
		v.Checkpoints = append(v.Checkpoints, checkpointView{m.Step, m.TSMS, m.Checkpoint, m.Seconds})
	}
	for _, m := range f.MarksOf(metrics.NoteFailed) {
		v.Failures = append(v.Failures, failureView{m.Step, m.TSMS, m.Error})
	}
	for _, c := range f.Curves() {
		if want(c.Name) {
			v.Curves = append(v.Curves, viewMetric(c))
		}
	}
	return v
}

func viewMetric(c *metrics.Curve) curveView {
	v := curveView{Name: c.Name, statsView: viewStats(c.Stats), Series: []seriesView{}}
	for _, s := range c.Series {
		v.Series = append(v.Series, seriesView{rawMetadata(s.Metadata), viewStats(s.Stats)})
	}
	return v
}

func viewStats(s metrics.Stats) statsView {
	v := statsView{Count: s.Count, NonFinite: s.NonFinite, Last: s.Last, LastStep: s.LastStep, LastMS: s.LastMS}
	if s.Count > s.NonFinite {
		v.Min, v.Max, v.MinStep, v.MaxStep = &s.Min, &s.Max, s.MinStep, s.MaxStep
	}
	return v
}

func viewSegments(f *metrics.Fold) []segmentView {
	list := []segmentView{}
	for _, s := range f.Segments {
		list = append(list, segmentView{
			FirstMS: s.FirstTSMS, LastMS: s.LastTSMS, FirstStep: s.FirstStep, LastStep: s.LastStep, Points: s.Metrics,
			Resumed: s.Resumed, Interrupted: s.Interrupted, Done: s.Done, Failed: s.Failed, Changes: viewChanges(s.Changes),
		})
	}
	return list
}

func viewChanges(changes []metrics.Change) []changeView {
	list := []changeView{}
	for _, c := range changes {
		list = append(list, changeView{c.Path, c.From, c.To})
	}
	return list
}

// rawMetadata is metadata as JSON, an empty object without any.
func rawMetadata(m metrics.Metadata) json.RawMessage {
	if !json.Valid([]byte(m)) {
		return json.RawMessage("{}")
	}
	return json.RawMessage(m)
}

// numberText is a number for people, with at most six digits that matter.
func numberText(n metrics.Number) string {
	if n.IsInteger() {
		return n.String()
	}
	return floatText(n.Float64())
}

func floatText(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return metrics.Float(f).String()
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}
