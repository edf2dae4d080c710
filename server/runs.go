package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func (s *Server) statOf(c *projection.CurveStat) wire.RunStat {
	v := wire.RunStat{Name: s.store.Name(c.Name), Count: wire.Count(c.Count), NonFinite: wire.Count(c.NonFinite),
		Last: wire.Number(c.Last), LastStep: wire.Integer(c.LastStep)}
	if c.Finite() {
		low, high := wire.Number(c.Min), wire.Number(c.Max)
		v.Min, v.Max = &low, &high
	}
	return v
}

func (s *Server) itemOf(r *projection.Run) wire.RunItem {
	labels := s.labels.of(r.Slug)
	return wire.RunItem{
		Slug: r.Slug, Description: r.Description, Status: r.Status.String(), Lost: s.lost(r), Interrupted: r.Interrupted, Failure: r.Failure,
		Stage: r.Stage, FirstMS: r.FirstTSMS, OpenedMS: r.OpenedTSMS, LastMS: r.LastTSMS, LastStep: wire.Integer(r.LastStep),
		Segments: r.Segments, Checkpoints: r.Checkpoints, Annotations: r.Marks, Streams: len(r.Streams), Names: len(r.Curves),
		Events: wire.Count(r.Events), Points: wire.Count(r.Metrics), BadLines: wire.Count(r.Bad), Bytes: wire.Count(r.Bytes),
		Tags: labels.Tags, Noted: labels.Note != "", Metrics: []wire.RunStat{},
	}
}

// run finds a run or answers 404.
func (s *Server) run(slug string) (*projection.Run, error) {
	if r := s.store.Run(slug); r != nil {
		return r, nil
	}
	return nil, problem(http.StatusNotFound, fmt.Sprintf("there is no run %.200q", slug))
}

type runInput struct {
	Slug string `path:"slug" maxLength:"600" doc:"the run, percent-encoded"`
}

func (s *Server) registerRuns(api huma.API) {
	s.registerIngest(api)
	s.registerList(api)
	huma.Register(api, operation(http.MethodGet, "/api/v1/runs/{slug}", "get-run", "One run", "runs"), s.getRun)
	huma.Register(api, operation(http.MethodGet, "/api/v1/runs/{slug}/annotations", "list-annotations", "Annotations of a run", "runs"), s.annotations)
	s.registerSeries(api)
	s.registerNames(api)
	s.registerLabels(api)
	s.registerRunLive(api)
}

func (s *Server) getRun(_ context.Context, in *runInput) (*struct{ Body wire.RunDetail }, error) {
	run, err := s.run(in.Slug)
	if err != nil {
		return nil, err
	}
	outlines, err := s.store.Outlines(run)
	if err != nil {
		return nil, s.answer(err)
	}
	labels := s.labels.of(run.Slug)
	d := wire.RunDetail{RunItem: s.itemOf(run), Note: labels.Note, NoteMS: labels.NoteMS, NoteBy: labels.NoteBy,
		Processes: []wire.RunProcess{}, StreamFiles: []wire.RunStream{}, Curves: make([]wire.RunStat, len(run.Curves)),
		LeftOut: wire.RunLeftOut{Points: wire.Count(run.LeftOut.Points), Metadata: wire.Count(run.LeftOut.Metadata),
			Annotations: wire.Count(run.LeftOut.Marks), Processes: wire.Count(run.LeftOut.Segments)}}
	for i := range run.Curves {
		d.Curves[i] = s.statOf(&run.Curves[i])
	}
	for _, o := range outlines {
		if o.Digest.Path == run.Path {
			d.Open = objectOf(o.Outline.Metadata)
		}
		d.StreamFiles = append(d.StreamFiles, wire.RunStream{ID: o.Digest.ID, Path: o.Digest.Path,
			Bytes: wire.Count(o.Digest.Bytes), BadLines: wire.Count(o.Digest.Bad)})
		for i := range o.Outline.Segments {
			d.Processes = append(d.Processes, processOf(o.Digest.ID, &o.Outline.Segments[i]))
		}
	}
	return &struct{ Body wire.RunDetail }{d}, nil
}

