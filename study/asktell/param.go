package asktell

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// ParseParam reads a parameter's value as people write it, and checks that the
// study's space has it. A study without a space takes numbers and truth values.
func ParseParam(st *study.Study, name, text string) (study.Value, error) {
	if st.Config.Space == nil {
		return parsePlain(text)
	}
	dist := st.Config.Space.Dist(name)
	if dist == nil {
		return study.Value{}, fmt.Errorf("the study declares %s", paramNames(st))
	}
	return ParseIn(dist, text)
}

// ParseIn reads a value of a distribution.
func ParseIn(dist study.Distribution, text string) (study.Value, error) {
	switch d := dist.(type) {
	case study.FloatDist:
		return parseFloat(d, text)
	case study.IntDist:
		return parseInt(d, text)
	case study.BoolDist:
		return parseBool(text)
	case *study.CatDist:
		return parseChoice(d, text)
	}
	return study.Value{}, errors.New("its distribution is of an unknown shape")
}

func paramNames(st *study.Study) string {
	var names []string
	for _, p := range st.Config.Space.Params {
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return "no parameter"
	}
	return strings.Join(names, ", ")
}

// parsePlain tells the type by the spelling.
func parsePlain(text string) (study.Value, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return study.I64(i), nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return study.F64(f), nil
	}
	if v, err := parseBool(text); err == nil {
		return v, nil
	}
	return study.Value{}, fmt.Errorf("%q: the study declares no space, so that a value is a number, true or false", text)
}

// onGrid is how far from its grid a float may be, in steps.
const onGrid = 1e-6

func parseFloat(d study.FloatDist, text string) (study.Value, error) {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return study.Value{}, fmt.Errorf("%q is not a finite number", text)
	case f < d.Low || f > d.High:
		return study.Value{}, fmt.Errorf("%v is not from %v to %v", spell(f), spell(d.Low), spell(d.High))
	}
	if cells := (f - d.Low) / d.Step; d.Step > 0 && f != d.High && math.Abs(cells-math.Round(cells)) > onGrid {
		return study.Value{}, fmt.Errorf("%v is not %v and a multiple of %v", spell(f), spell(d.Low), spell(d.Step))
	}
	return study.F64(f), nil
}

func parseInt(d study.IntDist, text string) (study.Value, error) {
	i, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return study.Value{}, fmt.Errorf("%q is not a whole number of 64 bits", text)
	case i < d.Low || i > d.High:
		return study.Value{}, fmt.Errorf("%d is not from %d to %d", i, d.Low, d.High)
	case d.Step > 1 && (uint64(i)-uint64(d.Low))%uint64(d.Step) != 0:
		return study.Value{}, fmt.Errorf("%d is not %d and a multiple of %d", i, d.Low, d.Step)
	}
	return study.I64(i), nil
}

func parseBool(text string) (study.Value, error) {
	switch strings.ToLower(text) {
	case "true":
		return study.Bool(true), nil
	case "false":
		return study.Bool(false), nil
	}
	return study.Value{}, fmt.Errorf("%q is neither true nor false", text)
}

// parseChoice finds a choice by its value as JSON, else by its label. So 1 and
// "1" can be told apart where both are choices.
func parseChoice(d *study.CatDist, text string) (study.Value, error) {
	if asked, err := study.JSONChoice([]byte(text)); err == nil {
		for i, c := range d.Choices {
			if c.Value == asked.Value {
				return study.Cat(uint64(i)), nil
			}
		}
	}
	var labels []string
	for i, c := range d.Choices {
		if c.Label == text {
			return study.Cat(uint64(i)), nil
		}
		labels = append(labels, c.Label)
	}
	return study.Value{}, fmt.Errorf("%q is not one of %s", text, strings.Join(labels, ", "))
}

// spell is a number as people read it.
func spell(f float64) string { return serde.Text(serde.AppendFloat(nil, f)) }
