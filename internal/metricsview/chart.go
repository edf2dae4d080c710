package metricsview

import (
	"fmt"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
)

// markClasses are the annotations that charts show, with their letters. In a
// column of characters that has several the last of them stands.
var markClasses = []struct {
	class  metrics.NoteClass
	letter byte
	word   string
}{
	{metrics.NoteCheckpoint, 'C', "checkpoint"},
	{metrics.NoteStage, 'S', "stage"},
	{metrics.NoteInterrupted, 'I', "interruption"},
	{metrics.NoteResumed, 'R', "resume"},
	{metrics.NoteFailed, 'F', "failure"},
}

// NewChart is an empty chart of a metric, over steps or, with time, over seconds since
// the run began.
func NewChart(name string, log, time bool) *chart.Chart {
	c := &chart.Chart{Title: name, X: chart.Axis{Whole: !time, Time: time}, Y: chart.Axis{Log: log}, Letters: true}
	for _, k := range markClasses {
		c.Kinds = append(c.Kinds, chart.MarkKind{Letter: k.letter, Word: k.word})
	}
	return c
}

// AddReading adds a line of points in stream order, by column.
func AddReading(c *chart.Chart, label string, r metrics.Reading, firstMS int64) {
	s := chart.Series{Legend: readingLegend(label, r), X: make([]float64, r.Len()), Y: r.Values, Older: r.Older, Colour: len(c.Series)}
	for i := range s.X {
		s.X[i] = chartX(c, r.Steps[i], r.Times[i], firstMS)
	}
	c.Series = append(c.Series, s)
}

// chartX is where a point is: at its step, or seconds after the run began.
func chartX(c *chart.Chart, step, ms, firstMS int64) float64 {
	if c.X.Time {
		return float64(ms-firstMS) / 1000
	}
	return float64(step)
}

// AddMarks adds the annotations of a run that charts show.
func AddMarks(c *chart.Chart, run *Run) {
	for _, m := range run.Fold.Marks {
		for _, k := range markClasses {
			if m.Class == k.class {
				c.Marks = append(c.Marks, chart.Mark{X: chartX(c, m.Step, m.TSMS, run.Fold.FirstTSMS), Letter: k.letter})
			}
		}
	}
}

// readingLegend is what a line is called, and how it ended.
func readingLegend(label string, r metrics.Reading) string {
	text := "last " + FloatText(r.Values[r.Len()-1])
	if label != "" {
		text = label + "  " + text
	}
	if r.Total > r.Len() {
		text += fmt.Sprintf("  (%s of %s sampled)", cli.Plural(int64(r.Len()), "point"), cli.Count(int64(r.Total)))
	}
	return text
}
