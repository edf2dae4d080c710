package sampler

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// Defaults of [TPE].
const (
	// DefaultStartup is how many trials must have finished before a model is
	// built from them.
	DefaultStartup = 10
	// DefaultCandidates is how many points are drawn for one suggestion.
	DefaultCandidates = 24
	// maxGood is how many trials are good at most.
	maxGood = 25
	// togetherChance is how often parameters are modelled as one point. On a
	// front the good trials are far from each other, and few for so many
	// dimensions: the parameters one by one say more.
	togetherChance, togetherChanceSeveral = 0.8, 0.25
)

// TPE is the tree-structured Parzen estimator: it models where the good trials
// are and where all others are, and suggests, of some points drawn from the
// first, the one that is likeliest under the first against the second.
//
// Good are the best tenth, at most 25, of the completed trials; with several
// objectives by fronts and the hypervolume of what is chosen. Pruned trials come after all
// completed ones, those that got farther first; trials whose value is NaN after
// these. Failed ones are not looked at. Trials that run are taken for bad ones
// (the constant liar), so that workers do not crowd at one place. Until there
// are enough finished trials it draws as [Random] does.
type TPE struct {
	// Startup is how many trials must have finished, less than 1 for [DefaultStartup].
	Startup int
	// Candidates is how many points are drawn, less than 1 for [DefaultCandidates].
	Candidates int
	// Univariate models every parameter by itself, which sees no interactions
	// but does not mind how many parameters there are. Multivariate models the
	// parameters that a trial gets together as one point. With neither a coin
	// decides for each trial: four of five take the second, with several
	// objectives one of four.
	Univariate, Multivariate bool
}

var _ Sampler = TPE{}

const tpeStream = 0x9e3779b97f4a7c15

// Sample implements [Sampler]. The error, of a study without an objective, wraps
// [study.ErrInvalid].
func (s TPE) Sample(h *History, space []study.SpaceParam) ([]study.Value, error) {
	if len(h.Directions) == 0 {
		return nil, errNoObjective
	}
	good, bad := h.split()
	startup, candidates := s.Startup, s.Candidates
	if startup < 1 {
		startup = DefaultStartup
	}
	if candidates < 1 {
		candidates = DefaultCandidates
	}
	if len(good)+h.ended(bad) < startup || len(good) == 0 {
		return Random{}.Sample(h, space)
	}
	if len(space) == 0 {
		return nil, nil
	}
	axes, rng := newAxes(space), h.rng(tpeStream)
	importance := h.importance(good)
	suggest := func(from, to int) []float64 {
		part, where := space[from:to], axes[from:to]
		best, weight := columnsOf(good, importance, part, where)
		rest, _ := columnsOf(bad, make([]float64, len(bad)), part, where)
		low := newParzen(where, best, normalWeights(weight))
		return suggestPoint(rng, low, newParzen(where, rest, ageWeights(len(rest[0]))), candidates)
	}
	chance := togetherChance
	if len(h.Directions) > 1 {
		chance = togetherChanceSeveral
	}
	together := rng.Float64() < chance
	if (together || s.Multivariate) && !s.Univariate {
		return valuesAt(axes, suggest(0, len(axes))), nil
	}
	row := make([]float64, 0, len(axes))
	for i := range axes {
		row = append(row, suggest(i, i+1)...)
	}
	return valuesAt(axes, row), nil
}

// importance says how much the good trials count, the best first. With one
// objective it falls with the logarithm of the rank, as in evolution strategies,
// so that the search follows the best few. With several it is the hypervolume
// that the front would lose without the trial.
func (h *History) importance(good []*study.Trial) []float64 {
	if len(h.Directions) > 1 {
		losses := make([][]float64, 0, len(good))
		for _, t := range good {
			if t.State == study.Complete {
				losses = append(losses, h.losses(t))
			}
		}
		return append(contributions(losses), make([]float64, len(good)-len(losses))...)
	}
	out := make([]float64, len(good))
	for k := range out {
		out[k] = math.Log(float64(len(good)+1) / float64(k+1))
	}
	return out
}

