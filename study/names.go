package study

import (
	"strconv"
	"strings"
)

// Name is the state in lower case, as everything that people and programs read has it.
func (s State) Name() string { return strings.ToLower(s.String()) }

// Name is the phase in lower case, as everything that people and programs read has it.
func (p Phase) Name() string { return strings.ToLower(p.String()) }

// DirectionNames are the directions of the objectives in lower case, as everything that
// people and programs read has them; never nil.
func (s *Study) DirectionNames() []string {
	names := []string{}
	for _, d := range s.Config.Directions {
		names = append(names, strings.ToLower(d.String()))
	}
	return names
}

// ObjectiveNames are the names of the objectives: the study's own, else "value", or
// "value_0", "value_1" and so on if there are several. They must not be changed.
func (s *Study) ObjectiveNames() []string {
	n := len(s.Config.Directions)
	switch {
	case len(s.Config.MetricNames) == n && n > 0:
		return s.Config.MetricNames
	case n == 1:
		return []string{"value"}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = "value_" + strconv.Itoa(i)
	}
	return names
}
