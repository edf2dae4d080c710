package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func (l *datagenLog) itemOf(x *datagen.Index) wire.ExperimentItem {
	o := x.Overview()
	item := wire.ExperimentItem{ID: l.id, Path: l.path, Pipeline: l.pipeline, Experiment: l.experiment, Ready: true, Seq: wire.Count(x.Version()),
		Events: o.Events, Items: o.Items, Roots: o.Roots, Suspects: o.Suspects, States: wire.ItemStates(o.Status)}
	for _, w := range o.Writers {
		item.UpdatedMS = max(item.UpdatedMS, serde.Millis(w.Last))
	}
	return item
}

type experimentListInput struct {
	Text   string `query:"q" maxLength:"500" doc:"only experiments whose path has this or matches it as a regular expression, whatever the case"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"experiments per page, 100 if 0"`
	Cursor string `query:"cursor" maxLength:"200"`
}

func (s *Server) listExperiments(ctx context.Context, in *experimentListInput) (*struct{ Body wire.ExperimentPage }, error) {
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	s.datagens.catchUp(ctx)
	page, found := wire.ExperimentPage{Items: []wire.ExperimentItem{}}, finder(in.Text)
	for _, l := range s.datagens.all() {
		l.mu.Lock()
		item := l.item
		if l.err != nil {
			item.Error = s.withoutRoot(l.err.Error())
		}
		l.mu.Unlock()
		if found(item.Path) {
			page.Items = append(page.Items, item)
		}
	}
	slices.SortStableFunc(page.Items, func(a, b wire.ExperimentItem) int { return cmp.Compare(b.UpdatedMS, a.UpdatedMS) })
	page.Total = len(page.Items)
	page.Items, page.Next = pageOf(page.Items, from, pageSize(in.Limit))
	return &struct{ Body wire.ExperimentPage }{page}, nil
}

type experimentInput struct {
	ID string `path:"id" maxLength:"64" doc:"of the experiment in this API"`
}

func (s *Server) getExperiment(ctx context.Context, in *experimentInput) (*struct{ Body wire.ExperimentDetail }, error) {
	l, x, err := s.indexed(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	d := wire.ExperimentDetail{ExperimentItem: l.itemOf(x), Steps: []wire.StepCounts{}, Failures: []wire.FailureRoll{}, Writers: []wire.DatagenWriter{}}
	o := x.Overview()
	for _, st := range o.Steps {
		d.Steps = append(d.Steps, wire.StepCounts(st))
	}
	for _, f := range o.Failures {
		d.Failures = append(d.Failures, wire.FailureRoll{Step: f.Step, Type: f.Type, Events: f.Events, Items: f.Items,
			FirstMS: serde.Millis(f.First), LastMS: serde.Millis(f.Last)})
	}
	if err := l.upkeep(ctx, &d); err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.ExperimentDetail }{d}, nil
}

func (l *datagenLog) upkeep(ctx context.Context, d *wire.ExperimentDetail) error {
	log, err := l.open(ctx)
	if err != nil {
		return err
	}
	writers, err := log.Writers(ctx)
	if err != nil {
		return err
	}
	base, err := log.Table().Base(ctx)
	if err != nil {
		return err
	}
	d.Maintenance = wire.DatagenUpkeep{Version: base.Version(), Fragments: len(base.Fragments()), Rows: base.Rows()}
	for _, index := range base.Indexes() {
		d.Maintenance.Unindexed = max(d.Maintenance.Unindexed, index.Unindexed)
	}
	for _, w := range writers {
		d.Writers = append(d.Writers, wire.DatagenWriter{Shard: w.Shard.String(), Run: w.Run, Host: w.Host, PID: w.PID,
			Alive: w.Alive, Sealed: w.Sealed, Unmerged: w.Unmerged, Rows: w.Rows})
		d.Maintenance.Unmerged += int64(w.Unmerged)
		d.Maintenance.Waiting += w.Rows
	}
	return nil
}

type itemListInput struct {
	ID      string   `path:"id" maxLength:"64"`
	Status  []string `query:"status" enum:"pending,running,completed,filtered,failed" doc:"items of one of these, with commas between them"`
	Tags    []string `query:"tag,explode" maxItems:"20" doc:"KEY=VALUE: items with this tag; again for each further one"`
	Step    string   `query:"step" maxLength:"4096" doc:"items that completed this step last"`
	Error   string   `query:"error" maxLength:"4096" doc:"items that stand at a failure of this type"`
	Prefix  string   `query:"prefix" maxLength:"4096" doc:"items whose identity begins with this"`
	Of      string   `query:"of" maxLength:"4096" doc:"items of the tree of this root"`
	Suspect bool     `query:"suspect" doc:"items whose events may contradict each other"`
	Roots   bool     `query:"roots" doc:"no sub-items"`
	Sort    string   `query:"sort" enum:"created,updated,item,events" doc:"created if left out; updated has the latest first, events the most"`
	Limit   int      `query:"limit" minimum:"0" maximum:"1000" doc:"items per page, 100 if 0"`
	Cursor  string   `query:"cursor" maxLength:"8000"`
	Offset  int      `query:"offset" minimum:"0" doc:"passes over so many items, instead of a cursor; while the log grows the order that they count in may be some seconds old"`
	Reverse bool     `query:"reverse" doc:"begins with the last of the order; goes with offset, not with a cursor"`
}

