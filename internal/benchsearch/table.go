package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/study/analysis"
)

// table prints the comparison while it is made.
type table struct {
	markdown bool
	counts   map[string]int
}

func (t *table) head(other *peer) {
	t.counts = map[string]int{}
	names := []any{"problem", "sampler", "trials", "foldlog", "optuna", "p", "foldlog is"}
	if other != nil {
		names[4] = "optuna " + other.version
	}
	t.line(names...)
	if t.markdown {
		fmt.Println("|---|---|---|---|---|---|---|")
	}
}

func (t *table) line(cells ...any) {
	if t.markdown {
		fmt.Printf("|"+strings.Repeat(" %v |", len(cells))+"\n", cells...)
		return
	}
	fmt.Printf("%-14v%-18v%6v  %13v%14v%8v  %v\n", cells...)
}

func (t *table) rows(problem, sampler string, ours, theirs [][]float64) {
	for m, n := range marks {
		own := column(ours, m)
		if theirs == nil {
			t.line(problem, sampler, n, short(median(own)), "", "", "")
			continue
		}
		their := column(theirs, m)
		_, p := analysis.Difference(own, their)
		word := verdict(median(own), median(their), p)
		t.counts[word]++
		t.line(problem, sampler, n, short(median(own)), short(median(their)), fmt.Sprintf("%.3f", p), word)
	}
}

func (t *table) foot() {
	if len(t.counts) > 0 {
		fmt.Printf("\n%d better, %d alike, %d worse\n", t.counts["better"], t.counts["alike"], t.counts["worse"])
	}
}

// verdict calls two samples alike when chance makes such a difference in more
// than one of twenty cases.
func verdict(own, their, p float64) string {
	switch {
	case p > 0.05:
		return "alike"
	case own < their:
		return "better"
	}
	return "worse"
}

func short(v float64) string { return fmt.Sprintf("%.4g", v) }

// column are the scores at a mark, to six digits: what differs in later ones is
// the same point.
func column(scores [][]float64, mark int) []float64 {
	out := make([]float64, len(scores))
	for i, s := range scores {
		text := strconv.FormatFloat(s[mark], 'g', 6, 64)
		out[i], _ = strconv.ParseFloat(text, 64) // a float's own spelling
	}
	return out
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
