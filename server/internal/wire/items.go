package wire

import "github.com/foldlog/foldlog/datagen"

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

// FailurePage is a part of the failures.
type FailurePage struct {
	Items []DatagenFailure `json:"items" doc:"by item, those of one in order"`
	Next  string           `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int              `json:"total" doc:"items that have failures"`
}

// ItemClaim is the answer to a claim.
type ItemClaim struct {
	Claim   string       `json:"claim" doc:"to be shown with what follows; empty if none of the items can be had"`
	Waiting int          `json:"waiting" doc:"if none can be had: so many are with others, ask again; 0 when all have ended"`
	LeaseMS int64        `json:"lease_ms"`
	Attempt int32        `json:"attempt" doc:"of what will be recorded"`
	Epoch   string       `json:"epoch"`
	Item    *DatagenItem `json:"item,omitempty" doc:"as it stands; left out if it is new or none can be had"`
	Name    string       `json:"name" doc:"of the item"`
}

// ClaimState is where a claimed item stands after what was recorded.
type ClaimState struct {
	Item    string  `json:"item"`
	LastSeq Integer `json:"last_seq" doc:"the sequence of its latest event"`
	Attempt int32   `json:"attempt" doc:"of what comes next"`
	Open    bool    `json:"open" doc:"the claim goes on; false once the item has ended"`
}

// StepBody says where in the pipeline something happened.
type StepBody struct {
	Name      string `json:"name" minLength:"1" maxLength:"4096"`
	Index     int64  `json:"index,omitempty" minimum:"0" doc:"its place in the pipeline"`
	Instance  string `json:"instance,omitempty" maxLength:"4096" doc:"tells its executions apart, the name if left out"`
	Iteration *int64 `json:"iteration,omitempty" nullable:"true" minimum:"0" doc:"of the innermost loop"`
}

// ChangeBody is a change of a field.
type ChangeBody struct {
	Name   string            `json:"name" minLength:"1" maxLength:"4096"`
	Append bool              `json:"append,omitempty" doc:"add to the values of the field"`
	Kind   datagen.ValueKind `json:"kind,omitempty" enum:"int,float,bool,str,json,blob" doc:"what the value is; left out: what its JSON is, json for objects, arrays and null"`
	Value  Any               `json:"value" doc:"of a blob: its bytes in base64"`
}
