package datagen

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// ClassColumns names the columns of a table that Classes needs.
func ClassColumns(table *arrow.Schema) []string {
	return pick(table, func(i int) bool {
		switch i {
		case colItem, colParent, colSeq, colKind, colEnd, colStatus, colVersion:
			return true
		}
		return false
	})
}

// SummaryColumns names the columns of a table that a Summary needs.
func SummaryColumns(table *arrow.Schema) []string {
	return pick(table, func(i int) bool {
		switch i {
		case colItem, colRoot, colParent, colSeq, colKind, colStepName, colStepIndex, colAttempt, colRun, colEpoch,
			colEnd, colStatus, colErrorType, colTime, colVersion:
			return true
		}
		return false
	})
}

// momentReader reads rows without making events of them. What it returns aliases
// the batch.
type momentReader struct {
	*rowReader
	rows               int
	item, kind         texts
	end, status, error texts
}

func newMomentReader(batch arrow.RecordBatch) (*momentReader, error) {
	r, err := newRowReader(batch)
	if err != nil {
		return nil, err
	}
	m := &momentReader{rowReader: r, rows: int(batch.NumRows()), item: r.text[colItem].arr, kind: r.text[colKind].arr,
		end: r.text[colEnd].arr, status: r.text[colStatus].arr, error: r.text[colErrorType].arr}
	for col, a := range map[int]arrow.Array{colItem: m.item, colKind: m.kind} {
		if a == nil {
			return nil, fmt.Errorf("%w: no column %s", ErrSchema, fields[col].Name)
		}
	}
	if r.seq == nil {
		return nil, fmt.Errorf("%w: no column %s", ErrSchema, fields[colSeq].Name)
	}
	return m, nil
}

// eachMoment calls do for the rows of a batch, with the hash of each one's item.
func eachMoment(batch arrow.RecordBatch, do func(r *momentReader, i int, h itemHash)) error {
	r, err := newMomentReader(batch)
	if err != nil {
		return err
	}
	var last string
	var h itemHash
	for i := range r.rows {
		if err := r.refuseNewer(i); err != nil {
			return err
		}
		if item := r.item.Value(i); item != last || i == 0 {
			last, h = item, hashItem(item)
		}
		do(r, i, h)
	}
	return nil
}

func (r *momentReader) refuseNewer(i int) error {
	if r.ver == nil || value32(r.ver, i) <= StepsSchemaVersion {
		return nil
	}
	return fmt.Errorf("%w: an event of item %q has schema version %d, this program reads up to %d",
		ErrNewer, r.item.Value(i), r.ver.Value(i), StepsSchemaVersion)
}

// moment is row i as life needs it.
func (r *momentReader) moment(i int) moment {
	m := moment{kind: kindOf(r.kind.Value(i)), attempt: value32(r.att, i)}
	if r.seq.IsValid(i) {
		m.seq = sequence(r.seq.Value(i))
	}
	if r.time != nil && r.time.IsValid(i) {
		m.at = int64(r.time.Value(i))
	}
	if m.kind == ItemEnded {
		status := alias(r.status, i)
		end := End(alias(r.end, i))
		if end == "" && r.frames {
			end = End(status)
		}
		m.ending(end, status == statusFailed)
	}
	return m
}

// alias is a string that lives as long as its array.
func alias(a texts, i int) string {
	if a == nil || a.IsNull(i) {
		return ""
	}
	return a.Value(i)
}

// kindOf is the constant that a kind is spelled as, so that nothing aliases the row.
func kindOf(s string) Kind {
	switch Kind(s) {
	case ItemCreated:
		return ItemCreated
	case FieldSet:
		return FieldSet
	case FieldAppend:
		return FieldAppend
	case StepStarted:
		return StepStarted
	case StepCompleted:
		return StepCompleted
	case StepFailed:
		return StepFailed
	case ItemEnded:
		return ItemEnded
	}
	return ""
}