// split divides the trials into good ones, the best first, and others, by
// number.
func (h *History) split() (good, bad []*study.Trial) {
	ranked := h.ranked()
	good = ranked[:goodOf(len(ranked))]
	isGood := make(map[*study.Trial]bool, len(good))
	for _, t := range good {
		isGood[t] = true
	}
	bad = make([]*study.Trial, 0, len(h.Trials))
	for _, t := range h.Trials {
		if t.State != study.Failed && !isGood[t] {
			bad = append(bad, t)
		}
	}
	return good, bad
}

// goodOf is how many of the best of n trials are good.
func goodOf(n int) int { return min(int(math.Ceil(0.1*float64(n))), maxGood) }

// ended counts the trials that are over.
func (h *History) ended(ts []*study.Trial) (n int) {
	for _, t := range ts {
		if t.State.Terminal() {
			n++
		}
	}
	return n
}

// ranked returns the trials that say something, the best first (with several
// objectives only the good ones are apart from the others). The others that did not
// fail are taken for bad ones: running ones, and those without any number.
func (h *History) ranked() (ranked []*study.Trial) {
	type end struct {
		t    *study.Trial
		step uint64
		loss float64
	}
	var done []*study.Trial
	var ends []end
	for _, t := range h.Trials {
		switch {
		case h.usable(t) && !slices.ContainsFunc(t.Values, math.IsNaN):
			done = append(done, t)
		case t.State == study.Pruned:
			if step, values, _ := t.LastReport(); len(values) > 0 { // a foreign journal may have reports without
				ends = append(ends, end{t, step, loss(h.Directions[0], values[0])})
			}
		}
	}
	h.sortDone(done, goodOf(len(done)+len(ends)))
	slices.SortStableFunc(ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(b.step, a.step), cmp.Compare(a.loss, b.loss))
	})
	ranked = done
	for _, e := range ends {
		ranked = append(ranked, e.t)
	}
	return ranked
}

// sortDone puts the best n of the completed trials first.
func (h *History) sortDone(done []*study.Trial, n int) {
	if len(h.Directions) == 1 {
		h.sortByValue(done)
		return
	}
	losses := make([][]float64, len(done))
	for i, t := range done {
		losses[i] = h.losses(t)
	}
	first, _ := bestOf(losses, min(len(done), n), largest)
	isFirst := make([]bool, len(done))
	sorted := make([]*study.Trial, 0, len(done))
	for _, i := range first {
		isFirst[i] = true
		sorted = append(sorted, done[i])
	}
	for i, t := range done {
		if !isFirst[i] {
			sorted = append(sorted, t)
		}
	}
	copy(done, sorted)
}

// sortByValue sorts trials without NaN, equal ones by number. The values are
// taken out first, as they lie far apart.
func (h *History) sortByValue(done []*study.Trial) {
	type result struct {
		loss float64
		at   int
		t    *study.Trial
	}
	list := make([]result, len(done))
	for i, t := range done {
		list[i] = result{loss(h.Directions[0], t.Values[0]), i, t}
	}
	slices.SortFunc(list, func(a, b result) int {
		switch {
		case a.loss < b.loss:
			return -1
		case a.loss > b.loss:
			return 1
		}
		return a.at - b.at
	})
	for i := range list {
		done[i] = list[i].t
	}
}

// suggestPoint draws candidates where the good trials are and returns the one
// that the others speak against least.
func suggestPoint(rng *rand.Rand, low, high *parzen, n int) []float64 {
	points := low.draw(rng, n)
	score, against := low.logDensity(points, n), high.logDensity(points, n)
	top := 0
	for c := range score {
		if score[c] -= against[c]; score[c] > score[top] {
			top = c
		}
	}
	row := make([]float64, len(points))
	for i := range row {
		row[i] = points[i][top]
	}
	return row
}

// columnsOf are the places of the trials that have all parameters, and their
// weights.
func columnsOf(ts []*study.Trial, weights []float64, space []study.SpaceParam, axes []axis) (columns [][]float64, kept []float64) {
	columns, row := make([][]float64, len(axes)), make([]float64, len(axes))
	for i := range columns {
		columns[i] = make([]float64, 0, len(ts))
	}
	r := newReader(space, axes)
	for k, t := range ts {
		if !r.read(t, row) {
			continue
		}
		kept = append(kept, weights[k])
		for i, u := range row {
			columns[i] = append(columns[i], u)
		}
	}
	return columns, kept
}
