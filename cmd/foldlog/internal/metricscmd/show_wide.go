package metricscmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// wideMetrics and wideKnobs are how many columns of each sort the table of runs has.
const wideMetrics, wideKnobs = 6, 8

// wideRow is a run in the table that has a row for each.
type wideRow struct {
	name, status string
	lastMS, step int64
	knobs        map[string]string
	metrics      map[string]metrics.Number
}

// wideTable has a row for each run, with the knobs that differ and the last value of each
// metric.
type wideTable struct {
	rows           []wideRow
	knobs, metrics nameSet
}

// nameSet has names in the order in which they were met.
type nameSet struct {
	names []string
	has   map[string]bool
}

func (s *nameSet) add(name string) {
	if s.has[name] {
		return
	}
	if s.has == nil {
		s.has = map[string]bool{}
	}
	s.has[name] = true
	s.names = append(s.names, name)
}

func (a *app) showWide(ctx context.Context, paths []string, want func(string) bool, all bool, order string) error {
	var t wideTable
	err := a.eachStream("metrics show", paths, func(path string) error {
		run, err := a.readRunNoting(ctx, path)
		if err == nil {
			t.add(run, want)
		}
		return err
	})
	if len(t.rows) == 0 {
		return err
	}
	if order != "" {
		if sortErr := t.sort(order); sortErr != nil {
			return sortErr
		}
	}
	return errors.Join(a.printWide(&t, all), err)
}

func (t *wideTable) add(run *metricsview.Run, want func(string) bool) {
	f := &run.Fold
	row := wideRow{name: run.Name(), status: metricsview.StatusText(f), lastMS: f.LastTSMS, knobs: map[string]string{}, metrics: map[string]metrics.Number{}}
	for key, raw := range f.Metadata.All() {
		if key != "knobs" {
			t.addKnob(&row, key, raw)
			continue
		}
		for key, raw := range metrics.Metadata(raw).All() {
			t.addKnob(&row, key, raw)
		}
	}
	for _, c := range f.Curves() {
		row.step = max(row.step, c.Stats.LastStep)
		if want(c.Name) {
			row.metrics[c.Name] = c.Stats.Last
			t.metrics.add(c.Name)
		}
	}
	t.rows = append(t.rows, row)
}

// addKnob passes lists and objects over, such as the sources of a run.
func (t *wideTable) addKnob(row *wideRow, key, raw string) {
	if raw == "" || raw == "null" || raw[0] == '{' || raw[0] == '[' {
		return
	}
	text := raw
	if raw[0] == '"' && json.Unmarshal([]byte(raw), &text) != nil {
		text = raw
	}
	row.knobs[key] = text
	t.knobs.add(key)
}

// differing are the knobs that tell runs apart.
func (t *wideTable) differing() []string {
	return slices.DeleteFunc(slices.Clone(t.knobs.names), func(name string) bool {
		first, there := t.rows[0].knobs[name]
		return !slices.ContainsFunc(t.rows, func(r wideRow) bool {
			value, has := r.knobs[name]
			return has != there || value != first
		})
	})
}

// sort orders the runs by the last value of a metric, or by a knob; from the largest if
// the name has a minus before it. Those that have no such number come last.
func (t *wideTable) sort(order string) error {
	name, falling := strings.CutPrefix(order, "-")
	if !t.metrics.has[name] && !t.knobs.has[name] {
		return cli.WithHint(fmt.Errorf("metrics show: --sort %s: no run has that", order), "the names are those of metrics and knobs; "+
			strconv.Quote("-NAME")+" is from the largest")
	}
	key := func(r wideRow) float64 {
		v := math.NaN()
		if n, ok := r.metrics[name]; ok {
			v = n.Float64()
		} else if knob, err := strconv.ParseFloat(r.knobs[name], 64); err == nil {
			v = knob
		}
		if falling {
			v = -v
		}
		return v
	}
	slices.SortStableFunc(t.rows, func(x, y wideRow) int {
		a, b := key(x), key(y)
		if math.IsNaN(a) || math.IsNaN(b) {
			return cmp.Compare(boolInt(math.IsNaN(a)), boolInt(math.IsNaN(b)))
		}
		return cmp.Compare(a, b)
	})
	return nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (a *app) printWide(t *wideTable, all bool) error {
	knobs, moreKnobs := shown(t.differing(), wideKnobs, all)
	names, moreMetrics := shown(t.metrics.names, wideMetrics, all)
	columns := []cli.Column{{Title: "RUN"}, {Title: "STATUS"}, {Title: "LAST EVENT"}, {Title: "STEP", Align: cli.Right}}
	for _, name := range slices.Concat(knobs, names) {
		columns = append(columns, cli.Column{Title: cli.Safe(name), Align: cli.Right})
	}
	out := cli.NewTable(columns...)
	out.Bold = a.Color()
	for _, r := range t.rows {
		cells := []string{r.name, r.status, a.Ago(r.lastMS), strconv.FormatInt(r.step, 10)}
		for _, name := range knobs {
			cells = append(cells, shortText(r.knobs[name]))
		}
		for _, name := range names {
			text := ""
			if n, ok := r.metrics[name]; ok {
				text = metricsview.NumberText(n)
			}
			cells = append(cells, text)
		}
		out.Row(cells...)
	}
	if err := out.Write(a.Out()); err != nil {
		return err
	}
	if moreKnobs+moreMetrics > 0 {
		a.Notef("%s and %s more, see --all, or --metric", cli.Plural(int64(moreKnobs), "knob"), cli.Plural(int64(moreMetrics), "metric"))
	}
	return nil
}

// shown are the names that have columns, and how many have none.
func shown(names []string, most int, all bool) ([]string, int) {
	if all || len(names) <= most {
		return names, 0
	}
	return names[:most], len(names) - most
}
