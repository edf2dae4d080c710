package studyview

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/analysis"
)

// ImportanceOptions say how importance is computed.
type ImportanceOptions struct {
	Method, Objective string
	Trees             int
	Seed              uint64
	Ranks             bool
}

// Importance is the importance of the parameters of a study in JSON.
type Importance struct {
	Study     string            `json:"study"`
	Metric    string            `json:"metric"` // what they are important for
	Method    string            `json:"method"` // fanova or permutation
	Trials    int               `json:"trials"` // it was computed from
	Left      int               `json:"left"`   // completed trials left out, whose value is NaN or infinite
	Explained *Number           `json:"explained"`
	Params    []ParamImportance `json:"params"` // the most important first
}

// ParamImportance is how much one parameter matters.
type ParamImportance struct {
	Param    string  `json:"param"`
	Share    float64 `json:"share"`    // of what parameters make by themselves; all sum to 1
	Fraction float64 `json:"fraction"` // of the whole variance
	Spread   float64 `json:"spread"`   // standard deviation of fraction among the trees
	Trials   int     `json:"trials"`   // that have the parameter
}

// PickObjective finds an objective by its name or number.
func PickObjective(st *study.Study, text string) (int, error) {
	names := st.ObjectiveNames()
	if text == "" {
		return 0, nil
	}
	if i := slices.Index(names, text); i >= 0 {
		return i, nil
	}
	if i, err := strconv.Atoi(text); err == nil && i >= 0 && i < len(names) {
		return i, nil
	}
	return 0, cli.Usagef("--objective %q: the objectives are %s", text, Objectives(st))
}

// Compute says how much each parameter of a study matters. A wrong option is a
// cli.UsageError.
func (f *ImportanceOptions) Compute(snap *study.Snapshot, st *study.Study) (*Importance, error) {
	objective, err := PickObjective(st, f.Objective)
	if err != nil {
		return nil, err
	}
	opts := analysis.ImportanceOptions{Objective: objective, Trees: f.Trees, Seed: f.Seed, Ranks: f.Ranks}
	switch {
	case f.Method == "permutation":
		opts.Method = analysis.Permutation
	case f.Method != "fanova":
		return nil, cli.Usagef("--method %q: fanova or permutation", f.Method)
	case f.Trees < 0 || f.Trees > analysis.MaxTrees:
		return nil, cli.Usagef("--trees %d: up to %d", f.Trees, analysis.MaxTrees)
	}
	r, err := analysis.Importances(snap, st, opts)
	if errors.Is(err, analysis.ErrTooFew) {
		return nil, cli.WithHint(err, "a few dozen completed trials say something; foldlog study show counts them")
	}
	if err != nil {
		return nil, err
	}
	view := &Importance{Study: st.Config.Name, Metric: st.ObjectiveNames()[objective], Method: f.Method, Trials: r.Trials, Left: r.Left, Params: []ParamImportance{}}
	if r.Explained == r.Explained {
		explained := Number(r.Explained)
		view.Explained = &explained
	}
	for _, p := range r.Params {
		view.Params = append(view.Params, ParamImportance(p))
	}
	return view, nil
}

// Percent is a part of a whole.
func Percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + "%" }

// poorlyExplained is below which R² the importances mean little.
const poorlyExplained = 0.3

// Notes are what to know about the numbers.
func (v *Importance) Notes() []string {
	note := fmt.Sprintf("%s for %s, from %s", v.Method, v.Metric, cli.Plural(int64(v.Trials), "trial"))
	if v.Left > 0 {
		note += fmt.Sprintf(", %s without a finite value left out", cli.Count(int64(v.Left)))
	}
	switch {
	case v.Explained == nil:
		note += "; all values are the same"
	case *v.Explained < poorlyExplained:
		note += fmt.Sprintf("; they explain little of what unseen trials get (R² %.2f): do not trust this", *v.Explained)
	default:
		note += fmt.Sprintf("; they explain %s of the variance of unseen trials", Percent(float64(*v.Explained)))
	}
	return []string{note}
}
