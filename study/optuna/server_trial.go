package optuna

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// CreateNewTrial implements the service.
func (s *service) CreateNewTrial(ctx context.Context, r *pb.CreateNewTrialRequest) (*pb.CreateNewTrialReply, error) {
	create := func(c change) (study.TrialID, error) { return c.createTrial(r.StudyId) }
	if !r.TemplateTrialIsNone {
		tpl, err := readTemplate(r.TemplateTrial)
		if err != nil {
			return nil, err
		}
		create = func(c change) (study.TrialID, error) { return c.createFrom(r.StudyId, tpl) }
	}
	var id study.TrialID
	err := s.update(ctx, func(c change) (err error) {
		id, err = create(c)
		return err
	})
	return &pb.CreateNewTrialReply{TrialId: int64(id)}, err
}

// readTemplate reads a template; nil is a message without one, which is empty.
func readTemplate(m *pb.Trial) (tpl *template, err error) {
	tpl = new(template)
	if tpl.state, err = parseState(int64(m.GetState())); err != nil {
		return nil, err
	}
	if tpl.start, err = parseMoment(m.GetDatetimeStart()); err != nil {
		return nil, err
	}
	if tpl.complete, err = parseMoment(m.GetDatetimeComplete()); err != nil {
		return nil, err
	}
	tpl.values = noneIfEmpty(m.GetValues())
	for _, name := range sortedKeys(m.GetParams()) {
		d, err := parseDist(m.GetDistributions()[name])
		if err != nil {
			return nil, fmt.Errorf("parameter %.80q: %w", name, err)
		}
		tpl.params = append(tpl.params, param{name, m.GetParams()[name], d})
	}
	for _, key := range sortedKeys(m.GetUserAttributes()) {
		tpl.attrs = append(tpl.attrs, attr{userSide, key, m.GetUserAttributes()[key]})
	}
	for _, key := range sortedKeys(m.GetSystemAttributes()) {
		tpl.attrs = append(tpl.attrs, attr{systemSide, key, m.GetSystemAttributes()[key]})
	}
	for _, step := range slices.Sorted(maps.Keys(m.GetIntermediateValues())) {
		tpl.curve = append(tpl.curve, point{step, m.GetIntermediateValues()[step]})
	}
	return tpl, nil
}

// noneIfEmpty is nil where a message has no values.
func noneIfEmpty(values []float64) []float64 {
	if len(values) == 0 {
		return nil
	}
	return values
}

// SetTrialParameter implements the service.
func (s *service) SetTrialParameter(ctx context.Context, r *pb.SetTrialParameterRequest) (*pb.SetTrialParameterReply, error) {
	asked := false
	known := func(id study.StudyID, name string) (d study.Distribution, ok bool) {
		d, ok = s.dists.get(id, name)
		asked = asked || !ok
		return d, ok
	}
	err := s.updateKnowing(ctx, known, func(c change) error {
		return c.setParam(r.TrialId, r.ParamName, r.ParamValueInternal, r.Distribution)
	})
	if err == nil && asked {
		s.dists.learn(s.store.Snapshot(), r.TrialId, r.ParamName)
	}
	return &pb.SetTrialParameterReply{}, err
}

// GetTrialIdFromStudyIdTrialNumber implements the service.
//
//lint:ignore ST1003 the name is Optuna's
func (s *service) GetTrialIdFromStudyIdTrialNumber(ctx context.Context, r *pb.GetTrialIdFromStudyIdTrialNumberRequest) (*pb.GetTrialIdFromStudyIdTrialNumberReply, error) {
	snap, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	if r.TrialNumber < 0 {
		return nil, fmt.Errorf("trial number %d: %w", r.TrialNumber, ErrNotFound)
	}
	t, err := snap.TrialByNumber(st.ID, uint64(r.TrialNumber))
	if err != nil {
		return nil, err
	}
	return &pb.GetTrialIdFromStudyIdTrialNumberReply{TrialId: int64(t.ID)}, nil
}

// SetTrialStateValues implements the service.
func (s *service) SetTrialStateValues(ctx context.Context, r *pb.SetTrialStateValuesRequest) (*pb.SetTrialStateValuesReply, error) {
	state, err := parseState(int64(r.State))
	if err != nil {
		return nil, err
	}
	updated := false
	err = s.update(ctx, func(c change) (err error) {
		updated, err = c.setState(r.TrialId, state, noneIfEmpty(r.Values), ofMillis(c.AtMillis()))
		return err
	})
	return &pb.SetTrialStateValuesReply{TrialUpdated: updated}, err
}

// SetTrialIntermediateValue implements the service.
func (s *service) SetTrialIntermediateValue(ctx context.Context, r *pb.SetTrialIntermediateValueRequest) (*pb.SetTrialIntermediateValueReply, error) {
	return &pb.SetTrialIntermediateValueReply{}, s.update(ctx, func(c change) error {
		return c.setPoint(r.TrialId, point{r.Step, r.IntermediateValue})
	})
}

// SetTrialUserAttribute implements the service.
func (s *service) SetTrialUserAttribute(ctx context.Context, r *pb.SetTrialUserAttributeRequest) (*pb.SetTrialUserAttributeReply, error) {
	a := attr{userSide, r.Key, r.Value}
	return &pb.SetTrialUserAttributeReply{}, s.update(ctx, func(c change) error { return c.setTrialAttr(r.TrialId, a) })
}

// SetTrialSystemAttribute implements the service.
func (s *service) SetTrialSystemAttribute(ctx context.Context, r *pb.SetTrialSystemAttributeRequest) (*pb.SetTrialSystemAttributeReply, error) {
	a := attr{systemSide, r.Key, r.Value}
	return &pb.SetTrialSystemAttributeReply{}, s.update(ctx, func(c change) error { return c.setTrialAttr(r.TrialId, a) })
}

// GetTrial implements the service.
func (s *service) GetTrial(ctx context.Context, r *pb.GetTrialRequest) (*pb.GetTrialReply, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	t, err := openTrial(snap, r.TrialId)
	if err != nil {
		return nil, err
	}
	reply := new(pb.GetTrialReply)
	fill(reply, t)
	return reply, nil
}

// GetTrials implements the service.
func (s *service) GetTrials(ctx context.Context, r *pb.GetTrialsRequest) (*pb.GetTrialsReply, error) {
	snap, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	reply := new(pb.GetTrialsReply)
	fill(reply, selectTrials(snap, st, r.IncludedTrialIds, r.TrialIdGreaterThan)...)
	return reply, ctx.Err()
}
