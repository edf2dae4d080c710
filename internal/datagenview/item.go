// Package datagenview shows datagen logs and their items as the documented JSON, and in
// words for people.
package datagenview

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
)

// The structs here are the --json contract of the datagen commands, described in
// docs/json.md: fields are added and never renamed or removed. Times are Unix
// milliseconds by the clock of whoever wrote, 0 if it has not happened. Lists are
// never null.

// Value is a value as JSON: a blob is an object with its event, size and
// checksum.
type Value datagen.Value

// MarshalJSON implements json.Marshaler.
func (v Value) MarshalJSON() ([]byte, error) {
	value := datagen.Value(v)
	return datagen.AppendValue(nil, &value), nil
}

// Text is the value for people.
func (v Value) Text() string {
	if v.Kind == datagen.Str {
		return v.Str
	}
	if v.Kind == datagen.Blob {
		return "blob of " + cli.Size(v.Blob.Size)
	}
	value := datagen.Value(v)
	return string(datagen.AppendValue(nil, &value))
}

// ItemLine is a line of `foldlog datagen items --json`.
type ItemLine struct {
	Item      string          `json:"item"`
	Root      string          `json:"root"`
	Parent    string          `json:"parent"` // "" for a root
	Status    datagen.Status  `json:"status"`
	Step      string          `json:"step"` // that was completed last
	Attempt   int32           `json:"attempt"`
	Events    int             `json:"events"`
	Failures  int             `json:"failures"`
	ErrorType string          `json:"error_type"` // of the failure it stands at
	Tags      json.RawMessage `json:"tags"`       // an object
	CreatedMS int64           `json:"created_ms"`
	UpdatedMS int64           `json:"updated_ms"`
	Suspect   bool            `json:"suspect"` // its events may contradict each other
}

// ItemLineOf sums up an item.
func ItemLineOf(s datagen.ItemSummary) ItemLine {
	return ItemLine{s.ID, s.Root, s.Parent, s.Status, s.Step, s.Attempt, s.Events, s.Failures, s.ErrorType, TagsOf(s.Tags),
		serde.Millis(s.Created), serde.Millis(s.Updated), s.Suspect}
}

