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
)

// RunItem is a run in a list: what its digest says, without reading a point.
type RunItem struct {
	Slug        string    `json:"slug" doc:"names the run"`
	Description string    `json:"description"`
	Status      string    `json:"status" enum:"running,done,failed" doc:"a killed run stays running: look at last_ms"`
	Interrupted string    `json:"interrupted" doc:"the signal that stopped the newest process, empty if none did"`
	Failure     string    `json:"failure" doc:"why the newest process failed, cut to 300 characters"`
	Stage       string    `json:"stage" doc:"the newest stage"`
	FirstMS     int64     `json:"first_ms" doc:"time of the first event"`
	OpenedMS    int64     `json:"opened_ms" doc:"time of the newest open"`
	LastMS      int64     `json:"last_ms" doc:"time of the last event"`
	LastStep    Integer   `json:"last_step" doc:"of the last event that has one, a metric or an annotation"`
	Segments    int       `json:"segments" doc:"processes that wrote it"`
	Checkpoints int       `json:"checkpoints"`
	Annotations int       `json:"annotations"`
	Streams     int       `json:"streams" doc:"files"`
	Names       int       `json:"names" doc:"metric names"`
	Events      Count     `json:"events"`
	Points      Count     `json:"points"`
	BadLines    Count     `json:"bad_lines" doc:"lines that are no events"`
	Bytes       Count     `json:"bytes"`
	Tags        []string  `json:"tags"`
	Noted       bool      `json:"noted" doc:"there is a note"`
	Metadata    Object    `json:"metadata" doc:"the keys that were asked for, by their paths"`
	Metrics     []RunStat `json:"metrics" doc:"the names that were asked for and that the run has"`
}

// RunStat sums up the points of one name.
type RunStat struct {
	Name      string  `json:"name"`
	Count     Count   `json:"count"`
	NonFinite Count   `json:"non_finite"`
	Last      Number  `json:"last"`
	LastStep  Integer `json:"last_step"`
	Min       *Number `json:"min" nullable:"true" doc:"over the finite points, null without any"`
	Max       *Number `json:"max" nullable:"true"`
}

func (s *Server) statOf(c *projection.CurveStat) RunStat {
	v := RunStat{Name: s.store.Name(c.Name), Count: Count(c.Count), NonFinite: Count(c.NonFinite),
		Last: Number(c.Last), LastStep: Integer(c.LastStep)}
	if c.Finite() {
		low, high := Number(c.Min), Number(c.Max)
		v.Min, v.Max = &low, &high
	}
	return v
}

