package optuna

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// otherDist wraps Optuna's own text of a distribution that the journal cannot
// express otherwise.
const otherDist = `{"Optuna":`

// parseDist reads a distribution as Optuna's distribution_to_json writes it, and
// as its releases before 3.0 did.
func parseDist(text string) (study.Distribution, error) {
	var name string
	var attributes []byte
	err := pyMembers([]byte(text), func(key string, value []byte) (err error) {
		switch key {
		case "name":
			name, err = pyString(value)
		case "attributes":
			attributes = value
		case "type": // the abbreviated form, which has everything in one object
			var kind string
			kind, err = pyString(value)
			name, attributes = abbreviated[kind], []byte(text)
		}
		return err
	})
	var d study.Distribution
	if err == nil && name == "CategoricalDistribution" {
		d, err = parseChoices(attributes)
	} else if err == nil {
		d, err = parseRange(name, attributes)
	}
	if err != nil {
		return nil, fmt.Errorf("distribution %.200q: %w: %w", text, ErrInvalid, err)
	}
	if d == nil {
		return study.OtherDist(string(serde.AppendString([]byte(otherDist), text)) + "}"), nil
	}
	return d, nil
}

// abbreviated are the names in the abbreviated form.
var abbreviated = map[string]string{
	"float": "FloatDistribution", "int": "IntDistribution", "categorical": "CategoricalDistribution",
}

// rangeText is what a range of numbers says, each number as it is written.
type rangeText struct{ low, high, step []byte }

