package sampler

import (
	"slices"

	"github.com/foldlog/foldlog/study"
)

// suggestSpace suggests the parameters of a space that a trial has. Those
// without conditions are suggested together. The others follow in groups of the
// same conditions, as soon as the parameters before them have their values, from
// the trials that had them. Values of given are taken as they are, and out of
// given.
func suggestSpace(s Sampler, h *History, space *study.Space, given map[string]study.Value) ([]study.Param, error) {
	if space == nil {
		return nil, nil
	}
	known := make(map[string]study.Value, len(space.Params))
	value := func(name string) (study.Value, bool) { v, ok := known[name]; return v, ok }
	for _, group := range groups(space.Params) {
		if !group[0].Active(value) {
			continue
		}
		left := 0
		for _, p := range group {
			if v, ok := given[p.Name]; ok {
				known[p.Name] = v
			} else {
				left++
			}
		}
		if left == 0 {
			continue // as in a retry: there is nothing to ask the sampler
		}
		values, err := sampleGroup(s, h, group)
		if err != nil {
			return nil, err
		}
		for i, p := range group {
			if _, ok := given[p.Name]; !ok {
				known[p.Name] = values[i]
			}
		}
	}
	var params []study.Param
	for _, p := range space.Params {
		if v, ok := known[p.Name]; ok {
			delete(given, p.Name)
			params = append(params, study.Param{Name: p.Name, Dist: p.Dist, Value: v})
		}
	}
	return params, nil
}

// groups puts the parameters of the same conditions together, the groups in the
// order of their first ones. What a condition names is in a group before: it is
// declared before, and so is the first of its group.
func groups(params []study.SpaceParam) [][]study.SpaceParam {
	var list [][]study.SpaceParam
	for _, p := range params {
		i := slices.IndexFunc(list, func(g []study.SpaceParam) bool { return sameConditions(g[0].When, p.When) })
		if i < 0 {
			i, list = len(list), append(list, nil)
		}
		list[i] = append(list[i], p)
	}
	return list
}

func sameConditions(a, b []study.Condition) bool {
	return slices.EqualFunc(a, b, func(x, y study.Condition) bool {
		return x.Param == y.Param && slices.Equal(x.Values, y.Values) && sameBound(x.Low, y.Low) && sameBound(x.High, y.High)
	})
}

func sameBound(a, b *study.Value) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// sampleGroup suggests the values of one group.
func sampleGroup(s Sampler, h *History, group []study.SpaceParam) ([]study.Value, error) {
	if len(group[0].When) == 0 {
		return sample(s, h, group)
	}
	return sample(s, h.of(group), group)
}

// of is the history for parameters that not every trial has: that of the trials that
// have them all. Every such part of a trial is drawn with a seed of its own.
func (h *History) of(group []study.SpaceParam) *History {
	part := *h
	part.apart = true
	part.Seed ^= hashName(group[0].Name)
	part.Trials = slices.DeleteFunc(slices.Clone(h.Trials), func(t *study.Trial) bool {
		return slices.ContainsFunc(group, func(p study.SpaceParam) bool { _, has := t.Param(p.Name); return !has })
	})
	return &part
}

// distOf is the distribution of a parameter that was given without being
// suggested.
func distOf(space *study.Space, name string, v study.Value) (study.Distribution, error) {
	if dist := space.Dist(name); dist != nil {
		return dist, nil
	}
	return single(v)
}
