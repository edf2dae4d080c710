package server

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"mime"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// packedType is the content type of columns as arrays of numbers, which a client uses
// as they are instead of reading them digit by digit.
const packedType = "application/vnd.foldlog.columns"

// acceptsPacked tells whether a client asks for packed columns by name.
func acceptsPacked(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		if kind, _, err := mime.ParseMediaType(strings.TrimSpace(part)); err == nil && kind == packedType {
			return true
		}
	}
	return false
}

// packer lays columns out behind each other.
type packer struct {
	head wire.PackedHead
	data []byte
}

func (p *packer) begin(of, name, kind string, values []json.RawMessage) {
	for len(p.data)%8 != 0 {
		p.data = append(p.data, 0)
	}
	p.head.Columns = append(p.head.Columns, wire.PackedColumn{Of: of, Name: name, Kind: kind, At: len(p.data), Values: values})
}

func (p *packer) floats(of, name string, list []float64) {
	p.begin(of, name, "f64", nil)
	for _, v := range list {
		p.data = binary.LittleEndian.AppendUint64(p.data, math.Float64bits(v))
	}
}

// codes lays out numbers in as few bytes as the largest needs.
func (p *packer) codes(of, name string, list []uint32, most uint32, values []json.RawMessage) {
	switch {
	case most <= math.MaxUint8:
		p.begin(of, name, "u8", values)
		for _, v := range list {
			p.data = append(p.data, byte(v))
		}
	case most <= math.MaxUint16:
		p.begin(of, name, "u16", values)
		for _, v := range list {
			p.data = binary.LittleEndian.AppendUint16(p.data, uint16(v))
		}
	default:
		p.begin(of, name, "u32", values)
		for _, v := range list {
			p.data = binary.LittleEndian.AppendUint32(p.data, v)
		}
	}
}

// spelled is a column of values that are distinguished by their spelling.
type spelled struct {
	at     map[string]uint32
	values []json.RawMessage
	list   []uint32
}

func newSpelled(n int) *spelled { return &spelled{at: map[string]uint32{}, list: make([]uint32, n)} }

func (s *spelled) set(i int, text []byte) {
	code, ok := s.at[string(text)]
	if !ok {
		s.values = append(s.values, append(json.RawMessage(nil), text...))
		code = uint32(len(s.values))
		s.at[string(text)] = code
	}
	s.list[i] = code
}

func (p *packer) spelled(of, name string, s *spelled) {
	values := s.values
	if values == nil {
		values = []json.RawMessage{}
	}
	p.codes(of, name, s.list, uint32(len(s.values)), values)
}

// bytes is everything, the first line before it.
func (p *packer) bytes() ([]byte, error) {
	head, err := json.Marshal(p.head)
	if err != nil {
		return nil, err
	}
	for len(head)%8 != 7 {
		head = append(head, ' ')
	}
	return append(append(head, '\n'), p.data...), nil
}

// packColumns spells trials as packed columns.
func packColumns(seq uint64, st *study.Study, list []sortedTrial) ([]byte, error) {
	n := len(list)
	numbers, states, most := make([]uint32, n), make([]uint32, n), uint32(0)
	started, ended, workers := make([]float64, n), make([]float64, n), newSpelled(n)
	values := make([][]float64, len(st.Config.Directions))
	for k := range values {
		values[k] = make([]float64, n)
	}
	var digits []byte
	for i, it := range list {
		t := it.trial
		numbers[i], states[i] = uint32(t.Number), uint32(stateLetter(t.State))
		most = max(most, numbers[i])
		started[i], ended[i] = float64(t.StartedMillis), float64(t.EndedMillis)
		if t.Epoch > 0 {
			digits = append(append(append(digits[:0], '"'), uitoa(uint64(t.Owner))...), '"')
			workers.set(i, digits)
		}
		for k := range values {
			values[k][i] = nan
			if k < len(t.Values) {
				values[k][i] = t.Values[k]
			}
		}
	}
	p := &packer{head: wire.PackedHead{Seq: wire.Count(seq), Trials: n, Columns: []wire.PackedColumn{}}, data: make([]byte, 0, n*(32+8*len(values)))}
	p.codes("number", "", numbers, most, nil)
	p.codes("state", "", states, 'z', nil)
	for k, v := range values {
		p.floats("value", strconv.Itoa(k), v)
	}
	p.params(list)
	p.floats("started", "", started)
	p.floats("ended", "", ended)
	p.spelled("worker", "", workers)
	return p.bytes()
}

// packedParam is a column of a parameter: of numbers as long as all its values are
// some, and of spellings from then on.
type packedParam struct {
	name    string
	numbers []float64
	texts   *spelled
}

// params lays out a column for each parameter.
func (p *packer) params(list []sortedTrial) {
	var columns []*packedParam
	at := map[string]int{}
	for _, it := range list {
		for k := range it.trial.Params {
			// Trials have their parameters in the same order, mostly.
			name := it.trial.Params[k].Name
			if k < len(columns) && columns[k].name == name {
				continue
			}
			if _, ok := at[name]; !ok {
				at[name] = len(columns)
				columns = append(columns, newPackedParam(name, len(list)))
			}
		}
	}
	for i, it := range list {
		for k := range it.trial.Params {
			param := &it.trial.Params[k]
			if k < len(columns) && columns[k].name == param.Name {
				columns[k].set(i, param, list)
			} else {
				columns[at[param.Name]].set(i, param, list)
			}
		}
	}
	for _, c := range columns {
		if c.texts != nil {
			p.spelled("param", c.name, c.texts)
		} else {
			p.floats("param", c.name, c.numbers)
		}
	}
}

func newPackedParam(name string, n int) *packedParam {
	c := &packedParam{name: name, numbers: make([]float64, n)}
	for i := range c.numbers {
		c.numbers[i] = nan
	}
	return c
}

func (c *packedParam) set(i int, p *study.Param, list []sortedTrial) {
	if v, ok := plainNumber(p.Value); ok && c.texts == nil {
		c.numbers[i] = v
		return
	}
	if c.texts == nil {
		c.spell(i, list)
	}
	c.texts.set(i, p.Value.AppendJSON(nil, p.Dist))
}

// spell turns the numbers that there are into spellings.
func (c *packedParam) spell(before int, list []sortedTrial) {
	c.texts, c.numbers = newSpelled(len(c.numbers)), nil
	for i := range before {
		for k := range list[i].trial.Params {
			if p := &list[i].trial.Params[k]; p.Name == c.name {
				c.texts.set(i, p.Value.AppendJSON(nil, p.Dist))
			}
		}
	}
}

// plainNumber is a value that a float64 holds without loss, other than NaN.
func plainNumber(v study.Value) (float64, bool) {
	const exact = 1 << 53
	switch v.Kind() {
	case study.ValueF64:
		return v.F64(), !math.IsNaN(v.F64())
	case study.ValueI64:
		return float64(v.I64()), v.I64() >= -exact && v.I64() <= exact
	}
	return 0, false
}