// parseRange reads a range of floats or integers. Nil is one that does not fit.
func parseRange(name string, attributes []byte) (study.Distribution, error) {
	r := rangeText{low: []byte("null"), high: []byte("null"), step: []byte("null")}
	log := false
	err := pyMembers(attributes, func(key string, value []byte) error {
		switch key {
		case "low":
			r.low = value
		case "high":
			r.high = value
		case "step", "q":
			r.step = value
		case "log":
			log = string(value) == "true"
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	switch name {
	case "FloatDistribution", "UniformDistribution", "DiscreteUniformDistribution", "LogUniformDistribution":
		return r.floats(log || strings.HasPrefix(name, "Log"))
	case "IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution":
		return r.ints(log || strings.HasPrefix(name, "IntLog"))
	}
	return nil, fmt.Errorf("unknown distribution %.80q", name)
}

func (r rangeText) floats(log bool) (study.Distribution, error) {
	d := study.FloatDist{Log: log}
	var err error
	if d.Low, err = pyFloat(r.low); err != nil {
		return nil, err
	}
	if d.High, err = pyFloat(r.high); err != nil {
		return nil, err
	}
	if !pyNull(r.step) {
		if d.Step, err = pyFloat(r.step); err != nil {
			return nil, err
		}
	}
	if math.IsNaN(d.Low) || math.IsNaN(d.High) || math.IsNaN(d.Step) {
		return nil, nil // NaN is no key to remember a distribution by
	}
	return d, nil
}

func (r rangeText) ints(log bool) (study.Distribution, error) {
	d := study.IntDist{Log: log, Step: 1}
	for _, f := range []struct {
		to   *int64
		text []byte
	}{{&d.Low, r.low}, {&d.High, r.high}, {&d.Step, r.step}} {
		if pyNull(f.text) && f.to == &d.Step {
			continue
		}
		if _, err := pyFloat(f.text); err != nil {
			return nil, err
		}
		n, err := pyInt(f.text)
		if err != nil {
			return nil, nil // it is a number, of more than 64 bits
		}
		*f.to = n
	}
	return d, nil
}

// parseChoices reads a choice. Nil is one that does not fit.
func parseChoices(attributes []byte) (study.Distribution, error) {
	d := &study.CatDist{Version: 1}
	fit, seen := true, false
	err := pyMembers(attributes, func(key string, value []byte) error {
		if key != "choices" {
			return nil
		}
		seen = true
		return pyElements(value, func(value []byte) error {
			c, ok := parseChoice(value)
			fit = fit && ok
			d.Choices = append(d.Choices, c)
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, err
	case !seen || len(d.Choices) == 0:
		return nil, fmt.Errorf("no choices")
	case !fit:
		return nil, nil
	}
	return d, nil
}

// parseChoice reads one choice of any kind.
func parseChoice(raw []byte) (c study.Choice, ok bool) {
	switch string(raw) {
	case "NaN", "Infinity", "-Infinity":
		f, err := pyFloat(raw)
		return study.FloatChoice(f), err == nil
	}
	c, err := study.JSONChoice(raw)
	if err == nil && c.Value.Type == "float" && !bytes.ContainsAny(raw, ".eE") {
		// An integer of more than 64 bits keeps its digits.
		c = study.Choice{Label: string(raw), Value: study.ChoiceValue{Type: "int", JSON: string(raw)}}
	}
	return c, err == nil
}

// appendDist spells a distribution as Optuna reads it; false is for one that
// Optuna has no notion of.
func appendDist(dst []byte, d study.Distribution) ([]byte, bool) {
	switch d := d.(type) {
	case study.FloatDist:
		dst = append(dst, `{"name": "FloatDistribution", "attributes": {"step": `...)
		if d.Step == 0 {
			dst = append(dst, "null"...)
		} else {
			dst = appendPyFloat(dst, d.Step)
		}
		dst = appendPyFloat(append(dst, `, "low": `...), d.Low)
		dst = appendPyFloat(append(dst, `, "high": `...), d.High)
		dst = strconv.AppendBool(append(dst, `, "log": `...), d.Log)
	case study.IntDist:
		dst = strconv.AppendBool(append(dst, `{"name": "IntDistribution", "attributes": {"log": `...), d.Log)
		dst = strconv.AppendInt(append(dst, `, "step": `...), max(d.Step, 1), 10)
		dst = strconv.AppendInt(append(dst, `, "low": `...), d.Low, 10)
		dst = strconv.AppendInt(append(dst, `, "high": `...), d.High, 10)
	case study.BoolDist:
		dst = append(dst, `{"name": "CategoricalDistribution", "attributes": {"choices": [false, true]`...)
	case *study.CatDist:
		dst = appendChoices(append(dst, `{"name": "CategoricalDistribution", "attributes": {"choices": `...), d)
	case study.OtherDist:
		text, ok := otherText(d)
		return append(dst, text...), ok
	default:
		return dst, false
	}
	return append(dst, "}}"...), true
}

// appendShortDist spells a distribution in Optuna's abbreviated form, where there
// is one.
func appendShortDist(dst []byte, d study.Distribution) ([]byte, bool) {
	switch d := d.(type) {
	case study.FloatDist:
		dst = appendPyFloat(append(dst, `{"type":"float","low":`...), d.Low)
		dst = appendPyFloat(append(dst, `,"high":`...), d.High)
		if d.Step != 0 {
			dst = appendPyFloat(append(dst, `,"step":`...), d.Step)
		}
		return appendShortLog(dst, d.Log), true
	case study.IntDist:
		dst = strconv.AppendInt(append(dst, `{"type":"int","low":`...), d.Low, 10)
		dst = strconv.AppendInt(append(dst, `,"high":`...), d.High, 10)
		if d.Step > 1 {
			dst = strconv.AppendInt(append(dst, `,"step":`...), d.Step, 10)
		}
		return appendShortLog(dst, d.Log), true
	case *study.CatDist:
		return append(appendChoices(append(dst, `{"type":"categorical","choices":`...), d), '}'), true
	}
	return appendDist(dst, d)
}

func appendChoices(dst []byte, d *study.CatDist) []byte {
	dst = append(dst, '[')
	for i, c := range d.Choices {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = appendChoice(dst, c.Value)
	}
	return append(dst, ']')
}

func appendShortLog(dst []byte, log bool) []byte {
	if log {
		dst = append(dst, `,"log":true`...)
	}
	return append(dst, '}')
}

func appendChoice(dst []byte, v study.ChoiceValue) []byte {
	if v.Type == "float" && strings.HasPrefix(v.JSON, `"`) {
		return append(dst, strings.Trim(v.JSON, `"`)...) // NaN and infinities
	}
	return append(dst, v.JSON...)
}

// otherText is the text in a distribution that otherDist wraps.
func otherText(d study.OtherDist) (string, bool) {
	inner, ok := strings.CutPrefix(string(d), otherDist)
	if !ok || !strings.HasSuffix(inner, "}") {
		return "", false
	}
	text, err := pyString([]byte(strings.TrimSuffix(inner, "}")))
	return text, err == nil && pyValid([]byte(text))
}

// toValue makes the journal's value of Optuna's internal one: a category is its
// index, an integer loses what is behind its point.
func toValue(d study.Distribution, internal float64) (study.Value, error) {
	refuse := func() (study.Value, error) {
		return study.Value{}, fmt.Errorf("%w: %v is not a value of its distribution", ErrInvalid, internal)
	}
	whole := math.Trunc(internal)
	switch d := d.(type) {
	case study.IntDist:
		if !(whole >= -1<<63 && whole < 1<<63) {
			return refuse()
		}
		return study.I64(int64(whole)), nil
	case *study.CatDist:
		if !(whole >= 0 && whole < float64(len(d.Choices))) {
			return refuse()
		}
		return study.Cat(uint64(whole)), nil
	}
	return study.F64(internal), nil
}

// toInternal is the opposite of toValue.
func toInternal(v study.Value) (float64, bool) {
	switch v.Kind() {
	case study.ValueF64:
		return v.F64(), true
	case study.ValueI64:
		return float64(v.I64()), true
	case study.ValueCat:
		return float64(v.Cat()), true
	case study.ValueBool:
		if v.Bool() {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// compatible refuses what Optuna refuses: another kind of distribution under the
// same name, another scale, or other choices.
func compatible(was, is study.Distribution) error {
	a, aOK := appendDist(nil, was)
	b, bOK := appendDist(nil, is)
	kindA, logA := kindOf(a)
	kindB, logB := kindOf(b)
	switch {
	case !aOK || !bOK:
		return nil
	case kindA != kindB:
		return fmt.Errorf("%w: cannot set different distribution kind to the same parameter name", errIncompatible)
	case kindA == "CategoricalDistribution" && !bytes.Equal(a, b):
		return fmt.Errorf("%w: CategoricalDistribution does not support dynamic value space", errIncompatible)
	case logA != logB:
		return fmt.Errorf("%w: cannot set different log configuration to the same parameter name", errIncompatible)
	}
	return nil
}

// kindOf is what matters of a distribution's text for compatible.
func kindOf(text []byte) (name string, log bool) {
	pyMembers(text, func(key string, value []byte) (err error) {
		switch key {
		case "name":
			name, err = pyString(value)
		case "attributes":
			err = pyMembers(value, func(key string, value []byte) error {
				log = log || key == "log" && string(value) == "true"
				return nil
			})
		}
		return err
	})
	return name, log
}
