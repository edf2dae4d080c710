package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// comparison is some studies beside one another in JSON.
type comparison struct {
	Directions []string        `json:"directions"` // of the objectives of all
	Metrics    []string        `json:"metrics"`    // as the first study names them
	Target     *number         `json:"target"`     // the worst of the best values, null with several objectives or without any
	Reference  []number        `json:"reference"`  // up to where hypervolumes go, empty with one objective
	Studies    []comparedStudy `json:"studies"`
}

// comparedStudy is one of them.
type comparedStudy struct {
	Path        string      `json:"path"`
	Study       string      `json:"study"`
	Trials      int64       `json:"trials"`
	States      stateCounts `json:"states"`
	Best        []bestTrial `json:"best"`        // the best trial, or the Pareto front
	BestParams  paramValues `json:"best_params"` // of the best trial; empty with several objectives
	Reached     *uint64     `json:"reached"`     // number of the first trial as good as the target, null if none
	Hypervolume *number     `json:"hypervolume"` // null with one objective
	VolumeError number      `json:"hypervolume_error"`
	ElapsedMS   uint64      `json:"elapsed_ms"` // from the first start to the last end
	BusyMS      uint64      `json:"busy_ms"`    // all trials together
	Better      *number     `json:"better"`     // how often a value is better than one of the first study
	P           *number     `json:"p"`          // how often chance makes such a difference
}

// compareFlags is the command line of compare.
type compareFlags struct {
	names     []string
	reference []float64
}

func (a *app) studyCompareCmd() *cobra.Command {
	var flags compareFlags
	c := &cobra.Command{
		Use:   "compare PATH... [--study NAME]... [--reference V,V...] [--json]",
		Short: "Put several studies beside one another",
		Long: `Put studies beside one another: all those of the journals given, or those that
--study names. They must have the same directions.

With one objective "reached" is the first trial that is as good as the worst of
their best values; "better" is how often the value of a completed trial is better
than one of the first study, and p how often chance alone would make such a
difference (Mann-Whitney). With several objectives the fronts are compared by
their hypervolumes, up to a reference beyond the worst values of all, or the one
that --reference gives.`,
		Example: "  foldlog study compare tpe.atj random.atj\n  foldlog study compare all.atj --study small --study large",
		Args:    operands("PATH..."),
	}
	c.Flags().StringArrayVar(&flags.names, "study", nil, "compare the study of this `NAME`; again for each further one")
	c.RegisterFlagCompletionFunc("study", completeStudies)
	c.Flags().Float64SliceVar(&flags.reference, "reference", nil, "the reference `POINT` of hypervolumes, a value per objective")
	asJSON := jsonFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		v, err := a.compare(args, &flags)
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.WriteJSON(a.Out(), v)
		}
		return a.printComparison(v)
	}
	return c
}

// side is one study of a comparison.
type side struct {
	path string
	snap *study.Snapshot
	st   *study.Study
}

// compare opens the journals one after another; snapshots outlive their readers.
func (a *app) compare(paths []string, f *compareFlags) (*comparison, error) {
	var sides []side
	found := map[string]bool{}
	for _, path := range paths {
		err := a.readStudies(path, func(r studyReader) error {
			for st := range openStudies(r.Snapshot()) {
				if len(f.names) == 0 || slices.Contains(f.names, st.Config.Name) {
					found[st.Config.Name] = true
					sides = append(sides, side{path, r.Snapshot(), st})
				}
			}
			return nil
		})
		if err != nil {
			return nil, failed("study compare", path, err)
		}
	}
	for _, name := range f.names {
		if !found[name] {
			return nil, failed("study compare", strings.Join(paths, " "), fmt.Errorf("study %q: %w", name, study.ErrNotFound))
		}
	}
	if len(sides) == 0 {
		return nil, failed("study compare", strings.Join(paths, " "), fmt.Errorf("no study: %w", study.ErrNotFound))
	}
	return compareSides(sides, f)
}

func compareSides(sides []side, f *compareFlags) (*comparison, error) {
	first := sides[0].st
	for _, s := range sides[1:] {
		if !slices.Equal(s.st.Config.Directions, first.Config.Directions) {
			return nil, cli.Usagef("study compare: %q has to %s, and %q to %s: there is nothing to compare",
				first.Config.Name, objectives(first), s.st.Config.Name, objectives(s.st))
		}
	}
	v := &comparison{Directions: directionNames(first), Metrics: metricNames(first), Reference: []number{}}
	for _, s := range sides {
		v.Studies = append(v.Studies, s.view())
	}
	if len(first.Config.Directions) == 1 {
		v.compareValues(sides)
		return v, nil
	}
	return v, v.compareVolumes(sides, f.reference)
}

func (s *side) view() comparedStudy {
	sum := summarizeStudy(s.snap, s.st)
	v := comparedStudy{Path: s.path, Study: sum.Name, Trials: sum.Trials, States: sum.States, Best: sum.Best, BestParams: paramValues{}}
	if best, _ := s.snap.Best(s.st.ID); len(best) == 1 && len(s.st.Config.Directions) == 1 {
		v.BestParams = best[0].Params
	}
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, span := range analysis.Timeline(s.snap, s.st) {
		first, last = min(first, span.From), max(last, span.To)
		v.BusyMS += span.To - span.From
	}
	if last >= first {
		v.ElapsedMS = last - first
	}
	return v
}

// values are those of the completed trials, turned so that less is better.
func (s *side) values() (values []float64) {
	for _, p := range analysis.BestSoFar(s.snap, s.st, 0) {
		v := p.Value
		if s.st.Config.Directions[0] == study.Maximize {
			v = -v
		}
		values = append(values, v)
	}
	return values
}

