package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
)

// DatagenItem is what the events of an item fold into.
type DatagenItem struct {
	Item      string           `json:"item"`
	Root      string           `json:"root"`
	Parent    string           `json:"parent" doc:"empty for a root"`
	Status    datagen.Status   `json:"status" enum:"pending,running,completed,filtered,failed"`
	Attempt   int32            `json:"attempt"`
	Run       string           `json:"run" doc:"of the latest event"`
	Epochs    []string         `json:"epochs" doc:"of its writers, in order"`
	LastSeq   Integer          `json:"last_seq"`
	Creations int              `json:"creations" doc:"more than one after a re-run"`
	Tags      Object           `json:"tags"`
	CreatedMS int64            `json:"created_ms"`
	UpdatedMS int64            `json:"updated_ms"`
	Fields    []DatagenField   `json:"fields"`
	Steps     []DatagenStep    `json:"steps" doc:"that are complete, in order"`
	Failures  []DatagenFailure `json:"failures" doc:"of all attempts"`
	Faults    []DatagenFault   `json:"faults"`
}

// DatagenField is a field of an item.
type DatagenField struct {
	Name     string             `json:"name"`
	Appended bool               `json:"appended" doc:"else it has one value"`
	Values   []DatagenFieldFrom `json:"values"`
}

// DatagenFieldFrom is a value of a field, and where it comes from.
type DatagenFieldFrom struct {
	Value Any               `json:"value" doc:"a blob is an object with blob (its event), size and checksum"`
	Kind  datagen.ValueKind `json:"kind" enum:"int,float,bool,str,json,blob"`
	Type  string            `json:"type" doc:"of the codec"`
	Codec int32             `json:"codec"`
	From  DatagenOrigin     `json:"from"`
}

// DatagenOrigin is the event that something comes from.
type DatagenOrigin struct {
	Event      string  `json:"event"`
	Checkpoint string  `json:"checkpoint"`
	Seq        Integer `json:"seq"`
	Step       string  `json:"step" doc:"empty outside of steps"`
	Instance   string  `json:"instance" doc:"of the step"`
	Attempt    int32   `json:"attempt"`
	Run        string  `json:"run"`
	Epoch      string  `json:"epoch"`
	AtMS       int64   `json:"at_ms"`
}

// DatagenStep is a step of an item that is complete.
type DatagenStep struct {
	Name      string        `json:"name"`
	Index     int64         `json:"index"`
	Instance  string        `json:"instance"`
	Iteration *int64        `json:"iteration" nullable:"true" doc:"null outside of loops"`
	From      DatagenOrigin `json:"from"`
}

// DatagenFailure is a failure of an attempt.
type DatagenFailure struct {
	Item      string        `json:"item"`
	Type      string        `json:"type"`
	Dump      Any           `json:"dump" doc:"null if there is none"`
	Traceback string        `json:"traceback"`
	From      DatagenOrigin `json:"from"`
}

// DatagenFault is a contradiction in the events of an item.
type DatagenFault struct {
	Seq    Integer  `json:"seq"`
	Events []string `json:"events"`
	Epochs []string `json:"epochs"`
	What   string   `json:"what"`
}

func originOf(o datagen.Origin) DatagenOrigin {
	v := DatagenOrigin{Event: o.Event, Checkpoint: o.Checkpoint, Seq: Integer(o.Seq), Attempt: o.Attempt, Run: o.Run, Epoch: o.Epoch, AtMS: serde.Millis(o.Time)}
	if o.Step != nil {
		v.Step, v.Instance = o.Step.Name, o.Step.Instance
	}
	return v
}

