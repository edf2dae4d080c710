package studycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
	"github.com/foldlog/foldlog/study/sampler"
	"github.com/foldlog/foldlog/study/space"
)

// ask claims the trial that has waited longest, or a new one. Its parameters
// are suggested when nobody is kept from the journal, and written with the next
// change. A trial that an ask before has started without hearing of it, because the
// answer of the server was lost, is the one that this one gets.
func (s *conversation) ask(ctx context.Context, r *request) (any, error) {
	var fence study.Fence
	err := s.st.Update(ctx, func(tx *study.Tx) error {
		if t := s.unheard(tx.Snapshot(), tx.Worker()); t != nil {
			fence = t.Fence()
			return nil
		}
		t := asktell.FirstWaiting(tx.Snapshot(), s.id, true)
		if t == nil {
			ref, err := tx.LifecycleReserve(s.id, nil, r.Budget)
			if err != nil {
				return err
			}
			if t, err = tx.Snapshot().Trial(ref.ID); err != nil {
				return err
			}
		}
		var err error
		fence, err = tx.LifecycleClaim(t.ID, study.Claim{From: study.Waiting, Worker: tx.Worker(), HeartbeatMillis: tx.AtMillis()})
		if err != nil {
			return err
		}
		return tx.SetLease(fence, s.opts.lease)
	})
	if err != nil {
		return nil, err
	}
	snap, st, err := s.study()
	if err != nil {
		return nil, err
	}
	t, err := snap.Trial(fence.Trial)
	if err != nil {
		return nil, err
	}
	own := &runningTrial{fence: fence}
	s.running[t.Number] = own
	if err := s.prepare(own, snap, st, t); err != nil {
		return nil, err
	}
	v := studyview.TrialOf(snap, st, t)
	v.Params = own.params
	return AskedTrial{st.Config.Name, v}, nil
}

// unheard is a trial that this session has claimed and does not know, nil if there is
// none.
func (s *conversation) unheard(snap *study.Snapshot, worker uint64) *study.Trial {
	for t := range snap.LiveTrials(s.id, study.Running) {
		if t.Managed && t.Owner == worker && s.running[t.Number] == nil {
			return t
		}
	}
	return nil
}

// prepare suggests the declared parameters of a trial, and remembers which of
// the others were given.
func (s *conversation) prepare(own *runningTrial, snap *study.Snapshot, st *study.Study, t *study.Trial) error {
	method, err := sampler.Of(st)
	if err != nil {
		return err
	}
	own.params, own.written = slices.Clone(t.Params), len(t.Params)
	var declaredFixed []study.FixedParam
	if t.Template != nil {
		for _, f := range t.Template.Fixed {
			if st.Config.Space.Dist(f.Name) != nil {
				declaredFixed = append(declaredFixed, f)
			} else {
				own.fixed = append(own.fixed, f)
			}
		}
	}
	for source := t; source != nil && own.texts == nil; source = studyview.ParentOf(snap, source) {
		if a, ok := st.Attr(textsKey(source.ID)); ok {
			if err := json.Unmarshal([]byte(a.Value), &own.texts); err != nil {
				return fmt.Errorf("attribute %s: %w", textsKey(source.ID), err)
			}
		}
	}
	h := sampler.NewHistory(snap, st, t.Number)
	own.asker = sampler.NewAsker(method, h)
	if st.Config.Space == nil || len(t.Params) > 0 {
		return nil
	}
	params, err := sampler.Suggest(method, h, st.Config.Space, declaredFixed)
	if err != nil {
		return err
	}
	own.add(s, params...)
	return nil
}

// add takes parameters that are still to be written.
func (t *runningTrial) add(s *conversation, params ...study.Param) {
	t.params = append(t.params, params...)
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// SuggestedValue is what is answered to a suggestion.
type SuggestedValue struct {
	Value json.RawMessage `json:"value"`
	Index *uint64         `json:"index"` // which choice it is, null if it is none
}

func (s *conversation) suggest(t *runningTrial, r *request) (any, error) {
	dist, err := parseDist(r.Name, r.Dist)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(t.params, func(p study.Param) bool { return p.Name == r.Name })
	if i >= 0 {
		if !sameDist(t.params[i].Dist, dist) {
			return nil, cli.Usagef("parameter %q of trial %d has been drawn from another distribution", r.Name, *r.Trial)
		}
		return viewValue(t.params[i])
	}
	v, ok := t.given(r.Name, dist)
	if !ok {
		if v, err = t.asker.Suggest(r.Name, dist); err != nil {
			return nil, err
		}
	}
	p := study.Param{Name: r.Name, Dist: dist, Value: v}
	t.add(s, p)
	return viewValue(p)
}

// parseDist reads one distribution, written as in a space.
func parseDist(name string, raw json.RawMessage) (study.Distribution, error) {
	if name == "" {
		return nil, cli.Usagef("a parameter has no name")
	}
	text := append(serde.AppendString([]byte("{"), name), ':')
	sp, err := space.Parse("", append(append(text, raw...), '}'))
	var at *space.Error
	if errors.As(err, &at) {
		err = at.Err // the place is a line of our own
	}
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	if len(sp.Params) != 1 {
		return nil, cli.Usagef("parameter %q has no distribution", name)
	}
	return sp.Params[0].Dist, nil
}

func sameDist(a, b study.Distribution) bool {
	return sameSpace(&study.Space{Params: []study.SpaceParam{{Dist: a}}}, &study.Space{Params: []study.SpaceParam{{Dist: b}}})
}

// given is the value that a parameter was given in advance, if the distribution
// has it.
func (t *runningTrial) given(name string, dist study.Distribution) (study.Value, bool) {
	for _, f := range t.fixed {
		if f.Name != name {
			continue
		}
		if f.Value.Kind() == study.ValueCat {
			d, ok := dist.(*study.CatDist)
			return f.Value, ok && f.Value.Cat() < uint64(len(d.Choices))
		}
		v, err := asktell.ParseIn(dist, study.Param{Value: f.Value}.Text())
		return v, err == nil
	}
	if raw, ok := t.texts[name]; ok {
		v, err := asktell.ParseIn(dist, plainText(raw))
		return v, err == nil
	}
	return study.Value{}, false
}

// plainText is a JSON value as operands spell it: a string without its quotes.
func plainText(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

func viewValue(p study.Param) (SuggestedValue, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(study.AppendParams(nil, []study.Param{p}), &object); err != nil {
		return SuggestedValue{}, err
	}
	v := SuggestedValue{Value: object[p.Name]}
	if p.Value.Kind() == study.ValueCat {
		index := p.Value.Cat()
		v.Index = &index
	}
	return v, nil
}
