package runner

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// LatePath is the file beside a journal that keeps results which came after
// their trial was taken away: JSON lines with trial, number, worker, epoch,
// at_millis, state, values, error, and why.
func LatePath(journal string) string { return journal + ".late.jsonl" }

// keepLate keeps a result that the journal does not take.
func (a *attempt) keepLate(outcome study.Outcome, why error) error {
	path := LatePath(a.Journal)
	line := a.lateLine(outcome, why)
	err := appendLine(path, line)
	text := fmt.Sprintf("%v; the result is kept in %s", why, path)
	if err != nil {
		text = fmt.Sprintf("%v; the result is: %s", why, line)
		err = fmt.Errorf("keep late result: %w", err)
	}
	a.happened(Event{Kind: Late, State: outcome.State.String(), Text: text})
	return err
}

func (a *attempt) lateLine(o study.Outcome, why error) []byte {
	b := []byte(`{"trial":`)
	b = strconv.AppendUint(b, uint64(a.t.ID), 10)
	b = append(b, `,"number":`...)
	b = strconv.AppendUint(b, a.t.Number, 10)
	b = append(b, `,"worker":`...)
	b = strconv.AppendUint(b, a.fence.Worker, 10)
	b = append(b, `,"epoch":`...)
	b = strconv.AppendUint(b, a.fence.Epoch, 10)
	b = append(b, `,"at_millis":`...)
	b = strconv.AppendUint(b, nowMillis(), 10)
	b = append(b, `,"state":`...)
	b = serde.AppendString(b, o.State.String())
	values := o.Values
	if values == nil {
		values, _ = a.objs.result() // what was known when the command was stopped
	}
	b = append(b, `,"values":[`...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = serde.AppendFloat(b, v)
	}
	b = append(b, `],"error":`...)
	b = serde.AppendString(b, o.Error)
	b = append(b, `,"why":`...)
	b = serde.AppendString(b, why.Error())
	return append(b, "}\n"...)
}

// appendLine adds a whole line to a file, durable when it returns.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
