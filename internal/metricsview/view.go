package metricsview

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

// View is a run, and one line of `foldlog metrics show --json`.
type View struct {
	Path        string          `json:"path"`
	Slug        string          `json:"slug"`
	Description string          `json:"description"`
	Status      metrics.Status  `json:"status"`      // running, done or failed
	Interrupted string          `json:"interrupted"` // the signal that stopped the newest process, "" if none did
	Stage       string          `json:"stage"`       // that the newest stage change moved to
	FirstMS     int64           `json:"first_ms"`    // the time of the first event
	LastMS      int64           `json:"last_ms"`     // the time of the last event
	Events      int64           `json:"events"`
	Points      int64           `json:"points"`     // metric events
	BadLines    int64           `json:"bad_lines"`  // that are no events
	TornBytes   int64           `json:"torn_bytes"` // of a last line without its newline
	Metadata    json.RawMessage `json:"metadata"`   // of the newest open
	Segments    []Segment       `json:"segments"`   // one per process
	Checkpoints []Checkpoint    `json:"checkpoints"`
	Failures    []Failure       `json:"failures"`
	Curves      []Curve         `json:"curves"` // one per name, those that --metric wants
}

// Segment is what one process wrote.
type Segment struct {
	FirstMS     int64    `json:"first_ms"`
	LastMS      int64    `json:"last_ms"`
	FirstStep   int64    `json:"first_step"` // of its metrics, 0 without any
	LastStep    int64    `json:"last_step"`
	Points      int64    `json:"points"`
	Resumed     string   `json:"resumed"`     // the checkpoint it continued from
	Interrupted string   `json:"interrupted"` // the signal that stopped it
	Done        bool     `json:"done"`
	Failed      bool     `json:"failed"`
	Changes     []Change `json:"changes"` // of its open against the one before
}

// Change is one difference.
type Change struct {
	Path string `json:"path"` // keys joined with "/"; a source is "sources/" and its path
	From string `json:"from"` // "" if it is new
	To   string `json:"to"`   // "" if it is gone
}

// Checkpoint is a checkpoint that was written.
type Checkpoint struct {
	Step    int64   `json:"step"`
	MS      int64   `json:"ms"`
	Path    string  `json:"path"`
	Seconds float64 `json:"seconds"`
}

// Failure is a failure that was told.
type Failure struct {
	Step  int64  `json:"step"`
	MS    int64  `json:"ms"`
	Error string `json:"error"`
}

// Curve is a metric name.
type Curve struct {
	Name string `json:"name"`
	Stats
	Series []Series `json:"series"`
}

// Series is the points of a name with one metadata.
type Series struct {
	Metadata json.RawMessage `json:"metadata"`
	Stats
}

// Stats sums up points.
type Stats struct {
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

// ViewOf is a run with those of its curves that are wanted by name.
func ViewOf(run *Run, want func(name string) bool) View {
	f := &run.Fold
	v := View{
		Path: run.Path, Slug: f.Slug, Description: f.Description, Status: f.Status, Interrupted: f.Interrupted(), Stage: f.Stage(),
		FirstMS: f.FirstTSMS, LastMS: f.LastTSMS, Events: f.Events, Points: f.Metrics, BadLines: run.Bad, TornBytes: run.Torn,
		Metadata: rawMetadata(f.Metadata), Segments: SegmentsOf(f), Curves: []Curve{},
		Checkpoints: []Checkpoint{}, Failures: []Failure{},
	}
	for _, m := range f.MarksOf(metrics.NoteCheckpoint) {
		v.Checkpoints = append(v.Checkpoints, Checkpoint{m.Step, m.TSMS, m.Checkpoint, m.Seconds})
	}
	for _, m := range f.MarksOf(metrics.NoteFailed) {
		v.Failures = append(v.Failures, Failure{m.Step, m.TSMS, m.Error})
	}
	for _, c := range f.Curves() {
		if want(c.Name) {
			v.Curves = append(v.Curves, viewMetric(c))
		}
	}
	return v
}

func viewMetric(c *metrics.Curve) Curve {
	v := Curve{Name: c.Name, Stats: statsOf(c.Stats), Series: []Series{}}
	for _, s := range c.Series {
		v.Series = append(v.Series, Series{rawMetadata(s.Metadata), statsOf(s.Stats)})
	}
	return v
}

func statsOf(s metrics.Stats) Stats {
	v := Stats{Count: s.Count, NonFinite: s.NonFinite, Last: s.Last, LastStep: s.LastStep, LastMS: s.LastMS}
	if s.Count > s.NonFinite {
		v.Min, v.Max, v.MinStep, v.MaxStep = &s.Min, &s.Max, s.MinStep, s.MaxStep
	}
	return v
}

// SegmentsOf are the processes of a run, never null.
func SegmentsOf(f *metrics.Fold) []Segment {
	list := []Segment{}
	for _, s := range f.Segments {
		list = append(list, Segment{
			FirstMS: s.FirstTSMS, LastMS: s.LastTSMS, FirstStep: s.FirstStep, LastStep: s.LastStep, Points: s.Metrics,
			Resumed: s.Resumed, Interrupted: s.Interrupted, Done: s.Done, Failed: s.Failed, Changes: ChangesOf(s.Changes),
		})
	}
	return list
}

// ChangesOf are differences, never null.
func ChangesOf(changes []metrics.Change) []Change {
	list := []Change{}
	for _, c := range changes {
		list = append(list, Change{c.Path, c.From, c.To})
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

// NumberText is a number for people, with at most six digits that matter.
func NumberText(n metrics.Number) string {
	if n.IsInteger() {
		return n.String()
	}
	return FloatText(n.Float64())
}

// FloatText is a float for people, with at most six digits that matter.
func FloatText(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return metrics.Float(f).String()
	}
	return strconv.FormatFloat(f, 'g', 6, 64)
}
