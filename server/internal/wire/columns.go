package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/foldlog/foldlog/internal/serde"
)

// TrialColumns is trials by column, each as long as numbers: what history, slices,
// parallel coordinates and timelines are drawn from.
type TrialColumns struct {
	Seq     Count               `json:"seq" doc:"operations in the journal as of this answer"`
	Numbers Integers            `json:"numbers"`
	States  string              `json:"states" doc:"one letter for each trial: w, r, s (paused), c, p (pruned), f"`
	Values  []Numbers           `json:"values" doc:"one column for each objective; NaN where a trial has none"`
	Params  map[string]RawArray `json:"params" doc:"one column for each parameter; null where a trial has none"`
	Started Integers            `json:"started" doc:"milliseconds, 0 before"`
	Ended   Integers            `json:"ended" doc:"milliseconds, 0 before"`
	Workers []Count             `json:"workers" doc:"who claimed it last, 0 if nobody"`
}

// AppendJSON spells the columns; encoding/json would look at each of their bytes
// several times.
func (c *TrialColumns) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, `{"seq":"`...)
	b = strconv.AppendUint(b, uint64(c.Seq), 10)
	b = append(append(b, `","numbers":`...), c.Numbers.json()...)
	b = append(append(append(b, `,"states":"`...), c.States...), `","values":[`...)
	for i, v := range c.Values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v.json()...)
	}
	b = append(b, `],"params":{`...)
	names := slices.Sorted(maps.Keys(c.Params))
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(serde.AppendString(b, name), ':'), c.Params[name]...)
	}
	b = append(append(b, `},"started":`...), c.Started.json()...)
	b = append(append(b, `,"ended":`...), c.Ended.json()...)
	workers, err := json.Marshal(c.Workers)
	b = append(append(b, `,"workers":`...), workers...)
	return append(b, '}'), err
}

// TrialCurves are the intermediate values of trials.
type TrialCurves struct {
	Seq   Count      `json:"seq"`
	Items []OneCurve `json:"items"`
}

// OneCurve is the current value at every step of one trial.
type OneCurve struct {
	Number  int      `json:"number"`
	State   string   `json:"state"`
	Steps   Integers `json:"steps"`
	Values  Numbers  `json:"values"`
	Total   int      `json:"total"`
	Sampled bool     `json:"sampled" doc:"there are fewer points here: the ends, and of each stretch the minimum and the maximum"`
}

// PackedHead is the first line of packed columns. Spaces before its end make its length
// a multiple of 8; the bytes of the columns follow.
type PackedHead struct {
	Seq     Count          `json:"seq" doc:"operations in the journal as of this answer"`
	Trials  int            `json:"trials" doc:"the length of every column"`
	Columns []PackedColumn `json:"columns"`
}

// PackedColumn says where a column is and what its numbers mean.
type PackedColumn struct {
	Of   string `json:"of" enum:"number,state,value,param,started,ended,worker"`
	Name string `json:"name" doc:"of a parameter, or the objective of a value, from 0"`
	Kind string `json:"kind" enum:"u8,u16,u32,f64" doc:"little-endian; NaN is no number at all"`
	At   int    `json:"at" doc:"where it begins, in bytes after the first line: a multiple of 8"`
	// Of a state the number is a letter, as in TrialColumns.
	Values []json.RawMessage `json:"values,omitzero" doc:"if it is there the numbers are places in it, from 1, and 0 is none"`
}