func itemLine(s datagen.ItemSummary) wire.ItemLine {
	return wire.ItemLine{Item: s.ID, Root: s.Root, Parent: s.Parent, Status: s.Status, Step: s.Step, Attempt: s.Attempt,
		Events: s.Events, Failures: s.Failures, ErrorType: s.ErrorType, Tags: wire.Object(s.Tags),
		CreatedMS: serde.Millis(s.Created), UpdatedMS: serde.Millis(s.Updated), Suspect: s.Suspect}
}

func (in *itemListInput) query() (q datagen.ItemQuery, err error) {
	q = datagen.ItemQuery{Roots: in.Roots, Limit: pageSize(in.Limit), Offset: in.Offset, Reverse: in.Reverse}
	if in.Cursor != "" && (in.Offset > 0 || in.Reverse) {
		return q, problem(http.StatusBadRequest, "a list goes on from a cursor, or by offset and reverse")
	}
	if q.Order, err = datagen.ParseItemOrder(in.Sort); err != nil {
		return q, problem(http.StatusBadRequest, err.Error())
	}
	q.Filter = datagen.Filter{Root: in.Of, Step: in.Step, ErrorType: in.Error, Prefix: in.Prefix, Suspect: in.Suspect, Tags: map[string]string{}}
	for _, status := range in.Status {
		q.Status = append(q.Status, datagen.Status(status))
	}
	for _, tag := range in.Tags {
		key, value, ok := strings.Cut(tag, "=")
		if !ok || key == "" {
			return q, problem(http.StatusBadRequest, "a tag is KEY=VALUE")
		}
		q.Tags[key] = value
	}
	if in.Cursor != "" {
		q.After, err = placeCursor(in.Cursor)
	}
	return q, err
}

func (s *Server) listItems(ctx context.Context, in *itemListInput) (*struct{ Body wire.ItemPage }, error) {
	l, err := s.experiment(in.ID)
	if err != nil {
		return nil, err
	}
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	x, err := l.ready(ctx)
	if err != nil {
		return nil, s.answer(err)
	}
	page := wire.ItemPage{Seq: wire.Count(x.Version()), Items: []wire.ItemLine{}}
	list, total := x.List(q)
	page.Total = total
	for i := range list {
		page.Items = append(page.Items, itemLine(list[i]))
	}
	page.Next = placeAfter(q, list)
	return &struct{ Body wire.ItemPage }{page}, nil
}

type classifyInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		Keys []string `json:"keys" maxItems:"10000"`
	}
}

func (s *Server) classify(ctx context.Context, in *classifyInput) (*struct{ Body wire.Classification }, error) {
	_, x, err := s.indexed(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	c := wire.Classification{Items: []wire.Classified{}}
	for _, key := range in.Body.Keys {
		sum, _ := x.Item(key)
		c.Items = append(c.Items, wire.Classified{Key: key, Class: x.Class(key), Step: sum.Step})
	}
	return &struct{ Body wire.Classification }{c}, nil
}

func (s *Server) registerDatagen(api huma.API) {
	get := getting("/api/v1/datagen", "datagen")
	list := get("", "list-experiments", "List datagen experiments")
	list.Description = "The counts have what clients of this server were told is stored; what others write to the files follows within a second or so, and within five of a log that has long been at rest."
	huma.Register(api, list, s.listExperiments)
	huma.Register(api, get("/{id}", "get-experiment", "One experiment: funnel, failures, writers, maintenance"), s.getExperiment)
	huma.Register(api, get("/{id}/items", "list-items", "Items of an experiment"), s.listItems)
	huma.Register(api, get("/{id}/items/{item}", "get-item", "One item: fields, steps, failures"), s.getItem)
	huma.Register(api, get("/{id}/items/{item}/trajectory", "item-trajectory", "How an item came about, checkpoint by checkpoint"), s.itemTrajectory)
	huma.Register(api, get("/{id}/items/{item}/tree", "item-tree", "The tree of an item's root"), s.itemTree)
	huma.Register(api, get("/{id}/failures", "list-failures", "Failures of all attempts, with the item that changed last first"), s.listFailures)
	huma.Register(api, get("/{id}/blobs/{event}", "get-blob", "The bytes of a blob"), s.getBlob)
	op := operation(http.MethodPost, "/api/v1/datagen/{id}/classify", "classify", "Say which keys are fresh, to be resumed, or have ended", "datagen")
	huma.Register(api, op, s.classify)
	s.registerDatagenWrites(api)
	s.registerDatagenLive(api)
}

// rawJSON is a value of a log as JSON.
func rawJSON(v *datagen.Value) wire.Any { return wire.Any(datagen.AppendValue(nil, v)) }

var _ json.Marshaler = wire.Any(nil)