// compareValues compares studies of one objective.
func (v *comparison) compareValues(sides []side) {
	dir := sides[0].st.Config.Directions[0]
	for _, s := range v.Studies {
		if len(s.Best) > 0 && (v.Target == nil || study.CompareValues(dir, float64(s.Best[0].Values[0]), float64(*v.Target)) > 0) {
			target := s.Best[0].Values[0]
			v.Target = &target
		}
	}
	for i := range sides {
		for _, p := range analysis.BestSoFar(sides[i].snap, sides[i].st, 0) {
			if study.CompareValues(dir, p.Value, float64(*v.Target)) <= 0 {
				v.Studies[i].Reached = &p.Trial.Number
				break
			}
		}
		if i == 0 {
			continue
		}
		if lower, p := analysis.Difference(sides[i].values(), sides[0].values()); lower == lower {
			better, chance := number(lower), number(p)
			v.Studies[i].Better, v.Studies[i].P = &better, &chance
		}
	}
}

// compareVolumes compares studies of several objectives.
func (v *comparison) compareVolumes(sides []side, reference []float64) error {
	dirs := sides[0].st.Config.Directions
	if reference != nil && len(reference) != len(dirs) {
		return cli.Usagef("--reference: %d values, where there are %d objectives", len(reference), len(dirs))
	}
	sets := make([][][]float64, len(sides))
	for i, s := range sides {
		_, sets[i], _ = analysis.Losses(s.snap, s.st)
	}
	corner := turned(dirs, reference)
	if reference == nil {
		corner = analysis.Reference(sets...)
	}
	if corner == nil {
		return nil
	}
	v.Reference = numbers(turned(dirs, corner))
	for i := range sides {
		volume, err := analysis.Hypervolume(sets[i], corner)
		if err != nil {
			return err
		}
		value := number(volume.Value)
		v.Studies[i].Hypervolume, v.Studies[i].VolumeError = &value, number(volume.Error)
	}
	return nil
}

// turned changes the sign of values to maximize.
func turned(dirs []study.Direction, values []float64) []float64 {
	out := slices.Clone(values)
	for i, dir := range dirs[:len(out)] {
		if dir == study.Maximize {
			out[i] = -out[i]
		}
	}
	return out
}

func (a *app) printComparison(v *comparison) error {
	columns := []cli.Column{{}}
	for _, s := range v.Studies {
		columns = append(columns, cli.Column{Title: s.Study})
	}
	table := cli.NewTable(columns...)
	table.Bold = a.Color()
	row := func(label string, cell func(*comparedStudy) string) {
		cells, some := []string{label}, false
		for i := range v.Studies {
			cells = append(cells, cell(&v.Studies[i]))
			some = some || cells[i+1] != ""
		}
		if some {
			table.Row(cells...)
		}
	}
	row("journal", func(s *comparedStudy) string { return s.Path })
	row("trials", func(s *comparedStudy) string { return cli.Count(s.Trials) })
	row("", func(s *comparedStudy) string { return s.States.String() })
	row("elapsed", func(s *comparedStudy) string { return millisText(s.ElapsedMS) })
	row("busy", func(s *comparedStudy) string { return millisText(s.BusyMS) })
	if len(v.Directions) == 1 {
		v.valueRows(row)
	} else {
		row("front", func(s *comparedStudy) string { return plural(int64(len(s.Best)), "trial") })
		row("hypervolume", func(s *comparedStudy) string { return s.volumeText() })
	}
	if err := table.Write(a.Out()); err != nil {
		return err
	}
	if len(v.Reference) > 0 {
		parts := make([]string, len(v.Reference))
		for i, r := range v.Reference {
			parts[i] = v.Metrics[i] + " " + significant(float64(r))
		}
		a.Notef("hypervolumes go up to %s", strings.Join(parts, ", "))
	}
	return nil
}

// valueRows are the rows of studies of one objective.
func (v *comparison) valueRows(row func(string, func(*comparedStudy) string)) {
	row("best "+v.Metrics[0], func(s *comparedStudy) string {
		if len(s.Best) == 0 {
			return ""
		}
		return fmt.Sprintf("%s (trial %d)", significant(float64(s.Best[0].Values[0])), s.Best[0].Number)
	})
	if v.Target != nil {
		row("reached "+significant(float64(*v.Target)), func(s *comparedStudy) string {
			if s.Reached == nil {
				return "never"
			}
			return fmt.Sprintf("trial %d", *s.Reached)
		})
	}
	row("better", func(s *comparedStudy) string {
		if s.Better == nil {
			return ""
		}
		return fmt.Sprintf("%s (p %.3g)", percent(float64(*s.Better)), float64(*s.P))
	})
	var names []string
	for _, s := range v.Studies {
		for _, p := range s.BestParams {
			if !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	for _, name := range names {
		row("param "+name, func(s *comparedStudy) string {
			if i := slices.IndexFunc(s.BestParams, func(p study.Param) bool { return p.Name == name }); i >= 0 {
				return s.BestParams[i].Text()
			}
			return "-"
		})
	}
}

func (s *comparedStudy) volumeText() string {
	switch {
	case s.Hypervolume == nil:
		return ""
	case s.VolumeError > 0:
		return fmt.Sprintf("%s ± %s", significant(float64(*s.Hypervolume)), strconv.FormatFloat(float64(s.VolumeError), 'g', 2, 64))
	}
	return significant(float64(*s.Hypervolume))
}

// significant is a number with six digits.
func significant(v float64) string {
	if v-v != 0 {
		return number(v).String()
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

func millisText(ms uint64) string { return cli.Duration(time.Duration(ms) * time.Millisecond) }
