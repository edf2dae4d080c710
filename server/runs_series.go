package server

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/parallel"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
)

// SeriesQuery asks for the points of several runs and names.
type SeriesQuery struct {
	Runs   []string          `json:"runs" minItems:"1" maxItems:"1000" doc:"slugs"`
	Names  []string          `json:"names" minItems:"1" maxItems:"1000" doc:"metric names"`
	Where  map[string]string `json:"where,omitempty" doc:"what the metadata of a point must have"`
	Axis   string            `json:"axis,omitempty" enum:"step,time" doc:"what from and to are of; step if left out"`
	From   *Integer          `json:"from,omitempty" nullable:"true" doc:"only points from here on, a step or milliseconds"`
	To     *Integer          `json:"to,omitempty" nullable:"true" doc:"only points up to here"`
	Points int               `json:"points,omitempty" minimum:"0" maximum:"1000000" doc:"points per curve at most; 1000 if left out"`
	Newest bool              `json:"newest,omitempty" doc:"leave out copies of steps that a newer process has repeated"`
}

// SeriesAnswer has the points by column.
type SeriesAnswer struct {
	Runs    []RunSeries `json:"runs" doc:"in the order asked for"`
	Missing []string    `json:"missing" doc:"slugs of which there is no run"`
}

// RunSeries is the curves of one run.
type RunSeries struct {
	Slug     string       `json:"slug"`
	Cursor   string       `json:"cursor" doc:"where the live events of the run go on after these points"`
	Segments int          `json:"segments" doc:"processes"`
	Curves   []CurveJSON  `json:"curves" doc:"those of the names that the run has"`
	Stages   []StageStart `json:"stages" doc:"stage changes, in order"`
}

// StageStart is a stage of a run.
type StageStart struct {
	Stage   string  `json:"stage"`
	Step    Integer `json:"step"`
	TSMS    int64   `json:"ts_ms"`
	Segment int     `json:"segment"`
}

// CurveJSON is the points of one name in stream order.
type CurveJSON struct {
	Name    string     `json:"name"`
	Series  []Object   `json:"series" doc:"the metadata of the points, see spans"`
	Steps   Integers   `json:"steps"`
	Times   Integers   `json:"times" doc:"milliseconds of the Unix epoch"`
	Values  Numbers    `json:"values"`
	Spans   []SpanJSON `json:"spans" doc:"what the points from one index to the next have in common"`
	Total   Count      `json:"total" doc:"points that the query has"`
	Sampled bool       `json:"sampled" doc:"there are fewer here: the ends, and of each stretch the minimum, the maximum and the first that is not finite"`
}

// SpanJSON is neighbouring points that have their place in common.
type SpanJSON struct {
	At      int   `json:"at" doc:"index of the first point"`
	Segment int32 `json:"segment" doc:"index into the run's processes"`
	Series  int32 `json:"series" doc:"index into series"`
	Older   bool  `json:"older" doc:"copies that a newer process has repeated"`
}

func (s *Server) registerSeries(api huma.API) {
	op := operation(http.MethodPost, seriesPath, "read-series", "Points of several runs and names", "runs")
	op.Description = "Reading, though by POST: a token that may read will do."
	huma.Register(api, op, s.series)
}

// seriesPath is the one that is read by POST: what is asked for can be long.
const seriesPath = "/api/v1/series"

// mostCurves is how many curves, and mostPoints how many points, one call may ask
// for.
const (
	mostCurves    = 10_000
	mostPoints    = 1_000_000
	defaultPoints = 1000
	// pointBytes is about what a point of an answer takes while it is made.
	pointBytes = 100
)

func (s *Server) series(ctx context.Context, in *struct{ Body SeriesQuery }) (*struct{ Body SeriesAnswer }, error) {
	q := &in.Body
	q.Points = cmp.Or(q.Points, defaultPoints)
	curves := len(q.Runs) * len(q.Names)
	if curves > mostCurves || curves*q.Points > mostPoints {
		return nil, problem(http.StatusUnprocessableEntity, fmt.Sprintf("%d curves of %d points are too many in one call", curves, q.Points))
	}
	held := int64(curves*q.Points) * pointBytes
	if !s.bodies.take(held) {
		return nil, problem(http.StatusServiceUnavailable, "too many requests at once")
	}
	defer s.bodies.give(held)
	answer := SeriesAnswer{Runs: []RunSeries{}, Missing: []string{}}
	var runs []*projection.Run
	for _, slug := range q.Runs {
		if r := s.store.Run(slug); r != nil {
			runs = append(runs, r)
		} else {
			answer.Missing = append(answer.Missing, slug)
		}
	}
	answer.Runs = make([]RunSeries, len(runs))
	err := parallel.Each(len(runs), runtime.GOMAXPROCS(0), func(i int) (err error) {
		if err = ctx.Err(); err == nil {
			answer.Runs[i], err = s.runSeries(runs[i], q)
		}
		return err
	})
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body SeriesAnswer }{answer}, nil
}

func (s *Server) runSeries(run *projection.Run, q *SeriesQuery) (RunSeries, error) {
	out := RunSeries{Slug: run.Slug, Segments: run.Segments, Curves: []CurveJSON{}, Stages: []StageStart{}}
	pq := projection.Query{Where: q.Where, Points: q.Points, NewestOnly: q.Newest}
	if q.Axis == "time" {
		pq.Axis = metrics.ByTime
	}
	if q.From != nil || q.To != nil {
		pq.Ranged, pq.From, pq.To = true, math.MinInt64, math.MaxInt64
		if q.From != nil {
			pq.From = int64(*q.From)
		}
		if q.To != nil {
			pq.To = int64(*q.To)
		}
	}
	readings, at, err := s.store.Read(run, q.Names, pq)
	if err != nil {
		return out, err
	}
	out.Cursor = positionCursor(at)
	for i, r := range readings {
		if r != nil {
			out.Curves = append(out.Curves, curveOf(q.Names[i], r))
		}
	}
	if run.Stage == "" {
		return out, nil
	}
	outlines, err := s.store.Outlines(run)
	if err != nil {
		return out, err
	}
	segments := 0
	for _, o := range outlines {
		for i := range o.Outline.Marks {
			if m := &o.Outline.Marks[i]; m.Class == metrics.NoteStage {
				out.Stages = append(out.Stages, StageStart{m.To, Integer(m.Step), m.TSMS, segments + m.Segment})
			}
		}
		segments += len(o.Outline.Segments)
	}
	return out, nil
}

func curveOf(name string, r *projection.Reading) CurveJSON {
	n := len(r.Points)
	c := CurveJSON{Name: name, Series: make([]Object, len(r.Series)), Steps: make(Integers, n), Times: make(Integers, n),
		Values: make(Numbers, n), Spans: []SpanJSON{}, Total: Count(r.Total), Sampled: r.Sampled}
	for i, m := range r.Series {
		c.Series[i] = objectOf(m)
	}
	for i := range r.Points {
		p := &r.Points[i]
		c.Steps[i], c.Times[i], c.Values[i] = p.Step, p.Time, p.Value
		span := SpanJSON{i, p.Segment, p.Series, r.Older[i]}
		if last := len(c.Spans) - 1; last >= 0 {
			before := c.Spans[last]
			before.At = i
			if before == span {
				continue
			}
		}
		c.Spans = append(c.Spans, span)
	}
	return c
}

// positionCursor is how far the streams of a run have been read.
func positionCursor(at []projection.Position) string {
	parts := make([]string, len(at))
	for i, p := range at {
		parts[i] = fmt.Sprintf("%s:%d", p.ID, p.Offset)
	}
	return strings.Join(parts, ",")
}
