package optuna

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

const floatDist = `{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 1.0, "log": false}}`

// serve runs a server on a storage and returns a way to make clients.
func serve(tb testing.TB, store study.Storage) (dial func() pb.StorageServiceClient) {
	tb.Helper()
	_, dial = serveAt(tb, store)
	return dial
}

// serveAt is serve, and tells the address.
func serveAt(tb testing.TB, store study.Storage) (addr string, dial func() pb.StorageServiceClient) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- NewServer(store, ServerOptions{}).Serve(ctx, l) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	return l.Addr().String(), func() pb.StorageServiceClient {
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { conn.Close() })
		return pb.NewStorageServiceClient(conn)
	}
}

func newJournal(tb testing.TB) *study.Journal {
	tb.Helper()
	j, err := study.CreateJournal(context.Background(), filepath.Join(tb.TempDir(), "s.atj"), journal.WriterOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { j.Close() })
	return j
}

// oneTrial is what a client does for a trial with 5 parameters and 5 reports.
func oneTrial(ctx context.Context, c pb.StorageServiceClient, id int64) error {
	r, err := c.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: id, TemplateTrialIsNone: true})
	if err != nil {
		return err
	}
	for i := range 5 {
		if _, err := c.SetTrialParameter(ctx, &pb.SetTrialParameterRequest{
			TrialId: r.TrialId, ParamName: fmt.Sprint("x", i), ParamValueInternal: 0.5, Distribution: floatDist,
		}); err != nil {
			return err
		}
	}
	for i := range int64(5) {
		if _, err := c.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: r.TrialId, Step: i, IntermediateValue: 1}); err != nil {
			return err
		}
	}
	_, err = c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: r.TrialId, State: pb.TrialState_COMPLETE, Values: []float64{1}})
	return err
}

// BenchmarkTrials runs trials through a server on a journal.
func BenchmarkTrials(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			j := newJournal(b)
			dial := serve(b, j)
			ctx := context.Background()
			r, err := dial().CreateNewStudy(ctx, &pb.CreateNewStudyRequest{Directions: []pb.StudyDirection{0}, StudyName: "a"})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range clients {
				wg.Go(func() {
					c := dial()
					for k := i; k < b.N; k += clients {
						if err := oneTrial(ctx, c, r.StudyId); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			info, err := journal.Inspect(j.Writer().Path(), journal.ReaderOptions{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N*12)/float64(info.Extents), "calls/extent")
		})
	}
}

// BenchmarkList answers one call for all of 30,000 trials.
func BenchmarkList(b *testing.B) {
	store := study.NewMemory(study.MemoryOptions{})
	ctx := context.Background()
	if err := store.Update(ctx, func(tx *study.Tx) error {
		c := change{target: tx}
		if _, err := c.createStudy("a", []study.Direction{study.Minimize}); err != nil {
			return err
		}
		for range 30_000 {
			if _, err := c.createFrom(0, benchTemplate(b)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	s := &service{store: store}
	for b.Loop() {
		reply, err := s.GetTrials(ctx, &pb.GetTrialsRequest{TrialIdGreaterThan: -1})
		if err != nil {
			b.Fatal(err)
		}
		raw, err := proto.Marshal(reply)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(raw)))
	}
}

func benchTemplate(b *testing.B) *template {
	d, err := parseDist(floatDist)
	if err != nil {
		b.Fatal(err)
	}
	tpl := &template{state: study.Complete, values: []float64{1}, start: moment{1717781247682770, true}, complete: moment{1717781248682770, true}}
	for i := range 5 {
		tpl.params = append(tpl.params, param{fmt.Sprint("x", i), 0.5, d})
		tpl.curve = append(tpl.curve, point{int64(i), 1})
	}
	return tpl
}
