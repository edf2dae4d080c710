package studyview

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// Comparison is some studies beside one another in JSON.
type Comparison struct {
	Directions []string        `json:"directions"` // of the objectives of all
	Metrics    []string        `json:"metrics"`    // as the first study names them
	Target     *Number         `json:"target"`     // the worst of the best values, null with several objectives or without any
	Reference  []Number        `json:"reference"`  // up to where hypervolumes go, empty with one objective
	Studies    []ComparedStudy `json:"studies"`
}

// ComparedStudy is one of them.
type ComparedStudy struct {
	Path        string      `json:"path"`
	Study       string      `json:"study"`
	Trials      int64       `json:"trials"`
	States      StateCounts `json:"states"`
	Best        []BestTrial `json:"best"`        // the best trial, or the Pareto front
	BestParams  Params      `json:"best_params"` // of the best trial; empty with several objectives
	Reached     *uint64     `json:"reached"`     // number of the first trial as good as the target, null if none
	Hypervolume *Number     `json:"hypervolume"` // null with one objective
	VolumeError Number      `json:"hypervolume_error"`
	ElapsedMS   uint64      `json:"elapsed_ms"` // from the first start to the last end
	BusyMS      uint64      `json:"busy_ms"`    // all trials together
	Better      *Number     `json:"better"`     // how often a value is better than one of the first study
	P           *Number     `json:"p"`          // how often chance makes such a difference
}

// Side is one study of a comparison.
type Side struct {
	Path string
	Snap *study.Snapshot
	St   *study.Study
}

// Compare puts studies with the same directions beside one another. Reference is where
// hypervolumes go up to, nil to choose it.
func Compare(sides []Side, reference []float64) (*Comparison, error) {
	first := sides[0].St
	for _, s := range sides[1:] {
		if !slices.Equal(s.St.Config.Directions, first.Config.Directions) {
			return nil, cli.Usagef("study compare: %q has to %s, and %q to %s: there is nothing to compare",
				first.Config.Name, Objectives(first), s.St.Config.Name, Objectives(s.St))
		}
	}
	v := &Comparison{Directions: first.DirectionNames(), Metrics: first.ObjectiveNames(), Reference: []Number{}}
	for _, s := range sides {
		v.Studies = append(v.Studies, s.view())
	}
	if len(first.Config.Directions) == 1 {
		v.compareValues(sides)
		return v, nil
	}
	return v, v.compareVolumes(sides, reference)
}

func (s *Side) view() ComparedStudy {
	sum := SummaryOf(s.Snap, s.St)
	v := ComparedStudy{Path: s.Path, Study: sum.Name, Trials: sum.Trials, States: sum.States, Best: sum.Best, BestParams: Params{}}
	if best, _ := s.Snap.Best(s.St.ID); len(best) == 1 && len(s.St.Config.Directions) == 1 {
		v.BestParams = best[0].Params
	}
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, span := range analysis.Timeline(s.Snap, s.St) {
		first, last = min(first, span.From), max(last, span.To)
		v.BusyMS += span.To - span.From
	}
	if last >= first {
		v.ElapsedMS = last - first
	}
	return v
}

// values are those of the completed trials, turned so that less is better.
func (s *Side) values() (values []float64) {
	for _, p := range analysis.BestSoFar(s.Snap, s.St, 0) {
		v := p.Value
		if s.St.Config.Directions[0] == study.Maximize {
			v = -v
		}
		values = append(values, v)
	}
	return values
}

// compareValues compares studies of one objective.
func (v *Comparison) compareValues(sides []Side) {
	dir := sides[0].St.Config.Directions[0]
	for _, s := range v.Studies {
		if len(s.Best) > 0 && (v.Target == nil || study.CompareValues(dir, float64(s.Best[0].Values[0]), float64(*v.Target)) > 0) {
			target := s.Best[0].Values[0]
			v.Target = &target
		}
	}
	for i := range sides {
		for _, p := range analysis.BestSoFar(sides[i].Snap, sides[i].St, 0) {
			if study.CompareValues(dir, p.Value, float64(*v.Target)) <= 0 {
				v.Studies[i].Reached = &p.Trial.Number
				break
			}
		}
		if i == 0 {
			continue
		}
		if lower, p := analysis.Difference(sides[i].values(), sides[0].values()); lower == lower {
			better, chance := Number(lower), Number(p)
			v.Studies[i].Better, v.Studies[i].P = &better, &chance
		}
	}
}

// compareVolumes compares studies of several objectives.
func (v *Comparison) compareVolumes(sides []Side, reference []float64) error {
	dirs := sides[0].St.Config.Directions
	if reference != nil && len(reference) != len(dirs) {
		return cli.Usagef("--reference: %d values, where there are %d objectives", len(reference), len(dirs))
	}
	sets := make([][][]float64, len(sides))
	for i, s := range sides {
		_, sets[i], _ = analysis.Losses(s.Snap, s.St)
	}
	corner := Turned(dirs, reference)
	if reference == nil {
		corner = analysis.Reference(sets...)
	}
	if corner == nil {
		return nil
	}
	v.Reference = Numbers(Turned(dirs, corner))
	for i := range sides {
		volume, err := analysis.Hypervolume(sets[i], corner)
		if err != nil {
			return err
		}
		value := Number(volume.Value)
		v.Studies[i].Hypervolume, v.Studies[i].VolumeError = &value, Number(volume.Error)
	}
	return nil
}

// Turned changes the sign of values to maximize.
func Turned(dirs []study.Direction, values []float64) []float64 {
	out := slices.Clone(values)
	for i, dir := range dirs[:len(out)] {
		if dir == study.Maximize {
			out[i] = -out[i]
		}
	}
	return out
}

// VolumeText is the hypervolume and its error, "" without.
func (s *ComparedStudy) VolumeText() string {
	switch {
	case s.Hypervolume == nil:
		return ""
	case s.VolumeError > 0:
		return fmt.Sprintf("%s ± %s", Significant(float64(*s.Hypervolume)), strconv.FormatFloat(float64(s.VolumeError), 'g', 2, 64))
	}
	return Significant(float64(*s.Hypervolume))
}

// wholeDigits bounds the whole numbers that are spelled out.
const wholeDigits = 1e15

// Significant is a number as tables have it: with six digits, or whole.
func Significant(v float64) string {
	switch {
	case v-v != 0:
		return Number(v).String()
	case v == math.Trunc(v) && math.Abs(v) < wholeDigits:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// MillisText is a time in milliseconds.
func MillisText(ms uint64) string { return cli.Duration(time.Duration(ms) * time.Millisecond) }