func processOf(stream string, seg *metrics.Segment) wire.RunProcess {
	return wire.RunProcess{Stream: stream, FirstMS: seg.FirstTSMS, LastMS: seg.LastTSMS, FirstStep: wire.Integer(seg.FirstStep),
		LastStep: wire.Integer(seg.LastStep), Points: wire.Count(seg.Metrics), Resumed: seg.Resumed, Interrupted: seg.Interrupted,
		Done: seg.Done, Failed: seg.Failed, Changes: changesOf(seg.Changes)}
}

func changesOf(list []metrics.Change) []wire.RunChange {
	out := make([]wire.RunChange, len(list))
	for i, c := range list {
		out[i] = wire.RunChange(c)
	}
	return out
}

type annotationsInput struct {
	Slug   string   `path:"slug" maxLength:"600"`
	Class  []string `query:"class,explode" doc:"only these classes"`
	Limit  int      `query:"limit" minimum:"0" maximum:"10000" doc:"how many at most, 1000 if 0"`
	Newest bool     `query:"newest" doc:"the newest first, instead of in stream order"`
	Cursor string   `query:"cursor" maxLength:"200" doc:"of an answer in the same order"`
}

func (s *Server) annotations(_ context.Context, in *annotationsInput) (*struct{ Body wire.AnnotationPage }, error) {
	run, err := s.run(in.Slug)
	if err != nil {
		return nil, err
	}
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	outlines, err := s.store.Outlines(run)
	if err != nil {
		return nil, s.answer(err)
	}
	var found []foundMark
	segments := 0
	for _, o := range outlines {
		for i := range o.Outline.Marks {
			m := &o.Outline.Marks[i]
			if len(in.Class) == 0 || slices.Contains(in.Class, className(m.Class)) {
				found = append(found, foundMark{m, segments})
			}
		}
		segments += len(o.Outline.Segments)
	}
	return &struct{ Body wire.AnnotationPage }{annotationPage(found, from, cmp.Or(in.Limit, 1000), in.Newest)}, nil
}

// foundMark is an annotation of one stream, before which the run has so many segments.
type foundMark struct {
	mark     *metrics.Mark
	segments int
}

// annotationPage is a part of what was found. A cursor is a place among all, and against
// the stream the place where a page ends: what is written meanwhile moves none.
func annotationPage(found []foundMark, at, limit int, newest bool) wire.AnnotationPage {
	part, next := pageOf(found, at, limit)
	if newest {
		end := len(found)
		if at > 0 {
			end = min(at, end)
		}
		begin := max(0, end-limit)
		part, next = slices.Clone(found[begin:end]), ""
		slices.Reverse(part)
		if begin > 0 {
			next = encodeCursor(strconv.Itoa(begin))
		}
	}
	page := wire.AnnotationPage{Items: make([]wire.Annotation, len(part)), Next: next, Total: len(found)}
	for i, f := range part {
		page.Items[i] = annotationOf(f.mark, f.segments)
	}
	return page
}

// className is a class of annotations as the API spells it.
func className(c metrics.NoteClass) string {
	names := [...]string{"other", "lowering", "memory plan", "memory retry", "memory peak", "stacking", "stage", "checkpoint",
		"resumed", "interrupted", "failed"}
	if int(c) < len(names) {
		return names[c]
	}
	return names[0]
}

func annotationOf(m *metrics.Mark, segments int) wire.Annotation {
	return wire.Annotation{TSMS: m.TSMS, Step: wire.Integer(m.Step), Segment: segments + m.Segment, Class: className(m.Class), Text: m.Text,
		Metadata: objectOf(m.Metadata), From: m.From, To: m.To, Checkpoint: m.Checkpoint, Seconds: wire.Number(m.Seconds),
		Changed: serde.NotNil(m.Changed), Signal: m.Signal, Error: m.Error}
}

func objectOf(m metrics.Metadata) wire.Object { return wire.Object(m) }
