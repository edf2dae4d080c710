package wire

// OpRecord is an operation of a journal.
type OpRecord struct {
	Seq    Count  `json:"seq" doc:"its place in the journal, from 1"`
	Worker Count  `json:"worker" doc:"who appended it"`
	AtMS   Count  `json:"at_ms" doc:"when, by that one's clock"`
	Op     Object `json:"op" doc:"as docs/format/journal-operations.md has it"`
}

// OpsHead is the first line of a journal's operations, OpsEnd the last: without it
// some are missing.
type OpsHead struct {
	Format  uint64 `json:"format" doc:"of the journal on disk"`
	Program string `json:"program" doc:"that made the journal"`
	JournalIdentity
	Last *OpMark `json:"last,omitempty" doc:"of the operation after which the others are; left out from the beginning. One other than the client's says that its history is not this one: it reads from 0"`
}

// JournalIdentity tells a journal from another one at its path.
type JournalIdentity struct {
	CreatedMS Count `json:"created_ms" doc:"when it was made"`
	CreatedBy Count `json:"created_by" doc:"the worker that made it"`
}

// OpMark tells an operation from another one at its place.
type OpMark struct {
	Worker Count `json:"worker"`
	AtMS   Count `json:"at_ms"`
}

// OpsAnswer says what operations carry that were published.
type OpsAnswer struct {
	Seq    Count `json:"seq" doc:"of the last of them"`
	Worker Count `json:"worker"`
	AtMS   Count `json:"at_ms"`
}

// CreatedJournal is a journal that was made, or existed.
type CreatedJournal struct {
	Path    string `json:"path"`
	Created bool   `json:"created" doc:"false if it was there"`
}

// OpsEnd says up to where the operations go.
type OpsEnd struct {
	End Count `json:"end" doc:"the sequence of the last operation of the journal"`
}
