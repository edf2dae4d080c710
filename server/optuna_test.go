package server

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foldlog/foldlog/server/internal/wire"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

func TestStudiesOfOptunaAreStudiesOfTheServer(t *testing.T) {
	s := newSite(t, Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.ServeOptuna(ctx, l, "tuning/optuna.atj") }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := pb.NewStorageServiceClient(conn)
	made, err := client.CreateNewStudy(ctx, &pb.CreateNewStudyRequest{Directions: []pb.StudyDirection{pb.StudyDirection_MINIMIZE}, StudyName: "theirs"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := client.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: made.StudyId, TemplateTrialIsNone: true}); err != nil {
			t.Fatal(err)
		}
	}
	var page wire.StudyPage
	s.get("/api/v1/studies", &page)
	if page.Total != 1 || page.Items[0].Name != "theirs" || page.Items[0].Journal != "tuning/optuna.atj" || page.Items[0].Trials != 3 {
		t.Errorf("%+v", page)
	}
	// What comes by HTTP is seen by Optuna.
	s.post("/api/v1/studies/"+page.Items[0].ID+"/attrs", map[string]any{"key": "k", "value": 1}, nil)
	attrs, err := client.GetStudyUserAttributes(ctx, &pb.GetStudyUserAttributesRequest{StudyId: made.StudyId})
	if err != nil || attrs.UserAttributes["k"] != "1" {
		t.Errorf("%v %v", attrs, err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
