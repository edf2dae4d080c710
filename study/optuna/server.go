package optuna

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

const (
	// DefaultMaxRequestBytes is the largest message that a server takes.
	DefaultMaxRequestBytes = 64 << 20
	// DefaultGrace is how long calls may go on after a server was told to end.
	DefaultGrace = 5 * time.Second

	window        = 1 << 20
	streamWorkers = 32
)

// ServerOptions configure [NewServer]. The zero value is ready for use.
type ServerOptions struct {
	// MaxRequestBytes caps a message; 0 is [DefaultMaxRequestBytes].
	MaxRequestBytes int
	// Grace is how long calls may go on once Serve is to end; 0 is
	// [DefaultGrace].
	Grace time.Duration
}

// Server is the storage service of Optuna on a storage of studies. Any number of
// clients may call it, and any number of servers may be on one journal: what a
// call has changed is durable, and seen by all of them, once it is answered.
type Server struct {
	grpc  *grpc.Server
	grace time.Duration
}

// service is what a [Server] answers with.
type service struct {
	pb.UnimplementedStorageServiceServer
	store study.Storage
	dists distIndex
}

var _ pb.StorageServiceServer = (*service)(nil)

// NewServer returns a server on a storage, which stays the caller's to close
// after Serve has returned.
func NewServer(store study.Storage, o ServerOptions) *Server {
	if o.MaxRequestBytes == 0 {
		o.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	s := grpc.NewServer(grpc.MaxRecvMsgSize(o.MaxRequestBytes), grpc.UnaryInterceptor(answered),
		// Windows of fixed size spare every call the pings that measure them.
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		// Goroutines that stay have grown their stacks.
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ForceServerCodecV2(newCodec()))
	pb.RegisterStorageServiceServer(s, &service{store: store})
	return &Server{s, o.Grace}
}

// answered gives every error the code that Optuna's own server gives it.
func answered(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	resp, err := handle(ctx, req)
	return resp, answer(err)
}

// Serve answers calls until ctx ends; those that are under way then have the
// grace to come to their end. It closes the listener and returns nil, or what
// went wrong with the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- s.grpc.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	late := time.AfterFunc(s.grace, s.grpc.Stop)
	defer late.Stop()
	s.grpc.GracefulStop()
	if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// current is the state with everything that any server has published.
func (s *service) current(ctx context.Context) (*study.Snapshot, error) {
	if err := s.store.Refresh(ctx); err != nil {
		return nil, err
	}
	return s.store.Snapshot(), nil
}

// update publishes what do changes, all together or nothing of it.
func (s *service) update(ctx context.Context, do func(c change) error) error {
	return s.updateKnowing(ctx, s.dists.get, do)
}

func (s *service) updateKnowing(ctx context.Context, known knownDists, do func(c change) error) error {
	return s.store.Update(ctx, func(tx *study.Tx) error { return do(change{target: tx, known: known}) })
}

// distIndex remembers the distribution of a study's parameter, so that setting
// one does not look through all trials.
type distIndex struct{ m sync.Map }

type distKey struct {
	study study.StudyID
	name  string
}

func (x *distIndex) get(id study.StudyID, name string) (study.Distribution, bool) {
	d, ok := x.m.Load(distKey{id, name})
	if !ok {
		return nil, false
	}
	return d.(study.Distribution), true
}

// learn remembers what a settled trial has.
func (x *distIndex) learn(snap *study.Snapshot, trial int64, name string) {
	t, err := openTrial(snap, trial)
	if err != nil {
		return
	}
	if p, ok := t.Param(name); ok {
		x.m.LoadOrStore(distKey{t.Study, name}, p.Dist)
	}
}
