// Package trainlog makes metrics streams of what training programs print and leave
// behind: of their output while they run, by a [Recorder], and of JSON lines and
// TensorBoard event files afterwards, by an [Importer].
package trainlog

import (
	"errors"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/metrics"
)

var (
	// ErrFormat is the reason of a file that nothing can be imported from.
	ErrFormat = errors.New("neither a TensorBoard event file nor JSON lines")
	// ErrNoOpen is the reason of a line that comes before its run is known: neither the
	// input nor Recorder.Slug has named it.
	ErrNoOpen = errors.New("no open has come that names the run")
)

// Reading says how the values on a line of a training log become metrics. The zero
// value makes one of every number, and knows no steps.
type Reading struct {
	Step string                 // the member that is the step, "" for none
	Tags []string               // the members that are metadata of the line's metrics
	Skip func(name string) bool // members that are left out; nil for none
}

// lineValues is what a line of a training log says.
type lineValues struct {
	step     int64
	hasStep  bool
	metadata metrics.Metadata
	metrics  []metrics.Value
}

// line sorts the values of a line. Texts that are no tags are left out.
func (r *Reading) line(values []metrics.Value) (lineValues, error) {
	var out lineValues
	for _, value := range values {
		switch {
		case r.Step != "" && value.Name == r.Step && value.IsNumber:
			step, ok := value.Number.Whole()
			if !ok {
				return out, fmt.Errorf("%s %s is no step", r.Step, value.Number)
			}
			out.step, out.hasStep = step, true
		case slices.Contains(r.Tags, value.Name):
			out.metadata = out.metadata.Merge(metrics.Meta(value.Name, tagText(value)))
		case value.IsNumber && (r.Skip == nil || !r.Skip(value.Name)):
			out.metrics = append(out.metrics, value)
		}
	}
	return out, nil
}

func tagText(v metrics.Value) string {
	if v.IsNumber {
		return v.Number.String()
	}
	return v.Text
}

// onLine says which line an error is about, unless it says so itself.
func onLine(it *metrics.Item, err error) error {
	var located *metrics.LineError
	if errors.As(err, &located) {
		return err
	}
	return fmt.Errorf("line %d: %w", it.Number, err)
}