func datagenItem(it *datagen.Item) DatagenItem {
	v := DatagenItem{
		Item: it.ID, Root: it.Root, Parent: it.Parent, Status: it.Status, Attempt: it.Attempt, Run: it.Run, Epochs: serde.NotNil(it.Epochs),
		LastSeq: Integer(it.LastSeq), Creations: it.Creations, Tags: Object(it.Tags), CreatedMS: serde.Millis(it.Created), UpdatedMS: serde.Millis(it.Updated),
		Fields: []DatagenField{}, Steps: []DatagenStep{}, Failures: []DatagenFailure{}, Faults: []DatagenFault{},
	}
	for i := range it.Fields {
		f := DatagenField{Name: it.Fields[i].Name, Appended: it.Fields[i].Appended, Values: []DatagenFieldFrom{}}
		for _, value := range it.Fields[i].Values {
			f.Values = append(f.Values, DatagenFieldFrom{rawJSON(&value.Value), value.Kind, value.Type, value.Codec, originOf(value.From)})
		}
		v.Fields = append(v.Fields, f)
	}
	for _, st := range it.Steps {
		v.Steps = append(v.Steps, DatagenStep{st.Name, st.Index, st.Instance, st.Iteration, originOf(st.From)})
	}
	for _, f := range it.Failures {
		v.Failures = append(v.Failures, failureOf(it.ID, f))
	}
	for _, f := range it.Faults {
		v.Faults = append(v.Faults, DatagenFault{Integer(f.Seq), serde.NotNil(f.Events), serde.NotNil(f.Epochs), f.What})
	}
	return v
}

func failureOf(item string, f datagen.ItemFailure) DatagenFailure {
	return DatagenFailure{item, f.Type, Any(f.Dump), f.Traceback, originOf(f.From)}
}

type itemInput struct {
	ID   string `path:"id" maxLength:"64"`
	Item string `path:"item" maxLength:"12000" doc:"the item's identity, percent-encoded"`
	AsOf string `query:"as_of" maxLength:"4096" doc:"a moment: a sequence, a time (RFC 3339) or a checkpoint; now if left out"`
}

// viewAt is the moment that is asked for, and the view that has it.
func (s *Server) viewAt(ctx context.Context, in *itemInput) (at datagen.AsOf, v *datagen.View, err error) {
	if in.AsOf != "" {
		if at, err = datagen.ParseAsOf(in.AsOf); err != nil {
			return at, nil, problem(http.StatusBadRequest, "as_of: "+err.Error())
		}
	}
	_, v, err = s.view(ctx, in.ID)
	return at, v, err
}

func (s *Server) getItem(ctx context.Context, in *itemInput) (*struct{ Body DatagenItem }, error) {
	at, v, err := s.viewAt(ctx, in)
	if err != nil {
		return nil, err
	}
	it, err := v.Item(ctx, in.Item, at)
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body DatagenItem }{datagenItem(it)}, nil
}

// Trajectory is how an item came about.
type Trajectory struct {
	Item        string              `json:"item"`
	Checkpoints []DatagenCheckpoint `json:"checkpoints" doc:"in order"`
}

// DatagenCheckpoint is a batch of an item as it changed the item.
type DatagenCheckpoint struct {
	Checkpoint string          `json:"checkpoint"`
	Events     int             `json:"events"`
	From       DatagenOrigin   `json:"from" doc:"its last event"`
	Created    bool            `json:"created" doc:"it begins the item, or begins it anew"`
	Changes    []DatagenChange `json:"changes"`
	Failure    string          `json:"failure" doc:"its type, empty if nothing failed"`
	End        datagen.End     `json:"end" enum:",completed,filtered"`
	Faults     []string        `json:"faults" doc:"what its events contradict: then it changed nothing"`
}

// DatagenChange is a change of a field.
type DatagenChange struct {
	Name   string            `json:"name"`
	Append bool              `json:"append" doc:"a value was added to those of the field"`
	Old    *Any              `json:"old" nullable:"true" doc:"null for a new field"`
	New    Any               `json:"new"`
	Kind   datagen.ValueKind `json:"kind" enum:"int,float,bool,str,json,blob" doc:"of the new value"`
}

func (s *Server) itemTrajectory(ctx context.Context, in *itemInput) (*struct{ Body Trajectory }, error) {
	at, v, err := s.viewAt(ctx, in)
	if err != nil {
		return nil, err
	}
	events, err := v.Events(ctx, in.Item)
	if err == nil {
		events, err = at.Cut(events)
	}
	if err != nil {
		return nil, s.answer(err)
	}
	t := Trajectory{Item: in.Item, Checkpoints: []DatagenCheckpoint{}}
	for _, c := range datagen.Trajectory(events) {
		t.Checkpoints = append(t.Checkpoints, checkpointOf(&c))
	}
	return &struct{ Body Trajectory }{t}, nil
}

