package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

type runLiveInput struct {
	Slug   string   `path:"slug" maxLength:"600"`
	Name   []string `query:"name,explode" maxItems:"1000" doc:"only these metric names; all if left out"`
	Cursor string   `query:"cursor" maxLength:"8000" doc:"where to begin, as a series or an event said it; left out: with what comes from now on"`
	Last   string   `header:"Last-Event-ID" maxLength:"8000" doc:"of the last event that was seen; goes before cursor"`
}

func (s *Server) registerRunLive(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/runs/{slug}/live", "run-live", "What comes to a run, as server-sent events", "live")
	op.Description = "Events: points (a LivePoints), each event of the run once; reset ({}): a file was rewritten, read the run anew. The id of an event is its cursor, so that a client that comes back misses nothing, whatever became of the server."
	streamed(&op)
	huma.Register(api, op, func(ctx context.Context, in *runLiveInput) (*huma.StreamResponse, error) {
		run, err := s.run(in.Slug)
		if err != nil {
			return nil, err
		}
		cursor := cmp.Or(in.Last, in.Cursor)
		from, err := parsePositions(cursor)
		if err != nil {
			return nil, err
		}
		if cursor == "" {
			from = positionsOf(run)
		}
		return s.stream(func(e *eventStream) { s.followRun(e, in.Slug, in.Name, from) }), nil
	})
}

func positionsOf(run *projection.Run) map[string]int64 {
	at := map[string]int64{}
	for _, d := range run.Streams {
		at[d.ID] = d.Bytes
	}
	return at
}

// parsePositions reads what positionCursor has written.
func parsePositions(cursor string) (map[string]int64, error) {
	at := map[string]int64{}
	for part := range strings.SplitSeq(cursor, ",") {
		if part == "" {
			continue
		}
		id, text, _ := strings.Cut(part, ":")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || metrics.CheckStreamID(id) != nil {
			return nil, problem(http.StatusBadRequest, "the cursor is not one of this server")
		}
		at[id] = n
	}
	return at, nil
}

// liveBytes is about how much of a stream one event is made of.
const liveBytes = 1 << 20

func (s *Server) followRun(e *eventStream, slug string, names []string, at map[string]int64) {
	for {
		changed := s.live.topic("run", slug)
		gone := s.live.topic("run-gone", slug)
		run := s.store.Run(slug)
		if run == nil {
			e.send("", "gone", []byte("{}"))
			return
		}
		more, ok := s.sendNew(e, run, names, at)
		if !ok {
			return
		}
		if !more && !e.wait(changed, gone) {
			return
		}
	}
}

// sendNew sends what has come to the streams of a run since at, and moves that on.
func (s *Server) sendNew(e *eventStream, run *projection.Run, names []string, at map[string]int64) (more, ok bool) {
	news := newNews(names)
	segments := 0
	for _, d := range run.Streams {
		from := at[d.ID]
		if from > d.Bytes {
			at[d.ID] = d.Bytes
			return true, e.send(livePositions(run, at), "reset", []byte("{}"))
		}
		if from < d.Bytes {
			next, err := s.readNews(d, from, segments, news)
			if err != nil {
				s.log.Warn("stream not read", "stream", d.Path, "err", err)
				return false, false
			}
			at[d.ID] = next
			more = more || from < next && next < d.Bytes
		}
		segments += d.Segments
	}
	if news.empty() {
		return more, true
	}
	p := news.points(livePositions(run, at))
	data, err := json.Marshal(p)
	if err != nil {
		s.log.Error("points not spelled", "run", run.Slug, "err", err)
		return false, false
	}
	return more, e.send(p.Cursor, "points", data)
}

func livePositions(run *projection.Run, at map[string]int64) string {
	list := make([]projection.Position, len(run.Streams))
	for i, d := range run.Streams {
		list[i] = projection.Position{ID: d.ID, Offset: at[d.ID]}
	}
	return positionCursor(list)
}

// readNews reads a piece of a stream. Which process an event is of is known at the
// end of the stream, so it is counted back from there.
func (s *Server) readNews(d *projection.Digest, from int64, segments int, news *news) (next int64, err error) {
	var events []metrics.Event
	next, err = s.store.Events(d, from, liveBytes, func(e *metrics.Event) { events = append(events, *e) })
	if err != nil {
		return next, err
	}
	opens := countOpens(events)
	for rest := next; rest < d.Bytes && err == nil; {
		before := rest
		rest, err = s.store.Events(d, rest, liveBytes, func(e *metrics.Event) {
			if e.Kind == metrics.KindOpen {
				opens++
			}
		})
		if rest == before {
			break
		}
	}
	segment := max(segments+d.Segments-1-opens, segments-1)
	for i := range events {
		if events[i].Kind == metrics.KindOpen {
			segment++
		}
		news.take(&events[i], max(segment, segments))
	}
	return next, err
}

func countOpens(events []metrics.Event) (n int) {
	for i := range events {
		if events[i].Kind == metrics.KindOpen {
			n++
		}
	}
	return n
}

// news gathers events by curve.
type news struct {
	names []string
	live  wire.LivePoints
	at    map[string]int
	any   bool
}

func newNews(names []string) *news {
	return &news{names: names, at: map[string]int{}, live: wire.LivePoints{Curves: []wire.CurveJSON{}, Annotations: []wire.Annotation{}}}
}

func (n *news) empty() bool { return !n.any }

func (n *news) take(e *metrics.Event, segment int) {
	switch e.Kind {
	case metrics.KindMetric:
		if len(n.names) == 0 || slices.Contains(n.names, e.Name) {
			n.point(e, int32(segment))
		}
		return
	case metrics.KindAnnotation:
		mark := metrics.Mark{Note: metrics.ReadNote(e), Step: e.Step, TSMS: e.TSMS}
		n.live.Annotations = append(n.live.Annotations, annotationOf(&mark, segment))
	case metrics.KindOpen:
		n.live.Opened++
		n.live.Done = false
	case metrics.KindDone:
		n.live.Done = true
	}
	n.any = true
}

func (n *news) point(e *metrics.Event, segment int32) {
	i, ok := n.at[e.Name]
	if !ok {
		i = len(n.live.Curves)
		n.at[e.Name] = i
		n.live.Curves = append(n.live.Curves, wire.CurveJSON{Name: e.Name, Series: []wire.Object{}, Spans: []wire.SpanJSON{}})
	}
	c := &n.live.Curves[i]
	meta := string(e.Metadata.Canonical())
	series := slices.IndexFunc(c.Series, func(o wire.Object) bool { return string(o) == meta })
	if series < 0 {
		series = len(c.Series)
		c.Series = append(c.Series, wire.Object(meta))
	}
	if last := len(c.Spans) - 1; last < 0 || c.Spans[last].Segment != segment || c.Spans[last].Series != int32(series) {
		c.Spans = append(c.Spans, wire.SpanJSON{At: len(c.Steps), Segment: segment, Series: int32(series)})
	}
	c.Steps, c.Times, c.Values = append(c.Steps, e.Step), append(c.Times, e.TSMS), append(c.Values, e.Value.Float64())
	c.Total++
	n.any = true
}

func (n *news) points(cursor string) *wire.LivePoints {
	n.live.Cursor = cursor
	return &n.live
}