func (s *Server) itemOf(r *projection.Run) RunItem {
	labels := s.labels.of(r.Slug)
	return RunItem{
		Slug: r.Slug, Description: r.Description, Status: r.Status.String(), Interrupted: r.Interrupted, Failure: r.Failure,
		Stage: r.Stage, FirstMS: r.FirstTSMS, OpenedMS: r.OpenedTSMS, LastMS: r.LastTSMS, LastStep: Integer(r.LastStep),
		Segments: r.Segments, Checkpoints: r.Checkpoints, Annotations: r.Marks, Streams: len(r.Streams), Names: len(r.Curves),
		Events: Count(r.Events), Points: Count(r.Metrics), BadLines: Count(r.Bad), Bytes: Count(r.Bytes),
		Tags: labels.Tags, Noted: labels.Note != "", Metrics: []RunStat{},
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

// RunDetail is one run.
type RunDetail struct {
	RunItem
	Note        string       `json:"note" doc:"text, never markup"`
	NoteMS      int64        `json:"note_ms"`
	NoteBy      string       `json:"note_by"`
	Open        Object       `json:"open" doc:"the whole metadata of the newest open: the identity of the run"`
	Processes   []RunProcess `json:"processes" doc:"one for each open, in order: what series and annotations call a segment"`
	StreamFiles []RunStream  `json:"stream_files"`
	Curves      []RunStat    `json:"curves" doc:"every metric name"`
	LeftOut     RunLeftOut   `json:"left_out"`
}

// RunLeftOut counts what is in the files of a run and beyond what the server keeps of
// one; docs/http-api.md has the limits.
type RunLeftOut struct {
	Points      Count `json:"points" doc:"of metric names that are too many"`
	Metadata    Count `json:"metadata" doc:"points that are shown without their metadata, since their name has too many different"`
	Annotations Count `json:"annotations"`
	Processes   Count `json:"processes" doc:"that count as one with those before"`
}

// RunStream is one file of a run.
type RunStream struct {
	ID       string `json:"id"`
	Path     string `json:"path" doc:"under the root"`
	Bytes    Count  `json:"bytes" doc:"of whole lines"`
	BadLines Count  `json:"bad_lines"`
}

// RunProcess is what one process wrote: from its open to the next.
type RunProcess struct {
	Stream      string      `json:"stream" doc:"id of the file"`
	FirstMS     int64       `json:"first_ms"`
	LastMS      int64       `json:"last_ms"`
	FirstStep   Integer     `json:"first_step"`
	LastStep    Integer     `json:"last_step"`
	Points      Count       `json:"points"`
	Resumed     string      `json:"resumed" doc:"the checkpoint it continued from, empty if it did not say"`
	Interrupted string      `json:"interrupted" doc:"the signal that stopped it"`
	Done        bool        `json:"done"`
	Failed      bool        `json:"failed"`
	Changes     []RunChange `json:"changes" doc:"how its open differs from the one before in its file"`
}

// RunChange is one difference of two metadata.
type RunChange struct {
	Path string `json:"path" doc:"keys of objects inside joined with a slash"`
	From string `json:"from"`
	To   string `json:"to"`
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

func (s *Server) getRun(_ context.Context, in *runInput) (*struct{ Body RunDetail }, error) {
	run, err := s.run(in.Slug)
	if err != nil {
		return nil, err
	}
	outlines, err := s.store.Outlines(run)
	if err != nil {
		return nil, s.answer(err)
	}
	labels := s.labels.of(run.Slug)
	d := RunDetail{RunItem: s.itemOf(run), Note: labels.Note, NoteMS: labels.NoteMS, NoteBy: labels.NoteBy,
		Processes: []RunProcess{}, StreamFiles: []RunStream{}, Curves: make([]RunStat, len(run.Curves)),
		LeftOut: RunLeftOut{Count(run.LeftOut.Points), Count(run.LeftOut.Metadata), Count(run.LeftOut.Marks), Count(run.LeftOut.Segments)}}
	for i := range run.Curves {
		d.Curves[i] = s.statOf(&run.Curves[i])
	}
	for _, o := range outlines {
		if o.Digest.Path == run.Path {
			d.Open = objectOf(o.Outline.Metadata)
		}
		d.StreamFiles = append(d.StreamFiles, RunStream{o.Digest.ID, o.Digest.Path, Count(o.Digest.Bytes), Count(o.Digest.Bad)})
		for i := range o.Outline.Segments {
			d.Processes = append(d.Processes, processOf(o.Digest.ID, &o.Outline.Segments[i]))
		}
	}
	return &struct{ Body RunDetail }{d}, nil
}

func processOf(stream string, seg *metrics.Segment) RunProcess {
	return RunProcess{Stream: stream, FirstMS: seg.FirstTSMS, LastMS: seg.LastTSMS, FirstStep: Integer(seg.FirstStep),
		LastStep: Integer(seg.LastStep), Points: Count(seg.Metrics), Resumed: seg.Resumed, Interrupted: seg.Interrupted,
		Done: seg.Done, Failed: seg.Failed, Changes: changesOf(seg.Changes)}
}

func changesOf(list []metrics.Change) []RunChange {
	out := make([]RunChange, len(list))
	for i, c := range list {
		out[i] = RunChange(c)
	}
	return out
}

// Annotation is one annotation of a run.
type Annotation struct {
	TSMS       int64    `json:"ts_ms"`
	Step       Integer  `json:"step"`
	Segment    int      `json:"segment" doc:"index into the run's processes"`
	Class      string   `json:"class" enum:"other,lowering,memory plan,memory retry,memory peak,stacking,stage,checkpoint,resumed,interrupted,failed"`
	Text       string   `json:"text" doc:"text, never markup"`
	Metadata   Object   `json:"metadata"`
	From       string   `json:"from" doc:"of a stage"`
	To         string   `json:"to" doc:"of a stage"`
	Checkpoint string   `json:"checkpoint" doc:"of a checkpoint or resume"`
	Seconds    Number   `json:"seconds" doc:"of a checkpoint: how long writing took"`
	Changed    []string `json:"changed" doc:"of a resume"`
	Signal     string   `json:"signal" doc:"of an interruption"`
	Error      string   `json:"error" doc:"of a failure"`
}

type annotationsInput struct {
	Slug   string   `path:"slug" maxLength:"600"`
	Class  []string `query:"class,explode" doc:"only these classes"`
	Limit  int      `query:"limit" minimum:"0" maximum:"10000" doc:"how many at most, 1000 if 0"`
	Newest bool     `query:"newest" doc:"the newest first, instead of in stream order"`
	Cursor string   `query:"cursor" maxLength:"200" doc:"of an answer in the same order"`
}

// AnnotationPage is a part of a run's annotations.
type AnnotationPage struct {
	Items []Annotation `json:"items" doc:"in stream order, or against it with newest"`
	Next  string       `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int          `json:"total" doc:"annotations of these classes"`
}

func (s *Server) annotations(_ context.Context, in *annotationsInput) (*struct{ Body AnnotationPage }, error) {
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
	return &struct{ Body AnnotationPage }{annotationPage(found, from, cmp.Or(in.Limit, 1000), in.Newest)}, nil
}

// foundMark is an annotation of one stream, before which the run has so many segments.
type foundMark struct {
	mark     *metrics.Mark
	segments int
}

// annotationPage is a part of what was found. A cursor is a place among all, and against
// the stream the place where a page ends: what is written meanwhile moves none.
func annotationPage(found []foundMark, at, limit int, newest bool) AnnotationPage {
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
	page := AnnotationPage{Items: make([]Annotation, len(part)), Next: next, Total: len(found)}
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

func annotationOf(m *metrics.Mark, segments int) Annotation {
	return Annotation{TSMS: m.TSMS, Step: Integer(m.Step), Segment: segments + m.Segment, Class: className(m.Class), Text: m.Text,
		Metadata: objectOf(m.Metadata), From: m.From, To: m.To, Checkpoint: m.Checkpoint, Seconds: Number(m.Seconds),
		Changed: serde.NotNil(m.Changed), Signal: m.Signal, Error: m.Error}
}