func checkpointOf(c *datagen.Checkpoint) DatagenCheckpoint {
	v := DatagenCheckpoint{Checkpoint: c.ID, Events: c.Events, From: originOf(c.From), Created: c.Created, End: c.End,
		Changes: []DatagenChange{}, Faults: []string{}}
	if c.Failure != nil {
		v.Failure = c.Failure.Type
	}
	for _, f := range c.Faults {
		v.Faults = append(v.Faults, f.What)
	}
	for _, d := range c.Changes {
		change := DatagenChange{Name: d.Name, Append: d.Append, New: rawJSON(&d.New.Value), Kind: d.New.Kind}
		if d.Old != nil {
			old := rawJSON(&d.Old.Value)
			change.Old = &old
		}
		v.Changes = append(v.Changes, change)
	}
	return v
}

// ItemTree is the items of a root.
type ItemTree struct {
	Root  string     `json:"root"`
	Nodes []ItemNode `json:"nodes" doc:"each before its children; the depth says where it belongs"`
	More  bool       `json:"more" doc:"there are more: the list of items has them"`
}

// ItemNode is an item in its tree.
type ItemNode struct {
	Item   string         `json:"item"`
	Parent string         `json:"parent"`
	Depth  int            `json:"depth"`
	Status datagen.Status `json:"status" enum:"pending,running,completed,filtered,failed"`
	Step   string         `json:"step" doc:"that was completed last"`
	Orphan bool           `json:"orphan" doc:"its parent is not there"`
}

// mostNodes is how many items of a tree are told.
const mostNodes = 10_000

func (s *Server) itemTree(ctx context.Context, in *itemInput) (*struct{ Body ItemTree }, error) {
	_, v, err := s.view(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	it, err := v.Item(ctx, in.Item, datagen.AsOf{})
	if err != nil {
		return nil, s.answer(err)
	}
	nodes, err := v.Tree(ctx, it.Root)
	if err != nil {
		return nil, s.answer(err)
	}
	tree := ItemTree{Root: it.Root, Nodes: []ItemNode{}}
	tree.add(nodes, 0)
	return &struct{ Body ItemTree }{tree}, nil
}

func (t *ItemTree) add(nodes []*datagen.Node, depth int) {
	for _, n := range nodes {
		if t.More = t.More || len(t.Nodes) == mostNodes; t.More {
			return
		}
		node := ItemNode{Item: n.Item.ID, Parent: n.Item.Parent, Depth: depth, Status: n.Item.Status, Orphan: n.Orphan}
		if n.Item.Cursor != nil {
			node.Step = n.Item.Cursor.Name
		}
		t.Nodes = append(t.Nodes, node)
		t.add(n.Children, depth+1)
	}
}

type failureListInput struct {
	ID     string `path:"id" maxLength:"64"`
	Item   string `query:"item" maxLength:"4096" doc:"of this item alone"`
	Limit  int    `query:"limit" minimum:"0" maximum:"200" doc:"items per page whose failures are told, 50 if 0"`
	Cursor string `query:"cursor" maxLength:"8000"`
}

// FailurePage is a part of the failures.
type FailurePage struct {
	Items []DatagenFailure `json:"items" doc:"by item, those of one in order"`
	Next  string           `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int              `json:"total" doc:"items that have failures"`
}

func (s *Server) listFailures(ctx context.Context, in *failureListInput) (*struct{ Body FailurePage }, error) {
	l, v, err := s.view(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	page := FailurePage{Items: []DatagenFailure{}, Total: 1}
	ids := []string{in.Item}
	if in.Item == "" {
		if ids, err = s.failedItems(ctx, l, in, &page); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		it, err := v.Item(ctx, id, datagen.AsOf{})
		if err != nil {
			return nil, s.answer(err)
		}
		for _, f := range it.Failures {
			page.Items = append(page.Items, failureOf(id, f))
		}
	}
	return &struct{ Body FailurePage }{page}, nil
}

// failedItems are the items of a page, from the index.
func (s *Server) failedItems(ctx context.Context, l *datagenLog, in *failureListInput, page *FailurePage) ([]string, error) {
	q := datagen.ItemQuery{Failures: true, Order: datagen.ByUpdate, Limit: cmp.Or(in.Limit, 50)}
	var err error
	if in.Cursor != "" {
		if q.After, err = placeCursor(in.Cursor); err != nil {
			return nil, err
		}
	}
	x, err := l.ready(ctx)
	if err != nil {
		return nil, s.answer(err)
	}
	list, total := x.List(q)
	page.Total = total
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	page.Next = placeAfter(q, list)
	return ids, nil
}
