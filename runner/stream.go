package runner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/study"
)

// runAttr is the trial's attribute that links it to the run that its metrics are
// kept as: {"slug":..,"stream":..}, the file's name under the root.
const runAttr = "foldlog:run"

// runLink is the value of [runAttr].
type runLink struct {
	Slug   string `json:"slug"`
	Stream string `json:"stream"`
}

// TrialRun is the run that a trial's metrics are kept as: its slug, and the id of
// its stream; "" without.
func TrialRun(t *study.Trial) (slug, stream string) {
	var link runLink
	if a, ok := t.Attr(runAttr); ok && json.Unmarshal(a.Value, &link) == nil {
		return link.Slug, link.Stream
	}
	return "", ""
}

// newRun decides under which name a trial's metrics are kept: of one that goes
// on, in the stream that it has. The event opens the stream.
func (p *prepared) newRun(t *study.Trial, params []study.Param) (runLink, *metrics.Event, error) {
	knobs := make(map[string]any, len(params))
	for _, param := range params {
		knobs[param.Name] = json.RawMessage(param.Value.AppendJSON(nil, param.Dist))
	}
	identity := metrics.OpenMetadata{Knobs: knobs, Other: map[string]any{
		"study": p.name, "trial": t.Number, "attempt": t.Attempt, "journal": filepath.Base(p.Journal),
	}}
	if t.Epoch > 0 {
		identity.Other["resumed"] = t.Epoch
	}
	meta, err := identity.Metadata()
	if err != nil {
		return runLink{}, nil, err
	}
	link := runLink{Slug: runSlug(p.name, t.Number)}
	open, err := metrics.NewOpen(link.Slug, fmt.Sprintf("trial %d of study %s", t.Number, p.name), meta)
	if err != nil {
		return runLink{}, nil, err
	}
	open.TSMS = int64(nowMillis())
	link.Stream = metrics.StreamID(open.Append(nil))
	if slug, id := TrialRun(t); slug == link.Slug && metrics.CheckStreamID(id) == nil {
		if _, err := os.Stat(metrics.StreamPath(p.Runs, slug, id)); err == nil {
			link.Stream = id
		}
	}
	return link, &open, nil
}

// stream keeps the metrics of a trial's output as a run. A nil stream keeps
// nothing.
type stream struct {
	out  *metrics.Emitter
	slug string
	step int64
}

// openStream begins the file of a run, or goes on with it.
func openStream(root string, link runLink, open *metrics.Event) (*stream, error) {
	path := metrics.StreamPath(root, link.Slug, link.Stream)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, err
	}
	out, err := metrics.NewEmitter(metrics.EmitterOptions{Targets: []metrics.Target{{Kind: metrics.TargetJSONL, Path: path}}})
	if err != nil {
		return nil, err
	}
	s := &stream{out: out, slug: link.Slug}
	s.emit(*open)
	return s, nil
}

// emit writes an event; what becomes of it is in the report at the end.
func (s *stream) emit(e metrics.Event) { _ = s.out.Emit(&e) }

// take keeps the metrics and annotations of a line, values if they count. The run has
// its own open and end, whatever the command prints.
func (s *stream) take(it *metrics.Item, step int64, counts bool) {
	switch {
	case s == nil:
	case it.Kind == metrics.ItemEvent && (it.Event.Kind == metrics.KindMetric || it.Event.Kind == metrics.KindAnnotation):
		s.step = it.Event.Step
		s.emit(it.Event)
	case it.Kind == metrics.ItemValues && counts:
		s.step = step
		for _, v := range it.Values {
			if !v.IsNumber || v.Name == stepName {
				continue
			}
			if e, err := metrics.NewMetric(step, v.Name, v.Number, ""); err == nil {
				s.emit(e)
			}
		}
	}
}

// end writes how the trial ended: "" is well. The error is of what could not be
// written.
func (s *stream) end(failure string) error {
	if s == nil {
		return nil
	}
	if failure != "" {
		if e, err := metrics.Failed(failure).Event(s.step); err == nil {
			s.emit(e)
		}
	}
	s.emit(metrics.NewDone(s.slug))
	return s.close()
}

// interrupt leaves the run open: the trial goes on later.
func (s *stream) interrupt() error {
	if s == nil {
		return nil
	}
	if e, err := metrics.Interrupted("SIGTERM", s.step).Event(s.step); err == nil {
		s.emit(e)
	}
	return s.close()
}

func (s *stream) close() error {
	report := s.out.Close()
	if lost := report.Lost(); lost > 0 {
		return fmt.Errorf("%d events are missing in the run: %w", lost, cmp.Or(report.Err(), metrics.ErrSlow))
	}
	return report.Err()
}
