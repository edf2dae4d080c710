package wire

// TrialItem is a trial in a list.
type TrialItem struct {
	Number      int     `json:"number" doc:"within the study, from 0"`
	ID          Count   `json:"id" doc:"within the journal"`
	State       string  `json:"state" enum:"waiting,running,paused,complete,pruned,failed"`
	Values      Numbers `json:"values" doc:"final, one for each objective; empty without"`
	Params      Object  `json:"params"`
	Fixed       Object  `json:"fixed" doc:"given in advance"`
	Managed     bool    `json:"managed" doc:"claimed by an owner, who must show worker and epoch"`
	Worker      *Count  `json:"worker" nullable:"true" doc:"who claimed it last"`
	Epoch       Count   `json:"epoch" doc:"how often it was claimed"`
	LeaseMS     int64   `json:"lease_ms" doc:"how long its owner said it may be silent, 0 without"`
	Attempt     int     `json:"attempt" doc:"from 1"`
	MaxAttempts int     `json:"max_attempts" doc:"0 without a cap"`
	RetryOf     *int    `json:"retry_of" nullable:"true" doc:"the trial that it repeats"`
	CreatedMS   int64   `json:"created_ms"`
	StartedMS   int64   `json:"started_ms" doc:"the last start, 0 before"`
	EndedMS     int64   `json:"ended_ms" doc:"0 before"`
	HeartbeatMS int64   `json:"heartbeat_ms" doc:"the last sign of life, 0 without"`
	Error       string  `json:"error" doc:"why it failed; in lists cut to 300 characters: the first line and the end"`
	Reports     int     `json:"reports" doc:"intermediate values"`
	LastStep    *Count  `json:"last_step" nullable:"true" doc:"of the last report"`
	Attrs       int     `json:"attrs" doc:"how many attributes it has"`
	Run         string  `json:"run" doc:"slug of the run that its metrics are kept as, empty without"`
}

// TrialPage is a part of a study's trials.
type TrialPage struct {
	Items []TrialItem `json:"items"`
	Next  string      `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total int         `json:"total" doc:"trials that match"`
	Seq   Count       `json:"seq" doc:"operations in the journal as of this answer"`
}

// TrialDetail is one trial.
type TrialDetail struct {
	TrialItem
	FullError string     `json:"full_error"`
	UserAttrs Object     `json:"user_attrs"`
	Curve     TrialCurve `json:"curve" doc:"every report in the order written; a step may come again, the last one counts"`
	Lineage   []int      `json:"lineage" doc:"the trials that it repeats, newest first"`
}

// TrialCurve is reports by column.
type TrialCurve struct {
	Steps  Integers  `json:"steps"`
	Values []Numbers `json:"values" doc:"one column for each objective"`
}

// PruneVerdict tells whether a trial is worth going on with.
type PruneVerdict struct {
	Prune  bool   `json:"prune"`
	Pruner string `json:"pruner" doc:"the study's, as it was named"`
	Step   *Count `json:"step" nullable:"true" doc:"of the last report"`
}

// FenceBody is what the owner of a managed trial shows.
type FenceBody struct {
	Worker *Count `json:"worker,omitempty" nullable:"true" doc:"the owner of a managed trial, as ask told it"`
	Epoch  *Count `json:"epoch,omitempty" nullable:"true" doc:"the claim's epoch, as ask told it"`
}

// Enqueued is a trial that waits.
type Enqueued struct {
	Created bool `json:"created" doc:"false if the key had been used before"`
	TrialItem
}

// LiveTrials is what has changed in a study.
type LiveTrials struct {
	Seq   Count       `json:"seq" doc:"operations in the journal as of this event"`
	Study StudyItem   `json:"study"`
	Items []TrialItem `json:"items" doc:"the trials that have changed, the first 500"`
	More  bool        `json:"more" doc:"more have changed: read the list anew"`
}
