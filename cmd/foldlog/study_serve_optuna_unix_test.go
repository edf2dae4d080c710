//go:build !windows

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// optunaServer is a process that serves a journal.
type optunaServer struct {
	cmd  *exec.Cmd
	addr string
}

func startOptunaServer(t *testing.T, journal, addr string) *optunaServer {
	t.Helper()
	cmd := process(t, "foldlog", "study", "serve-optuna", journal, "--addr", addr)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	line, err := started(t, cmd).ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("no address: %v; %s", err, stderr.String())
	}
	return &optunaServer{cmd, strings.TrimSpace(line)}
}

func (s *optunaServer) kill(t *testing.T) {
	t.Helper()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

func optunaClient(t *testing.T, addr string) pb.StorageServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return pb.NewStorageServiceClient(conn)
}

func TestServeOptunaEndsWellWhenItIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.atj")
	s := startOptunaServer(t, path, "127.0.0.1:0")
	c := optunaClient(t, s.addr)
	if _, err := c.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "a", Directions: []pb.StudyDirection{0}}); err != nil {
		t.Fatal(err)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, ok := r.Snapshot().StudyByName("a"); !ok {
		t.Error("what was answered is not there")
	}
}

// swarm is clients that work on through the deaths of their server.
type swarm struct {
	*testing.T
	ctx context.Context
	mu  sync.Mutex
	// done are the trials whose end was answered, or found to be there.
	done map[int64]float64
	// unanswered counts creations that may have taken place unheard.
	unanswered int
}

// try repeats a call until it is answered. Heard is false if an earlier attempt
// may have taken place without an answer.
func (s *swarm) try(call func(ctx context.Context) error) (heard bool, err error) {
	heard = true
	for {
		err := call(s.ctx)
		switch status.Code(err) {
		case codes.Unavailable, codes.Unknown, codes.Canceled:
			heard = false
			if s.ctx.Err() != nil {
				return heard, err
			}
			time.Sleep(5 * time.Millisecond)
		default:
			return heard, err
		}
	}
}

func (s *swarm) trial(c pb.StorageServiceClient, in int64, x float64) error {
	var id int64
	_, err := s.try(func(ctx context.Context) error {
		r, err := c.CreateNewTrial(ctx, &pb.CreateNewTrialRequest{StudyId: in, TemplateTrialIsNone: true})
		id = r.GetTrialId()
		if err != nil {
			s.mu.Lock()
			s.unanswered++
			s.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return err
	}
	if _, err := s.try(func(ctx context.Context) error {
		_, err := c.SetTrialIntermediateValue(ctx, &pb.SetTrialIntermediateValueRequest{TrialId: id, Step: 1, IntermediateValue: x})
		return err
	}); err != nil {
		return err
	}
	heard, err := s.try(func(ctx context.Context) error {
		_, err := c.SetTrialStateValues(ctx, &pb.SetTrialStateValuesRequest{TrialId: id, State: pb.TrialState_COMPLETE, Values: []float64{x}})
		return err
	})
	if err != nil && (heard || status.Code(err) != codes.FailedPrecondition) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.done[id]; twice {
		return fmt.Errorf("trial %d was given away twice", id)
	}
	s.done[id] = x
	return nil
}

// TestServeOptunaKilledUnderItsClients kills a server under 16 clients, again and
// again, while a second one is on the same journal. Nothing that was answered may
// be lost or there twice, and the clients go on with the next server.
func TestServeOptunaKilledUnderItsClients(t *testing.T) {
	clients, each, deaths := 16, 12, 3
	if testing.Short() {
		each, deaths = 4, 1
	}
	path := filepath.Join(t.TempDir(), "s.atj")
	server, other := startOptunaServer(t, path, servedAt(t)), startOptunaServer(t, path, "127.0.0.1:0")
	r, err := optunaClient(t, other.addr).CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "a", Directions: []pb.StudyDirection{0}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longEnough)
	defer cancel()
	s := &swarm{T: t, ctx: ctx, done: map[int64]float64{}}
	var wg sync.WaitGroup
	for i := range clients {
		addr := server.addr
		if i%4 == 0 {
			addr = other.addr
		}
		c := optunaClient(t, addr)
		wg.Go(func() {
			for k := range each {
				if err := s.trial(c, r.StudyId, float64(i*each+k)); err != nil {
					t.Errorf("client %d, trial %d: %v", i, k, err)
					return
				}
			}
		})
	}
	for range deaths {
		s.waitFor(len(s.snapshotDone()) + clients/2)
		server.kill(t)
		server = startOptunaServer(t, path, server.addr)
	}
	wg.Wait()
	s.check(path, clients*each)
}

func (s *swarm) snapshotDone() map[int64]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := map[int64]float64{}
	for id, x := range s.done {
		done[id] = x
	}
	return done
}

// waitFor waits until so many trials have ended.
func (s *swarm) waitFor(n int) {
	for len(s.snapshotDone()) < n && s.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
}

// check holds the journal against what the clients were answered.
func (s *swarm) check(path string, want int) {
	s.Helper()
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		s.Fatal(err)
	}
	defer r.Close()
	snap := r.Snapshot()
	if len(s.done) != want {
		s.Errorf("%d trials ended, want %d", len(s.done), want)
	}
	if extra := snap.NumTrials() - want; extra < 0 || extra > s.unanswered {
		s.Errorf("the journal has %d trials for %d that ended, and %d creations went unanswered", snap.NumTrials(), want, s.unanswered)
	}
	complete := 0
	for t := range snap.Trials(0, study.TrialFilter{States: []study.State{study.Complete}}) {
		complete++
		if x, ok := s.done[int64(t.ID)]; !ok || len(t.Values) != 1 || t.Values[0] != x {
			s.Errorf("trial %d has %v, its client was told of %v (%v)", t.ID, t.Values, x, ok)
		}
	}
	if complete != want {
		s.Errorf("%d trials are complete, want %d", complete, want)
	}
}