// TagsOf are tags as JSON, an empty object without any.
func TagsOf(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// Item is the output of `foldlog datagen item --json`.
type Item struct {
	Item       string          `json:"item"`
	Root       string          `json:"root"`
	Parent     string          `json:"parent"` // "" for a root
	Status     datagen.Status  `json:"status"`
	Attempt    int32           `json:"attempt"`
	Run        string          `json:"run"`    // of the latest event
	Epochs     []string        `json:"epochs"` // of its writers, in order
	LastSeq    int64           `json:"last_seq"`
	Creations  int             `json:"creations"` // more than one after a re-run
	Tags       json.RawMessage `json:"tags"`
	CreatedMS  int64           `json:"created_ms"`
	UpdatedMS  int64           `json:"updated_ms"`
	Fields     []Field         `json:"fields"`
	Steps      []Step          `json:"steps"`    // that are complete, in order
	Failures   []Failure       `json:"failures"` // of all attempts
	Faults     []Fault         `json:"faults"`
	Trajectory []Checkpoint    `json:"trajectory,omitempty"` // with --trajectory
	Tree       []Node          `json:"tree,omitempty"`       // with --tree
}

// Field is a field of an item.
type Field struct {
	Name     string      `json:"name"`
	Appended bool        `json:"appended"` // else it has one value
	Values   []FieldFrom `json:"values"`
}

// FieldFrom is a value of a field, and where it comes from.
type FieldFrom struct {
	Value Value             `json:"value"`
	Kind  datagen.ValueKind `json:"kind"`
	Type  string            `json:"type"` // of the codec
	Codec int32             `json:"codec"`
	From  Origin            `json:"from"`
}

// Origin is the event that something comes from.
type Origin struct {
	Event      string `json:"event"`
	Checkpoint string `json:"checkpoint"`
	Seq        int64  `json:"seq"`
	Step       string `json:"step"`     // "" outside of steps
	Instance   string `json:"instance"` // of the step
	Attempt    int32  `json:"attempt"`
	Run        string `json:"run"`
	Epoch      string `json:"epoch"`
	AtMS       int64  `json:"at_ms"`
}

// Step is a step of an item that is complete.
type Step struct {
	Name      string `json:"name"`
	Index     int64  `json:"index"`
	Instance  string `json:"instance"`
	Iteration *int64 `json:"iteration"` // null outside of loops
	From      Origin `json:"from"`
}

// Failure is a line of `foldlog datagen failures --json`.
type Failure struct {
	Item      string          `json:"item"`
	Type      string          `json:"type"`
	Dump      json.RawMessage `json:"dump"` // null if there is none
	Traceback string          `json:"traceback"`
	From      Origin          `json:"from"`
}

// Fault is a contradiction in the events of an item.
type Fault struct {
	Seq    int64    `json:"seq"`
	Events []string `json:"events"`
	Epochs []string `json:"epochs"`
	What   string   `json:"what"`
}

// Checkpoint is a batch of an item as it changed the item.
type Checkpoint struct {
	Checkpoint string      `json:"checkpoint"`
	Events     int         `json:"events"`
	From       Origin      `json:"from"` // its last event
	Created    bool        `json:"created"`
	Changes    []Change    `json:"changes"`
	Failure    string      `json:"failure"` // its type
	End        datagen.End `json:"end"`
}

// Change is a change of a field.
type Change struct {
	Name   string `json:"name"`
	Append bool   `json:"append"`
	Old    *Value `json:"old"` // null for a new field
	New    Value  `json:"new"`
}

// Node is an item in its tree.
type Node struct {
	Item     string         `json:"item"`
	Status   datagen.Status `json:"status"`
	Orphan   bool           `json:"orphan"` // its parent is not there
	Children []Node         `json:"children"`
}

func originOf(o datagen.Origin) Origin {
	v := Origin{Event: o.Event, Checkpoint: o.Checkpoint, Seq: o.Seq, Attempt: o.Attempt, Run: o.Run, Epoch: o.Epoch, AtMS: serde.Millis(o.Time)}
	if o.Step != nil {
		v.Step, v.Instance = o.Step.Name, o.Step.Instance
	}
	return v
}

// ItemOf is an item without its trajectory and its tree.
func ItemOf(it *datagen.Item) Item {
	v := Item{
		Item: it.ID, Root: it.Root, Parent: it.Parent, Status: it.Status, Attempt: it.Attempt, Run: it.Run, Epochs: serde.NotNil(it.Epochs),
		LastSeq: it.LastSeq, Creations: it.Creations, Tags: TagsOf(it.Tags), CreatedMS: serde.Millis(it.Created), UpdatedMS: serde.Millis(it.Updated),
		Fields: []Field{}, Steps: []Step{}, Failures: []Failure{}, Faults: []Fault{},
	}
	for i := range it.Fields {
		v.Fields = append(v.Fields, fieldOf(&it.Fields[i]))
	}
	for _, s := range it.Steps {
		v.Steps = append(v.Steps, Step{s.Name, s.Index, s.Instance, s.Iteration, originOf(s.From)})
	}
	for _, f := range it.Failures {
		v.Failures = append(v.Failures, FailureOf(it.ID, f))
	}
	for _, f := range it.Faults {
		v.Faults = append(v.Faults, Fault{f.Seq, serde.NotNil(f.Events), serde.NotNil(f.Epochs), f.What})
	}
	return v
}

func fieldOf(f *datagen.FieldState) Field {
	v := Field{Name: f.Name, Appended: f.Appended, Values: []FieldFrom{}}
	for _, value := range f.Values {
		v.Values = append(v.Values, FieldFrom{Value(value.Value), value.Kind, value.Type, value.Codec, originOf(value.From)})
	}
	return v
}

// FailureOf is a failure of an item.
func FailureOf(item string, f datagen.ItemFailure) Failure {
	dump := f.Dump
	if dump == nil {
		dump = json.RawMessage("null")
	}
	return Failure{item, f.Type, dump, f.Traceback, originOf(f.From)}
}

// TrajectoryOf is how an item came about, never null.
func TrajectoryOf(row []datagen.Checkpoint) []Checkpoint {
	list := []Checkpoint{}
	for _, c := range row {
		v := Checkpoint{Checkpoint: c.ID, Events: c.Events, From: originOf(c.From), Created: c.Created, Changes: []Change{}, End: c.End}
		if c.Failure != nil {
			v.Failure = c.Failure.Type
		}
		for _, d := range c.Changes {
			change := Change{Name: d.Name, Append: d.Append, New: Value(d.New.Value)}
			if d.Old != nil {
				old := Value(d.Old.Value)
				change.Old = &old
			}
			v.Changes = append(v.Changes, change)
		}
		list = append(list, v)
	}
	return list
}

// TreeOf are items with what came of them, never null.
func TreeOf(nodes []*datagen.Node) []Node {
	list := []Node{}
	for _, n := range nodes {
		list = append(list, Node{n.Item.ID, n.Item.Status, n.Orphan, TreeOf(n.Children)})
	}
	return list
}

// FailureText is what a failure says in one line.
func FailureText(f datagen.Failure) string {
	var dump struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(f.Dump, &dump) == nil && dump.Message != "" {
		if strings.HasPrefix(dump.Message, f.Type) {
			return dump.Message
		}
		return f.Type + ": " + dump.Message
	}
	return cmp.Or(f.Type, "failed")
}

// OriginText says where something happened, for people.
func OriginText(o datagen.Origin) string {
	place := "outside of steps"
	if o.Step != nil {
		place = cmp.Or(o.Step.Instance, o.Step.Name)
	}
	return fmt.Sprintf("%s, attempt %d, seq %d", place, o.Attempt, o.Seq)
}

// Text says what a checkpoint did, in one line.
func (c *Checkpoint) Text() string {
	var parts []string
	if c.Created {
		parts = append(parts, "created")
	}
	for i := range c.Changes {
		d := &c.Changes[i]
		switch {
		case d.Append:
			parts = append(parts, d.Name+" += "+cli.Shorten(d.New.Text(), 40))
		case d.Old != nil:
			parts = append(parts, fmt.Sprintf("%s: %s -> %s", d.Name, cli.Shorten(d.Old.Text(), 40), cli.Shorten(d.New.Text(), 40)))
		default:
			parts = append(parts, d.Name+" = "+cli.Shorten(d.New.Text(), 40))
		}
	}
	if c.Failure != "" {
		parts = append(parts, "failed: "+c.Failure)
	}
	if c.End != "" {
		parts = append(parts, string(c.End))
	}
	return strings.Join(parts, ", ")
}
