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
)

// ExperimentItem is a datagen log in a list.
type ExperimentItem struct {
	ID         string     `json:"id" doc:"names the experiment in this API"`
	Path       string     `json:"path" doc:"of the dataset under the root"`
	Pipeline   string     `json:"pipeline"`
	Experiment string     `json:"experiment"`
	Ready      bool       `json:"ready" doc:"false until the log has been read the first time: the counts are 0"`
	Seq        Count      `json:"seq" doc:"counts what this server has seen change"`
	Events     int64      `json:"events"`
	Items      int        `json:"items" doc:"sub-items too"`
	Roots      int        `json:"roots" doc:"items that are no sub-items"`
	Suspects   int        `json:"suspects" doc:"items whose events may contradict each other"`
	States     ItemStates `json:"states"`
	UpdatedMS  int64      `json:"updated_ms" doc:"the latest event of any writer"`
	Error      string     `json:"error" doc:"why it cannot be read, empty if it can"`
}

// ItemStates counts items by their status.
type ItemStates struct {
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Filtered  int `json:"filtered"`
	Failed    int `json:"failed"`
}

func (l *datagenLog) itemOf(x *datagen.Index) ExperimentItem {
	o := x.Overview()
	item := ExperimentItem{ID: l.id, Path: l.path, Pipeline: l.pipeline, Experiment: l.experiment, Ready: true, Seq: Count(x.Version()),
		Events: o.Events, Items: o.Items, Roots: o.Roots, Suspects: o.Suspects, States: ItemStates(o.Status)}
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

// ExperimentPage is a part of the list of experiments.
type ExperimentPage struct {
	Items []ExperimentItem `json:"items" doc:"the one that changed last first"`
	Next  string           `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int              `json:"total"`
}

func (s *Server) listExperiments(_ context.Context, in *experimentListInput) (*struct{ Body ExperimentPage }, error) {
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	page, found := ExperimentPage{Items: []ExperimentItem{}}, finder(in.Text)
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
	slices.SortStableFunc(page.Items, func(a, b ExperimentItem) int { return cmp.Compare(b.UpdatedMS, a.UpdatedMS) })
	page.Total = len(page.Items)
	page.Items, page.Next = pageOf(page.Items, from, pageSize(in.Limit))
	return &struct{ Body ExperimentPage }{page}, nil
}

type experimentInput struct {
	ID string `path:"id" maxLength:"64" doc:"of the experiment in this API"`
}

// ExperimentDetail is one experiment.
type ExperimentDetail struct {
	ExperimentItem
	Steps       []StepCounts    `json:"steps" doc:"by their place in the pipeline"`
	Failures    []FailureRoll   `json:"failures" doc:"the most frequent first"`
	Writers     []DatagenWriter `json:"writers" doc:"whose shards are still there"`
	Maintenance DatagenUpkeep   `json:"maintenance"`
}

// StepCounts counts the completions of a step.
type StepCounts struct {
	Name      string `json:"name"`
	Index     int64  `json:"index"`
	Completed int64  `json:"completed"`
	Items     int    `json:"items" doc:"that stand behind it and have not ended"`
}

// FailureRoll counts the failures of one type in one step.
type FailureRoll struct {
	Step    string `json:"step" doc:"empty outside of steps"`
	Type    string `json:"type"`
	Events  int64  `json:"events"`
	Items   int    `json:"items" doc:"that stand at such a failure"`
	FirstMS int64  `json:"first_ms"`
	LastMS  int64  `json:"last_ms"`
}

// DatagenWriter is a writer whose shard is still there.
type DatagenWriter struct {
	Shard    string `json:"shard"`
	Run      string `json:"run"`
	Host     string `json:"host"`
	PID      int    `json:"pid"`
	Alive    bool   `json:"alive"`
	Sealed   bool   `json:"sealed"`
	Unmerged int    `json:"unmerged" doc:"generations"`
	Rows     int64  `json:"rows" doc:"in them"`
}

// DatagenUpkeep says what there is to maintain.
type DatagenUpkeep struct {
	Version   uint64 `json:"version" doc:"of the table"`
	Fragments int    `json:"fragments"`
	Rows      int64  `json:"rows" doc:"in the table"`
	Unindexed int    `json:"unindexed" doc:"fragments that an index does not cover"`
	Unmerged  int64  `json:"unmerged" doc:"generations that the table does not have"`
	Waiting   int64  `json:"waiting" doc:"rows in them"`
}

func (s *Server) getExperiment(ctx context.Context, in *experimentInput) (*struct{ Body ExperimentDetail }, error) {
	l, x, err := s.indexed(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	d := ExperimentDetail{ExperimentItem: l.itemOf(x), Steps: []StepCounts{}, Failures: []FailureRoll{}, Writers: []DatagenWriter{}}
	o := x.Overview()
	for _, st := range o.Steps {
		d.Steps = append(d.Steps, StepCounts(st))
	}
	for _, f := range o.Failures {
		d.Failures = append(d.Failures, FailureRoll{f.Step, f.Type, f.Events, f.Items, serde.Millis(f.First), serde.Millis(f.Last)})
	}
	if err := l.upkeep(ctx, &d); err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body ExperimentDetail }{d}, nil
}

func (l *datagenLog) upkeep(ctx context.Context, d *ExperimentDetail) error {
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
	d.Maintenance = DatagenUpkeep{Version: base.Version(), Fragments: len(base.Fragments()), Rows: base.Rows()}
	for _, index := range base.Indexes() {
		d.Maintenance.Unindexed = max(d.Maintenance.Unindexed, index.Unindexed)
	}
	for _, w := range writers {
		d.Writers = append(d.Writers, DatagenWriter{w.Shard.String(), w.Run, w.Host, w.PID, w.Alive, w.Sealed, w.Unmerged, w.Rows})
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

// ItemPage is a part of the list of items.
type ItemPage struct {
	Seq   Count      `json:"seq" doc:"of the experiment as of this answer"`
	Items []ItemLine `json:"items"`
	Next  string     `json:"next" doc:"the cursor of the next page, empty on the last and of a reverse list"`
	Total int        `json:"total" doc:"that the conditions select"`
}

// ItemLine is an item in a list.
type ItemLine struct {
	Item      string         `json:"item"`
	Root      string         `json:"root"`
	Parent    string         `json:"parent" doc:"empty for a root"`
	Status    datagen.Status `json:"status" enum:"pending,running,completed,filtered,failed"`
	Step      string         `json:"step" doc:"that was completed last"`
	Attempt   int32          `json:"attempt"`
	Events    int            `json:"events"`
	Failures  int            `json:"failures"`
	ErrorType string         `json:"error_type" doc:"of the failure that it stands at"`
	Tags      Object         `json:"tags"`
	CreatedMS int64          `json:"created_ms"`
	UpdatedMS int64          `json:"updated_ms"`
	Suspect   bool           `json:"suspect" doc:"its events may contradict each other"`
}

func itemLine(s datagen.ItemSummary) ItemLine {
	return ItemLine{s.ID, s.Root, s.Parent, s.Status, s.Step, s.Attempt, s.Events, s.Failures, s.ErrorType, Object(s.Tags),
		serde.Millis(s.Created), serde.Millis(s.Updated), s.Suspect}
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

func (s *Server) listItems(ctx context.Context, in *itemListInput) (*struct{ Body ItemPage }, error) {
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
	page := ItemPage{Seq: Count(x.Version()), Items: []ItemLine{}}
	list, total := x.List(q)
	page.Total = total
	for i := range list {
		page.Items = append(page.Items, itemLine(list[i]))
	}
	page.Next = placeAfter(q, list)
	return &struct{ Body ItemPage }{page}, nil
}

type classifyInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		Keys []string `json:"keys" maxItems:"10000"`
	}
}

// Classification says what is to be done about keys.
type Classification struct {
	Items []Classified `json:"items" doc:"in the order of the keys"`
}

// Classified is a key with what is to be done about it.
type Classified struct {
	Key   string        `json:"key"`
	Class datagen.Class `json:"class" enum:"fresh,resumable,finished,filtered"`
	Step  string        `json:"step" doc:"that was completed last, empty if none was"`
}

func (s *Server) classify(ctx context.Context, in *classifyInput) (*struct{ Body Classification }, error) {
	_, x, err := s.indexed(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	c := Classification{Items: []Classified{}}
	for _, key := range in.Body.Keys {
		sum, _ := x.Item(key)
		c.Items = append(c.Items, Classified{key, x.Class(key), sum.Step})
	}
	return &struct{ Body Classification }{c}, nil
}

func (s *Server) registerDatagen(api huma.API) {
	get := getting("/api/v1/datagen", "datagen")
	huma.Register(api, get("", "list-experiments", "List datagen experiments"), s.listExperiments)
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
func rawJSON(v *datagen.Value) Any { return Any(datagen.AppendValue(nil, v)) }

var _ json.Marshaler = Any(nil)
