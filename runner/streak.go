package runner

import (
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/study"
)

// DefaultMaxFailures is after how many failed trials in a row study run ends. A
// command that cannot work is so noticed before it has used up the budget, while a
// space half of whose points fail comes that far once in a million trials.
const DefaultMaxFailures = 20

// FailingError says that a run was ended because its trials failed one after
// another.
type FailingError struct {
	// Count is how many failed in a row.
	Count uint64
	// Last is the number of the last one, Reason the first line of its error.
	Last   uint64
	Reason string
}

// Error implements error.
func (e *FailingError) Error() string {
	return fmt.Sprintf("%d trials in a row failed, the last one, trial %d, with: %s", e.Count, e.Last, e.Reason)
}

// streak counts the trials of a run that fail one after another. Those that were
// lost with their worker say nothing about the command.
type streak struct {
	max uint64
	end func() // lets the workers end
	// found is set at max.
	found *FailingError
	n     uint64
}

func (s *streak) count(e *Event) {
	if e.Kind != Finished {
		return
	}
	if e.State != study.Failed.String() {
		s.n = 0
		return
	}
	if s.n++; s.n != s.max || s.found != nil {
		return
	}
	reason, _, _ := strings.Cut(e.Text, "\n")
	s.found = &FailingError{Count: s.n, Last: e.Number, Reason: reason}
	s.end()
}

func (s *streak) err() error {
	if s.found == nil {
		return nil
	}
	return s.found
}
