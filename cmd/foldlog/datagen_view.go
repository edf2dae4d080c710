package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

// The structs here are the --json contract of the datagen commands, described in
// docs/json.md: fields are added and never renamed or removed. Times are Unix
// milliseconds by the clock of whoever wrote, 0 if it has not happened. Lists are
// never null.

// datagenValue is a value as JSON: a blob is an object with its event, size and
// checksum.
type datagenValue datagen.Value

// MarshalJSON implements json.Marshaler.
func (v datagenValue) MarshalJSON() ([]byte, error) {
	value := datagen.Value(v)
	return datagen.AppendValue(nil, &value), nil
}

// text is the value for people.
func (v datagenValue) text() string {
	if v.Kind == datagen.Str {
		return v.Str
	}
	if v.Kind == datagen.Blob {
		return "blob of " + cli.Size(v.Blob.Size)
	}
	value := datagen.Value(v)
	return string(datagen.AppendValue(nil, &value))
}

// shorten keeps a cell of a table on one line.
func shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// datagenItemLine is a line of `foldlog datagen items --json`.
type datagenItemLine struct {
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

func viewItemLine(s datagen.ItemSummary) datagenItemLine {
	return datagenItemLine{s.ID, s.Root, s.Parent, s.Status, s.Step, s.Attempt, s.Events, s.Failures, s.ErrorType, tagsOf(s.Tags),
		millis(s.Created), millis(s.Updated), s.Suspect}
}

func tagsOf(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("{}")
	}
	return raw
}

// datagenItem is the output of `foldlog datagen item --json`.
type datagenItem struct {
	Item       string              `json:"item"`
	Root       string              `json:"root"`
	Parent     string              `json:"parent"` // "" for a root
	Status     datagen.Status      `json:"status"`
	Attempt    int32               `json:"attempt"`
	Run        string              `json:"run"`    // of the latest event
	Epochs     []string            `json:"epochs"` // of its writers, in order
	LastSeq    int64               `json:"last_seq"`
	Creations  int                 `json:"creations"` // more than one after a re-run
	Tags       json.RawMessage     `json:"tags"`
	CreatedMS  int64               `json:"created_ms"`
	UpdatedMS  int64               `json:"updated_ms"`
	Fields     []datagenField      `json:"fields"`
	Steps      []datagenStep       `json:"steps"`    // that are complete, in order
	Failures   []datagenFailure    `json:"failures"` // of all attempts
	Faults     []datagenFault      `json:"faults"`
	Trajectory []datagenCheckpoint `json:"trajectory,omitempty"` // with --trajectory
	Tree       []datagenNode       `json:"tree,omitempty"`       // with --tree
}

// datagenField is a field of an item.
type datagenField struct {
	Name     string             `json:"name"`
	Appended bool               `json:"appended"` // else it has one value
	Values   []datagenFieldFrom `json:"values"`
}

// datagenFieldFrom is a value of a field, and where it comes from.
type datagenFieldFrom struct {
	Value datagenValue      `json:"value"`
	Kind  datagen.ValueKind `json:"kind"`
	Type  string            `json:"type"` // of the codec
	Codec int32             `json:"codec"`
	From  datagenOrigin     `json:"from"`
}

