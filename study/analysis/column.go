package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/foldlog/foldlog/study"
)

// maxCategories is how many categories of a parameter the trees tell apart; of
// more, the rarest count as one.
const maxCategories = 63

// column is one parameter as the trees see it. A number is a place from 0 to 1,
// where equal lengths are equally likely a priori; a choice is the index of a
// category. Trials that lack the parameter are at the lower end of the numbers,
// which then begin at absent, or are a category of their own, the last.
type column struct {
	name    string
	trials  int     // that have it
	absent  float64 // the part of trials that do not
	numeric bool
	x       []float64 // of each row: place or category
	has     []bool
	mass    []float64 // of each category
	order   []int32   // rows by place, of a numeric column
	varies  bool
}

// param is what the trials say about one parameter.
type param struct {
	name    string
	numeric bool
	log     bool
	lo, hi  float64        // bounds of all distributions it was drawn from, in its scale
	of      []*study.Param // by trial, nil where it is missing
}

// readParams finds the parameters of trials, the declared ones first.
func readParams(st *study.Study, trials []*study.Trial) []*param {
	var list []*param
	byName := map[string]*param{}
	add := func(name string) *param {
		p := byName[name]
		if p == nil {
			p = &param{name: name, numeric: true, log: true, lo: math.Inf(1), hi: math.Inf(-1)}
			byName[name] = p
			list = append(list, p)
		}
		return p
	}
	if st.Config.Space != nil {
		for _, p := range st.Config.Space.Params {
			add(p.Name)
		}
	}
	for at, t := range trials {
		for i := range t.Params {
			p := add(t.Params[i].Name)
			if p.of == nil {
				p.of = make([]*study.Param, len(trials))
			}
			p.of[at] = &t.Params[i]
			p.see(&t.Params[i])
		}
	}
	return slices.DeleteFunc(list, func(p *param) bool { return p.of == nil })
}

// see widens what is known by one trial's value. A parameter is a number if all
// its values are, and logarithmic if all of them were drawn so.
func (p *param) see(v *study.Param) {
	x, ok := numberOf(v.Value)
	p.numeric = p.numeric && ok
	if !ok {
		return
	}
	lo, hi, log := bounds(v.Dist)
	p.log = p.log && log && x > 0
	for _, b := range [...]float64{lo, hi, x} {
		if finite(b) {
			p.lo, p.hi = min(p.lo, b), max(p.hi, b)
		}
	}
}

// numberOf is a parameter's value as a number.
func numberOf(v study.Value) (float64, bool) {
	switch v.Kind() {
	case study.ValueF64:
		return v.F64(), true
	case study.ValueI64:
		return float64(v.I64()), true
	}
	return 0, false
}

// bounds are the ends of the range that values were drawn from, with half a step
// around those of a grid, and whether they are logarithmic.
func bounds(dist study.Distribution) (lo, hi float64, log bool) {
	switch d := dist.(type) {
	case study.FloatDist:
		return d.Low - d.Step/2, d.High + d.Step/2, d.Log && d.Low > 0
	case study.IntDist:
		half := float64(max(d.Step, 1)) / 2
		if d.Log {
			half = 0.5
		}
		return float64(d.Low) - half, float64(d.High) + half, d.Log && d.Low > 0
	}
	return math.NaN(), math.NaN(), false
}

// place is where a number lies between the bounds, from 0 to 1.
func (p *param) place(x float64) float64 {
	lo, hi := p.lo, p.hi
	if p.log && lo > 0 {
		lo, hi, x = math.Log(lo), math.Log(hi), math.Log(x)
	}
	if u := halfRange(lo, x) / halfRange(lo, hi); finite(u) {
		return min(max(u, 0), 1)
	}
	return 0.5
}

// column makes the parameter's column.
func (p *param) column() *column {
	c := &column{name: p.name, numeric: p.numeric, x: make([]float64, len(p.of)), has: make([]bool, len(p.of))}
	var texts map[string]int
	if !p.numeric {
		texts = p.categories()
	}
	for i, v := range p.of {
		if v == nil {
			continue
		}
		if p.numeric {
			x, _ := numberOf(v.Value)
			if !finite(x) {
				continue
			}
			c.x[i] = p.place(x)
		} else {
			c.x[i] = float64(texts[v.Text()])
		}
		c.has[i] = true
		c.trials++
	}
	c.absent = 1 - float64(c.trials)/float64(len(p.of))
	if p.numeric {
		c.settleNumbers()
	} else {
		c.settleCategories(texts)
	}
	c.varies = slices.ContainsFunc(c.x, func(x float64) bool { return x != c.x[0] })
	return c
}

// settleNumbers makes room for the trials that lack the parameter.
func (c *column) settleNumbers() {
	c.order = make([]int32, len(c.x))
	for i := range c.x {
		c.order[i] = int32(i)
		if c.has[i] {
			c.x[i] = c.absent + (1-c.absent)*c.x[i]
		} else {
			c.x[i] = -1
		}
	}
	slices.SortFunc(c.order, func(a, b int32) int { return cmp.Or(cmp.Compare(c.x[a], c.x[b]), cmp.Compare(a, b)) })
}

// settleCategories gives every category the same mass, and those that lack the
// parameter theirs.
func (c *column) settleCategories(texts map[string]int) {
	n := 0
	for _, index := range texts {
		n = max(n, index+1)
	}
	c.mass = make([]float64, n, n+1)
	for i := range c.mass {
		c.mass[i] = (1 - c.absent) / float64(n)
	}
	if c.trials < len(c.x) {
		c.mass = append(c.mass, c.absent)
		for i := range c.x {
			if !c.has[i] {
				c.x[i] = float64(n)
			}
		}
	}
}

// categories numbers the values that the parameter has, the most frequent first.
func (p *param) categories() map[string]int {
	count := map[string]int{}
	for _, v := range p.of {
		if v != nil {
			count[v.Text()]++
		}
	}
	texts := make([]string, 0, len(count))
	for text := range count {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	for i, text := range texts {
		count[text] = min(i, maxCategories-1)
	}
	return count
}

// cut is the place between two neighbours of a numeric column.
func (c *column) cut(below, above float64) float64 {
	if below < 0 {
		return c.absent
	}
	return midpoint(below, above)
}
