package optuna

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// CreateNewStudy implements the service. A study without a name gets one.
func (s *service) CreateNewStudy(ctx context.Context, r *pb.CreateNewStudyRequest) (*pb.CreateNewStudyReply, error) {
	name := r.StudyName
	if name == "" {
		name = "no-name-" + rand.Text()
	}
	directions := make([]study.Direction, len(r.Directions))
	for i, d := range r.Directions {
		if d != pb.StudyDirection_MINIMIZE {
			directions[i] = study.Maximize
		}
	}
	var id study.StudyID
	err := s.update(ctx, func(c change) (err error) {
		id, err = c.createStudy(name, directions)
		return err
	})
	return &pb.CreateNewStudyReply{StudyId: int64(id)}, err
}

// DeleteStudy implements the service: the study is hidden, its operations stay.
func (s *service) DeleteStudy(ctx context.Context, r *pb.DeleteStudyRequest) (*pb.DeleteStudyReply, error) {
	return &pb.DeleteStudyReply{}, s.update(ctx, func(c change) error { return c.deleteStudy(r.StudyId) })
}

// SetStudyUserAttribute implements the service.
func (s *service) SetStudyUserAttribute(ctx context.Context, r *pb.SetStudyUserAttributeRequest) (*pb.SetStudyUserAttributeReply, error) {
	a := attr{userSide, r.Key, r.Value}
	return &pb.SetStudyUserAttributeReply{}, s.update(ctx, func(c change) error { return c.setStudyAttr(r.StudyId, a) })
}

// SetStudySystemAttribute implements the service.
func (s *service) SetStudySystemAttribute(ctx context.Context, r *pb.SetStudySystemAttributeRequest) (*pb.SetStudySystemAttributeReply, error) {
	a := attr{systemSide, r.Key, r.Value}
	return &pb.SetStudySystemAttributeReply{}, s.update(ctx, func(c change) error { return c.setStudyAttr(r.StudyId, a) })
}

// lookUp finds a study in the state as of now.
func (s *service) lookUp(ctx context.Context, id int64) (*study.Snapshot, *study.Study, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := openStudy(snap, id)
	return snap, st, err
}

// GetStudyIdFromName implements the service.
//
//lint:ignore ST1003 the name is Optuna's
func (s *service) GetStudyIdFromName(ctx context.Context, r *pb.GetStudyIdFromNameRequest) (*pb.GetStudyIdFromNameReply, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	st, ok := snap.StudyByName(r.StudyName)
	if !ok {
		return nil, fmt.Errorf("study %.200q: %w", r.StudyName, ErrNotFound)
	}
	return &pb.GetStudyIdFromNameReply{StudyId: int64(st.ID)}, nil
}

// GetStudyNameFromId implements the service.
//
//lint:ignore ST1003 the name is Optuna's
func (s *service) GetStudyNameFromId(ctx context.Context, r *pb.GetStudyNameFromIdRequest) (*pb.GetStudyNameFromIdReply, error) {
	_, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	return &pb.GetStudyNameFromIdReply{StudyName: st.Config.Name}, nil
}

// GetStudyDirections implements the service.
func (s *service) GetStudyDirections(ctx context.Context, r *pb.GetStudyDirectionsRequest) (*pb.GetStudyDirectionsReply, error) {
	_, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	return &pb.GetStudyDirectionsReply{Directions: directionsOf(st)}, nil
}

// GetStudyUserAttributes implements the service.
func (s *service) GetStudyUserAttributes(ctx context.Context, r *pb.GetStudyUserAttributesRequest) (*pb.GetStudyUserAttributesReply, error) {
	_, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	user, _ := attrMaps(st.Attrs())
	return &pb.GetStudyUserAttributesReply{UserAttributes: user}, nil
}

// GetStudySystemAttributes implements the service.
func (s *service) GetStudySystemAttributes(ctx context.Context, r *pb.GetStudySystemAttributesRequest) (*pb.GetStudySystemAttributesReply, error) {
	_, st, err := s.lookUp(ctx, r.StudyId)
	if err != nil {
		return nil, err
	}
	_, system := attrMaps(st.Attrs())
	return &pb.GetStudySystemAttributesReply{SystemAttributes: system}, nil
}

// GetAllStudies implements the service; deleted ones are left out.
func (s *service) GetAllStudies(ctx context.Context, _ *pb.GetAllStudiesRequest) (*pb.GetAllStudiesReply, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	view, reply := newViewer(), &pb.GetAllStudiesReply{}
	for st := range snap.Studies() {
		if !st.Deleted() {
			reply.Studies = append(reply.Studies, view.study(st))
		}
	}
	return reply, nil
}
