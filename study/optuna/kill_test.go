package optuna

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// mortal is a connection whose process dies when it has sent so many bytes: the
// kernel resets it, whatever was under way.
type mortal struct {
	net.Conn
	left *atomic.Int64
	dead func()
}

func (c *mortal) Write(b []byte) (int, error) {
	left := c.left.Add(-int64(len(b))) + int64(len(b))
	if left >= int64(len(b)) {
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:max(left, 0)])
	c.kill()
	return n, net.ErrClosed
}

// kill ends the process whatever it does.
func (c *mortal) kill() {
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
	c.dead()
}

// dieAfter makes a client that dies after so many bytes or so long a time, and a
// context that ends with it.
func dieAfter(t *testing.T, addr string, bytes int64, age time.Duration) (context.Context, pb.StorageServiceClient) {
	t.Helper()
	ctx, dead := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(dead)
	left := new(atomic.Int64)
	left.Store(bytes)
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			m := &mortal{c, left, dead}
			time.AfterFunc(age, m.kill)
			return m, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return ctx, pb.NewStorageServiceClient(conn)
}

// wholeTrial is a call of many operations.
func wholeTrial(in int64) *pb.CreateNewTrialRequest {
	m := &pb.Trial{
		State: pb.TrialState_COMPLETE, Values: []float64{1}, Params: map[string]float64{}, Distributions: map[string]string{},
		IntermediateValues: map[int64]float64{}, DatetimeStart: "2024-06-07 17:27:27.682770", DatetimeComplete: "2024-06-07 17:27:28.000000",
	}
	for i := range 5 {
		name := fmt.Sprint("x", i)
		m.Params[name], m.Distributions[name], m.IntermediateValues[int64(i)] = 0.5, floatDist, 1
	}
	return &pb.CreateNewTrialRequest{StudyId: in, TemplateTrial: m}
}

// TestClientsKilledInMidCall kills clients at every stage of a call: before the
// server has heard all of it, while it is being published, before the answer. A
// call takes place whole or not at all, and others go on.
func TestClientsKilledInMidCall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	addr, dial := serveAt(t, j)
	survivor := dial()
	r, err := survivor.CreateNewStudy(t.Context(), &pb.CreateNewStudyRequest{StudyName: "a", Directions: []pb.StudyDirection{0}})
	if err != nil {
		t.Fatal(err)
	}
	var others sync.WaitGroup
	stop, worked := make(chan struct{}), 0
	others.Go(func() {
		for {
			if err := oneTrial(t.Context(), survivor, r.StudyId); err != nil {
				t.Errorf("a client that lives on: %v", err)
				return
			}
			worked++
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	answered, made := 0, 0
	var mu sync.Mutex
	var victims sync.WaitGroup
	for i := range int64(64) {
		bytes, age := i*40, 5*time.Minute
		if i%2 == 0 {
			bytes, age = 1<<30, time.Duration(i)*200*time.Microsecond
		}
		ctx, c := dieAfter(t, addr, bytes, age)
		victims.Go(func() {
			for range 4 {
				_, err := c.CreateNewTrial(ctx, wholeTrial(r.StudyId))
				mu.Lock()
				made++
				if err == nil {
					answered++
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	victims.Wait()
	close(stop)
	others.Wait()
	if answered == 0 || answered == made || worked == 0 {
		t.Fatalf("%d of %d calls were answered, and %d trials went on beside: nothing is tested", answered, made, worked)
	}
	checkWhole(t, path, worked, answered, made)
}

// checkWhole reads the journal anew.
func checkWhole(t *testing.T, path string, worked, answered, made int) {
	t.Helper()
	reader, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	snap := reader.Snapshot()
	if n := snap.NumTrials() - worked; n < answered || n > made {
		t.Errorf("%d trials are there of %d that were asked for, %d of them answered", n, made, answered)
	}
	for trial := range snap.Trials(0, study.TrialFilter{}) {
		if trial.State != study.Complete || len(trial.Params) != 5 || len(points(trial)) != 5 || len(trial.Values) != 1 {
			t.Errorf("trial %d is %v with %d parameters, %d reports and values %v", trial.ID, trial.State, len(trial.Params), len(points(trial)), trial.Values)
		}
	}
}
