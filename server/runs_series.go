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
	"github.com/foldlog/foldlog/server/internal/wire"
)

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

func (s *Server) series(ctx context.Context, in *struct{ Body wire.SeriesQuery }) (*struct{ Body wire.SeriesAnswer }, error) {
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
	answer := wire.SeriesAnswer{Runs: []wire.RunSeries{}, Missing: []string{}}
	var runs []*projection.Run
	for _, slug := range q.Runs {
		if r := s.store.Run(slug); r != nil {
			runs = append(runs, r)
		} else {
			answer.Missing = append(answer.Missing, slug)
		}
	}
	answer.Runs = make([]wire.RunSeries, len(runs))
	err := parallel.Each(len(runs), runtime.GOMAXPROCS(0), func(i int) (err error) {
		if err = ctx.Err(); err == nil {
			answer.Runs[i], err = s.runSeries(runs[i], q)
		}
		return err
	})
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.SeriesAnswer }{answer}, nil
}

func (s *Server) runSeries(run *projection.Run, q *wire.SeriesQuery) (wire.RunSeries, error) {
	out := wire.RunSeries{Slug: run.Slug, Segments: run.Segments, Curves: []wire.CurveJSON{}, Stages: []wire.StageStart{}}
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
				out.Stages = append(out.Stages, wire.StageStart{Stage: m.To, Step: wire.Integer(m.Step), TSMS: m.TSMS, Segment: segments + m.Segment})
			}
		}
		segments += len(o.Outline.Segments)
	}
	return out, nil
}

func curveOf(name string, r *projection.Reading) wire.CurveJSON {
	n := len(r.Points)
	c := wire.CurveJSON{Name: name, Series: make([]wire.Object, len(r.Series)), Steps: make(wire.Integers, n), Times: make(wire.Integers, n),
		Values: make(wire.Numbers, n), Spans: []wire.SpanJSON{}, Total: wire.Count(r.Total), Sampled: r.Sampled}
	for i, m := range r.Series {
		c.Series[i] = objectOf(m)
	}
	for i := range r.Points {
		p := &r.Points[i]
		c.Steps[i], c.Times[i], c.Values[i] = p.Step, p.Time, p.Value
		span := wire.SpanJSON{At: i, Segment: p.Segment, Series: p.Series, Older: r.Older[i]}
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
