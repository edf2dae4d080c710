package server

import (
	"cmp"
	"context"
	"net/http"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/server/internal/wire"
)

func originOf(o datagen.Origin) wire.DatagenOrigin {
	v := wire.DatagenOrigin{Event: o.Event, Checkpoint: o.Checkpoint, Seq: wire.Integer(o.Seq),
		Attempt: o.Attempt, Run: o.Run, Epoch: o.Epoch, AtMS: serde.Millis(o.Time)}
	if o.Step != nil {
		v.Step, v.Instance = o.Step.Name, o.Step.Instance
	}
	return v
}

func datagenItem(it *datagen.Item) wire.DatagenItem {
	v := wire.DatagenItem{
		Item: it.ID, Root: it.Root, Parent: it.Parent, Status: it.Status, Attempt: it.Attempt, Run: it.Run, Epochs: serde.NotNil(it.Epochs),
		LastSeq: wire.Integer(it.LastSeq), Creations: it.Creations, Tags: wire.Object(it.Tags), CreatedMS: serde.Millis(it.Created), UpdatedMS: serde.Millis(it.Updated),
		Fields: []wire.DatagenField{}, Steps: []wire.DatagenStep{}, Failures: []wire.DatagenFailure{}, Faults: []wire.DatagenFault{},
	}
	for i := range it.Fields {
		f := wire.DatagenField{Name: it.Fields[i].Name, Appended: it.Fields[i].Appended, Values: []wire.DatagenFieldFrom{}}
		for _, value := range it.Fields[i].Values {
			f.Values = append(f.Values, wire.DatagenFieldFrom{Value: rawJSON(&value.Value), Kind: value.Kind,
				Type: value.Type, Codec: value.Codec, From: originOf(value.From)})
		}
		v.Fields = append(v.Fields, f)
	}
	for _, st := range it.Steps {
		v.Steps = append(v.Steps, wire.DatagenStep{Name: st.Name, Index: st.Index, Instance: st.Instance, Iteration: st.Iteration, From: originOf(st.From)})
	}
	for _, f := range it.Failures {
		v.Failures = append(v.Failures, failureOf(it.ID, f))
	}
	for _, f := range it.Faults {
		v.Faults = append(v.Faults, wire.DatagenFault{Seq: wire.Integer(f.Seq), Events: serde.NotNil(f.Events), Epochs: serde.NotNil(f.Epochs), What: f.What})
	}
	return v
}

func failureOf(item string, f datagen.ItemFailure) wire.DatagenFailure {
	return wire.DatagenFailure{Item: item, Type: f.Type, Dump: wire.Any(f.Dump), Traceback: f.Traceback, From: originOf(f.From)}
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

func (s *Server) getItem(ctx context.Context, in *itemInput) (*struct{ Body wire.DatagenItem }, error) {
	at, v, err := s.viewAt(ctx, in)
	if err != nil {
		return nil, err
	}
	it, err := v.Item(ctx, in.Item, at)
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.DatagenItem }{datagenItem(it)}, nil
}

func (s *Server) itemTrajectory(ctx context.Context, in *itemInput) (*struct{ Body wire.Trajectory }, error) {
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
	t := wire.Trajectory{Item: in.Item, Checkpoints: []wire.DatagenCheckpoint{}}
	for _, c := range datagen.Trajectory(events) {
		t.Checkpoints = append(t.Checkpoints, checkpointOf(&c))
	}
	return &struct{ Body wire.Trajectory }{t}, nil
}

func checkpointOf(c *datagen.Checkpoint) wire.DatagenCheckpoint {
	v := wire.DatagenCheckpoint{Checkpoint: c.ID, Events: c.Events, From: originOf(c.From), Created: c.Created, End: c.End,
		Changes: []wire.DatagenChange{}, Faults: []string{}}
	if c.Failure != nil {
		v.Failure = c.Failure.Type
	}
	for _, f := range c.Faults {
		v.Faults = append(v.Faults, f.What)
	}
	for _, d := range c.Changes {
		change := wire.DatagenChange{Name: d.Name, Append: d.Append, New: rawJSON(&d.New.Value), Kind: d.New.Kind}
		if d.Old != nil {
			old := rawJSON(&d.Old.Value)
			change.Old = &old
		}
		v.Changes = append(v.Changes, change)
	}
	return v
}

// mostNodes is how many items of a tree an answer has.
const mostNodes = 10_000

func (s *Server) itemTree(ctx context.Context, in *itemInput) (*struct{ Body wire.ItemTree }, error) {
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
	tree := wire.ItemTree{Root: it.Root, Nodes: []wire.ItemNode{}}
	addNodes(&tree, nodes, 0)
	return &struct{ Body wire.ItemTree }{tree}, nil
}

// addNodes lists items, each before its children.
func addNodes(t *wire.ItemTree, nodes []*datagen.Node, depth int) {
	for _, n := range nodes {
		if t.More = t.More || len(t.Nodes) == mostNodes; t.More {
			return
		}
		node := wire.ItemNode{Item: n.Item.ID, Parent: n.Item.Parent, Depth: depth, Status: n.Item.Status, Orphan: n.Orphan}
		if n.Item.Cursor != nil {
			node.Step = n.Item.Cursor.Name
		}
		t.Nodes = append(t.Nodes, node)
		addNodes(t, n.Children, depth+1)
	}
}

type failureListInput struct {
	ID     string `path:"id" maxLength:"64"`
	Item   string `query:"item" maxLength:"4096" doc:"of this item alone"`
	Limit  int    `query:"limit" minimum:"0" maximum:"200" doc:"items per page whose failures are told, 50 if 0"`
	Cursor string `query:"cursor" maxLength:"8000"`
}

func (s *Server) listFailures(ctx context.Context, in *failureListInput) (*struct{ Body wire.FailurePage }, error) {
	l, v, err := s.view(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	page := wire.FailurePage{Items: []wire.DatagenFailure{}, Total: 1}
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
	return &struct{ Body wire.FailurePage }{page}, nil
}

// failedItems are the items of a page, from the index.
func (s *Server) failedItems(ctx context.Context, l *datagenLog, in *failureListInput, page *wire.FailurePage) ([]string, error) {
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