// datagenOrigin is the event that something comes from.
type datagenOrigin struct {
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

// datagenStep is a step of an item that is complete.
type datagenStep struct {
	Name      string        `json:"name"`
	Index     int64         `json:"index"`
	Instance  string        `json:"instance"`
	Iteration *int64        `json:"iteration"` // null outside of loops
	From      datagenOrigin `json:"from"`
}

// datagenFailure is a line of `foldlog datagen failures --json`.
type datagenFailure struct {
	Item      string          `json:"item"`
	Type      string          `json:"type"`
	Dump      json.RawMessage `json:"dump"` // null if there is none
	Traceback string          `json:"traceback"`
	From      datagenOrigin   `json:"from"`
}

// datagenFault is a contradiction in the events of an item.
type datagenFault struct {
	Seq    int64    `json:"seq"`
	Events []string `json:"events"`
	Epochs []string `json:"epochs"`
	What   string   `json:"what"`
}

// datagenCheckpoint is a batch of an item as it changed the item.
type datagenCheckpoint struct {
	Checkpoint string          `json:"checkpoint"`
	Events     int             `json:"events"`
	From       datagenOrigin   `json:"from"` // its last event
	Created    bool            `json:"created"`
	Changes    []datagenChange `json:"changes"`
	Failure    string          `json:"failure"` // its type
	End        datagen.End     `json:"end"`
}

// datagenChange is a change of a field.
type datagenChange struct {
	Name   string        `json:"name"`
	Append bool          `json:"append"`
	Old    *datagenValue `json:"old"` // null for a new field
	New    datagenValue  `json:"new"`
}

// datagenNode is an item in its tree.
type datagenNode struct {
	Item     string         `json:"item"`
	Status   datagen.Status `json:"status"`
	Orphan   bool           `json:"orphan"` // its parent is not there
	Children []datagenNode  `json:"children"`
}

func viewOrigin(o datagen.Origin) datagenOrigin {
	v := datagenOrigin{Event: o.Event, Checkpoint: o.Checkpoint, Seq: o.Seq, Attempt: o.Attempt, Run: o.Run, Epoch: o.Epoch, AtMS: millis(o.Time)}
	if o.Step != nil {
		v.Step, v.Instance = o.Step.Name, o.Step.Instance
	}
	return v
}

func viewDatagenItem(it *datagen.Item) datagenItem {
	v := datagenItem{
		Item: it.ID, Root: it.Root, Parent: it.Parent, Status: it.Status, Attempt: it.Attempt, Run: it.Run, Epochs: cli.NotNil(it.Epochs),
		LastSeq: it.LastSeq, Creations: it.Creations, Tags: tagsOf(it.Tags), CreatedMS: millis(it.Created), UpdatedMS: millis(it.Updated),
		Fields: []datagenField{}, Steps: []datagenStep{}, Failures: []datagenFailure{}, Faults: []datagenFault{},
	}
	for i := range it.Fields {
		v.Fields = append(v.Fields, viewDatagenField(&it.Fields[i]))
	}
	for _, s := range it.Steps {
		v.Steps = append(v.Steps, datagenStep{s.Name, s.Index, s.Instance, s.Iteration, viewOrigin(s.From)})
	}
	for _, f := range it.Failures {
		v.Failures = append(v.Failures, viewFailureOf(it.ID, f))
	}
	for _, f := range it.Faults {
		v.Faults = append(v.Faults, datagenFault{f.Seq, cli.NotNil(f.Events), cli.NotNil(f.Epochs), f.What})
	}
	return v
}

func viewDatagenField(f *datagen.FieldState) datagenField {
	v := datagenField{Name: f.Name, Appended: f.Appended, Values: []datagenFieldFrom{}}
	for _, value := range f.Values {
		v.Values = append(v.Values, datagenFieldFrom{datagenValue(value.Value), value.Kind, value.Type, value.Codec, viewOrigin(value.From)})
	}
	return v
}

func viewFailureOf(item string, f datagen.ItemFailure) datagenFailure {
	dump := f.Dump
	if dump == nil {
		dump = json.RawMessage("null")
	}
	return datagenFailure{item, f.Type, dump, f.Traceback, viewOrigin(f.From)}
}

func viewTrajectory(row []datagen.Checkpoint) []datagenCheckpoint {
	list := []datagenCheckpoint{}
	for _, c := range row {
		v := datagenCheckpoint{Checkpoint: c.ID, Events: c.Events, From: viewOrigin(c.From), Created: c.Created, Changes: []datagenChange{}, End: c.End}
		if c.Failure != nil {
			v.Failure = c.Failure.Type
		}
		for _, d := range c.Changes {
			change := datagenChange{Name: d.Name, Append: d.Append, New: datagenValue(d.New.Value)}
			if d.Old != nil {
				old := datagenValue(d.Old.Value)
				change.Old = &old
			}
			v.Changes = append(v.Changes, change)
		}
		list = append(list, v)
	}
	return list
}

func viewTree(nodes []*datagen.Node) []datagenNode {
	list := []datagenNode{}
	for _, n := range nodes {
		list = append(list, datagenNode{n.Item.ID, n.Item.Status, n.Orphan, viewTree(n.Children)})
	}
	return list
}

// failureText is what a failure says in one line.
func failureText(f datagen.Failure) string {
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

// originText says where something happened, for people.
func originText(o datagen.Origin) string {
	place := "outside of steps"
	if o.Step != nil {
		place = cmp.Or(o.Step.Instance, o.Step.Name)
	}
	return fmt.Sprintf("%s, attempt %d, seq %d", place, o.Attempt, o.Seq)
}
