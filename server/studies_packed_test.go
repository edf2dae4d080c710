package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// mixedStudy has trials in every kind of state, of parameters that are numbers, choices,
// too large for a float64, or of two kinds.
func mixedStudy(s *site) string {
	id := newStudy(s, "s.atj", study.Minimize, study.Maximize)
	j, err := study.OpenJournal(s.t.Context(), filepath.Join(s.root, "s.atj"), journal.WriterOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer j.Close()
	choices := &study.CatDist{Choices: []study.Choice{study.StringChoice("a \"b\""), study.NullChoice()}}
	whole := study.IntDist{Low: 0, High: math.MaxInt64, Step: 1}
	err = j.Update(s.t.Context(), func(tx *study.Tx) error {
		for i, params := range [][]study.Param{
			{{Name: "x", Dist: study.FloatDist{High: 1}, Value: study.F64(0.25)}, {Name: "c", Dist: choices, Value: study.Cat(0)}},
			{{Name: "c", Dist: choices, Value: study.Cat(1)}, {Name: "n", Dist: whole, Value: study.I64(math.MaxInt64)}},
			{{Name: "n", Dist: whole, Value: study.I64(7)}, {Name: "mixed", Dist: study.FloatDist{High: 9}, Value: study.F64(3)}},
			{{Name: "mixed", Dist: choices, Value: study.Cat(0)}, {Name: "x", Dist: study.FloatDist{High: 1}, Value: study.F64(1)}},
			{},
		} {
			ref, err := tx.CreateTrial(0, nil)
			if err != nil {
				return err
			}
			if i == 4 {
				return nil
			}
			if err := tx.Transition(ref.ID, study.Waiting, study.Running); err != nil {
				return err
			}
			if err := tx.ParamsBatch(ref.ID, params); err != nil {
				return err
			}
			if i == 3 {
				continue
			}
			if err := tx.SetValues(ref.ID, float64(i), math.Inf(1)); err != nil {
				return err
			}
			if err := tx.Transition(ref.ID, study.Running, study.Complete); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func accepting(kinds string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Accept", kinds) }
}

// unpack reads packed columns as their document says.
func unpack(t *testing.T, b []byte) (wire.PackedHead, func(c wire.PackedColumn) []float64) {
	t.Helper()
	line, data, ok := bytes.Cut(b, []byte("\n"))
	var head wire.PackedHead
	if err := json.Unmarshal(line, &head); err != nil || !ok || (len(line)+1)%8 != 0 {
		t.Fatalf("%v: %d bytes: %s", err, len(line), line)
	}
	return head, func(c wire.PackedColumn) []float64 {
		size := map[string]int{"u8": 1, "u16": 2, "u32": 4, "f64": 8}[c.Kind]
		if c.At%8 != 0 || c.At+size*head.Trials > len(data) {
			t.Fatalf("column %+v of %d bytes", c, len(data))
		}
		list := make([]float64, head.Trials)
		for i := range list {
			at := data[c.At+i*size:]
			switch c.Kind {
			case "u8":
				list[i] = float64(at[0])
			case "u16":
				list[i] = float64(binary.LittleEndian.Uint16(at))
			case "u32":
				list[i] = float64(binary.LittleEndian.Uint32(at))
			default:
				list[i] = math.Float64frombits(binary.LittleEndian.Uint64(at))
			}
		}
		return list
	}
}

func TestPackedColumnsSayWhatJSONSays(t *testing.T) {
	s := newSite(t, Options{})
	at := "/api/v1/studies/" + mixedStudy(s) + "/columns"
	var plain struct {
		Seq     string           `json:"seq"`
		Numbers []float64        `json:"numbers"`
		States  string           `json:"states"`
		Values  [][]any          `json:"values"`
		Params  map[string][]any `json:"params"`
		Started []float64        `json:"started"`
		Ended   []float64        `json:"ended"`
		Workers []string         `json:"workers"`
	}
	s.get(at, &plain)
	a := s.do("GET", at, nil, accepting("text/html, application/vnd.foldlog.columns;q=0.9"))
	if a.header.Get("Content-Type") != packedType || a.header.Get("Vary") != "Accept" {
		t.Fatalf("%v", a.header)
	}
	head, read := unpack(t, a.body)
	if uitoa(uint64(head.Seq)) != plain.Seq || head.Trials != 5 {
		t.Errorf("%+v", head)
	}
	params := map[string][]any{}
	for _, c := range head.Columns {
		list := read(c)
		switch c.Of {
		case "number":
			same(t, c, list, plain.Numbers)
		case "state":
			var states strings.Builder
			for _, v := range list {
				states.WriteByte(byte(v))
			}
			same(t, c, states.String(), plain.States)
		case "started":
			same(t, c, list, plain.Started)
		case "ended":
			same(t, c, list, plain.Ended)
		case "value":
			same(t, c, meant(t, c, list), map[string][]any{"0": plain.Values[0], "1": plain.Values[1]}[c.Name])
		case "param":
			params[c.Name] = meant(t, c, list)
		case "worker":
			for i, v := range meant(t, c, list) {
				if v == nil {
					v = "0"
				}
				same(t, c, v, any(plain.Workers[i]))
			}
		}
	}
	// A value is NaN where a trial has none, a parameter null.
	same(t, wire.PackedColumn{Of: "params"}, params, plain.Params)
}

func same[T any](t *testing.T, c wire.PackedColumn, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", c, diff)
	}
}

// meant is what the numbers of a column mean, as JSON has it.
func meant(t *testing.T, c wire.PackedColumn, list []float64) []any {
	t.Helper()
	out := make([]any, len(list))
	for i, v := range list {
		switch {
		case c.Values != nil && v > 0:
			unmarshal(t, string(c.Values[int(v)-1]), &out[i])
		case c.Values != nil:
		case math.IsNaN(v) && c.Of == "value":
			out[i] = "NaN"
		case math.IsInf(v, 1):
			out[i] = "Infinity"
		case !math.IsNaN(v):
			out[i] = v
		}
	}
	return out
}

func TestColumnsAreJSONUnlessAskedForByName(t *testing.T) {
	s := newSite(t, Options{})
	at := "/api/v1/studies/" + newStudy(s, "s.atj") + "/columns"
	for _, accept := range []string{"", "*/*", "application/*", "application/json", "application/vnd.foldlog.columnsx"} {
		if a := s.do(http.MethodGet, at, nil, accepting(accept)); a.status != 200 || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %d %v", accept, a.status, a.header)
		}
	}
	a := s.do(http.MethodGet, at, nil, accepting(packedType))
	head, _ := unpack(t, a.body)
	if head.Trials != 0 || len(head.Columns) != 6 {
		t.Errorf("an empty study: %+v", head)
	}
}
