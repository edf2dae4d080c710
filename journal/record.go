package journal

// Record is one operation line of the virtual stream: the envelope that this
// package understands and the operation that it does not.
type Record struct {
	// Seq is the position in the journal, 1 for the first operation.
	Seq uint64
	// Worker is the id of the writer that appended the operation.
	Worker uint64
	// AtMillis is the writer's wall clock in Unix milliseconds. It may go
	// backwards from one record to the next.
	AtMillis uint64
	// Op is the JSON object under the "op" key, verbatim. It is only valid
	// during the call that hands the record over.
	Op []byte
	// Line is the whole line including its newline, verbatim and valid only
	// during the same call.
	Line []byte
}

// Machine is the state that a [Writer] keeps caught up with the journal and
// that its transactions validate against. All calls come from one goroutine.
type Machine interface {
	// Apply folds one published record, in order. An error is final: the
	// journal holds something that the machine refuses.
	Apply(rec *Record) error
	// Reset forgets everything; the whole history is applied again afterwards.
	Reset()
	// Settle ends a group of transactions. Published tells whether their
	// operations are part of the history now; if not, nothing of them may stay.
	Settle(published bool)
}
