package wire

import "github.com/foldlog/foldlog/datagen"

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

// ExperimentPage is a part of the list of experiments.
type ExperimentPage struct {
	Items []ExperimentItem `json:"items" doc:"the one that changed last first"`
	Next  string           `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int              `json:"total"`
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

// CreatedExperiment is an experiment that was made, or existed.
type CreatedExperiment struct {
	Created bool `json:"created" doc:"false if it was there"`
	ExperimentItem
}

// Appended counts what an append has made durable.
type Appended struct {
	Events  int `json:"events"`
	Batches int `json:"batches" doc:"checkpoints"`
}

// LiveItems is what has changed in an experiment.
type LiveItems struct {
	Seq        Count          `json:"seq"`
	Experiment ExperimentItem `json:"experiment"`
	Items      []ItemLine     `json:"items" doc:"that have changed, the first 500"`
	More       bool           `json:"more" doc:"more have changed: read the list anew"`
}
