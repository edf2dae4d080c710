// Package server serves the logs under one root over HTTP: it finds them, follows
// them live, and takes in what remote workers send.
//
// What is acknowledged is in the logs, synced; the server itself keeps nothing but
// projections that can be deleted at any time (internal/projection), and what people
// say about runs, which is a small log of its own beside the streams (labels.log).
// docs/http-api.md has the protocol, docs/guide/server.md how to run it.
//
// Each kind of log has its files here: runs*.go, studies*.go, datagen*.go; live*.go are the event
// streams, auth*.go and guard.go who may do what, limits.go what clients can make
// the server hold. The bodies of requests and answers are in internal/wire.
package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/projection"
)

// CacheDir is the directory of a root that a server keeps its projections in.
const CacheDir = ".foldlog"

// Options says what is served and to whom.
type Options struct {
	// Root is the directory whose logs are served.
	Root string
	// Cache is where projections are kept: CacheDir under the root if empty. A
	// root that is read-only needs another one.
	Cache string
	// Tokens are asked for if not nil. Without them everybody who can reach the
	// server may do anything.
	Tokens *Tokens
	// Hosts are names that the server goes by, besides its addresses.
	Hosts []string
	// Secure tells that clients reach the server by TLS.
	Secure bool
	// UI is the built dashboard, nil for none.
	UI fs.FS
	// Limits bound what clients can make the server hold.
	Limits Limits
	// Log hears of what goes wrong; nil is nobody. No token is ever in it.
	Log *slog.Logger
	// Program names what the server writes journals as.
	Program string
}

// Server serves one root. New makes one, Close ends it.
type Server struct {
	root    *os.Root
	base    string // the root as a path, links resolved
	cache   string
	tokens  *Tokens
	hosts   []string
	secure  bool
	ui      fs.FS
	limits  Limits
	log     *slog.Logger
	program string

	stats    stats
	bodies   budget
	store    *projection.Store
	sink     *sink
	index    *index
	find     *discovery
	live     *broker
	slow     *background
	labels   *labels
	studies  *studies
	failed   failedTrials
	datagens *datagens
	tails    opTails
	files    objstore.Store // the root as a store
	lock     fsx.File
	handler  http.Handler
	mux      *http.ServeMux

	stop     context.CancelFunc
	stopped  context.Context // ends when the server begins to shut down
	tasks    sync.WaitGroup
	closed   sync.Once
	closeErr error
}

// ErrInUse means that another server has the cache of a root.
var ErrInUse = errors.New("another server is using it")

// New opens a root: it loads the projection and looks for logs, and goes on
// reading what is new in the background.
func New(opts Options) (*Server, error) {
	s := &Server{tokens: opts.Tokens, hosts: hostNames(opts.Hosts), secure: opts.Secure, ui: opts.UI,
		limits: opts.Limits.withDefaults(), log: opts.Log, program: opts.Program}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.bodies.left = s.limits.Bodies
	s.stopped, s.stop = context.WithCancel(context.Background())
	if err := s.openRoot(opts); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) openRoot(opts Options) error {
	base, err := filepath.Abs(opts.Root)
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return fmt.Errorf("open root: %w", err)
	}
	s.base = base
	if s.root, err = os.OpenRoot(base); err != nil {
		return fmt.Errorf("open root: %w", err)
	}
	if s.cache = opts.Cache; s.cache == "" {
		s.cache = filepath.Join(base, CacheDir)
	}
	if err := os.MkdirAll(s.cache, 0o755); err != nil {
		return fmt.Errorf("open cache: %w", err)
	}
	return s.takeLock()
}

// takeLock keeps two servers from one projection. Servers of one root with caches of their
// own lock the streams that they append to.
func (s *Server) takeLock() error {
	f, err := fsx.OS.OpenFile(filepath.Join(s.cache, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("open cache: %w", err)
	}
	got, err := f.TryLock()
	switch {
	case err != nil && !fsx.IsUnsupported(err):
		return fmt.Errorf("open cache: %w", errors.Join(err, f.Close()))
	case err == nil && !got:
		return fmt.Errorf("open cache %s: %w", s.cache, errors.Join(ErrInUse, f.Close()))
	}
	s.lock = f
	return nil
}

func (s *Server) start() (err error) {
	s.live = newBroker(s.limits.Subscribers, &s.stats)
	s.slow = newBackground()
	s.index = newIndex(s)
	s.store, err = projection.Open(projection.Options{Dir: s.cache, Open: s.openLog, Slug: slugOf, Changed: s.runChanged, Log: s.log})
	if err != nil {
		return err
	}
	s.sink = newSink(s.root, &s.stats, s.index.add)
	s.labels = newLabels(s.root)
	s.studies = newStudies(s)
	s.datagens = newDatagens(s)
	if err := s.openFiles(); err != nil {
		return err
	}
	s.find = newDiscovery(s)
	s.find.scan()
	s.mux = http.NewServeMux()
	s.routes()
	s.handler = s.counted(s.recovered(s.guarded(s.identified(s.bounded(compressed(routed(s.mux)))))))
	s.task(s.index.run)
	s.task(s.find.run)
	s.task(s.maintain)
	s.task(s.studies.run)
	s.task(s.datagens.run)
	return nil
}

func (s *Server) task(run func(context.Context)) {
	s.tasks.Go(func() { run(s.stopped) })
}

// maintain keeps the projection in order.
func (s *Server) maintain(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	var mem memory
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.store.Maintain(); err != nil {
			s.log.Warn("projection not written", "err", err)
		}
		mem.tick(s.stats.indexed.Load() + s.stats.answered.Load() + s.datagens.made.Load())
	}
}

// openLog opens a log for reading by its path under the root. No link leads out.
func (s *Server) openLog(path string) (*os.File, error) {
	return fsx.OpenIn(s.root, filepath.FromSlash(path), os.O_RDONLY, 0)
}

// inRoot is the path that a name under a root has for fsx.InRoot.
func inRoot(root *os.Root, name string) string {
	return filepath.Join(root.Name(), filepath.FromSlash(name))
}

// withoutRoot keeps where the root is out of answers.
func (s *Server) withoutRoot(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, s.base+string(filepath.Separator), ""), s.base, ".")
}

// Handler answers every request.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers what comes by a listener until ctx ends. Then it takes no more
// requests, answers those that it has, and returns; Close is still to be called.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.limits.Header,
		IdleTimeout:       s.limits.Idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	most := s.limits.connections(openFiles())
	if most < s.limits.Connections {
		s.log.Warn("the system gives the process few files, and so it takes fewer connections", "connections", most)
	}
	limited := newLimitListener(l, most, func(d int64) { s.stats.connections.Add(d) })
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(limited) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.live.close()
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.Write)
	defer cancel()
	err := h.Shutdown(patience)
	if errors.Is(err, context.DeadlineExceeded) {
		err = h.Close()
	}
	if got := <-ended; !errors.Is(got, http.ErrServerClosed) {
		err = errors.Join(err, got)
	}
	return err
}

// Close stores the projection and lets go of everything. Requests that are still
// being answered must have ended.
func (s *Server) Close() error {
	s.closed.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Server) close() error {
	s.stop()
	if s.live != nil {
		s.live.close()
	}
	s.tasks.Wait()
	var errs []error
	if s.find != nil {
		errs = append(errs, s.find.close())
	}
	if s.studies != nil {
		errs = append(errs, s.studies.close())
	}
	s.tails.close()
	if s.datagens != nil {
		s.datagens.close()
	}
	if s.sink != nil {
		s.sink.close()
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Warn("projection not written", "err", err) // it is made again
		}
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	return errors.Join(errs...)
}

// recovered answers a handler's panic and goes on.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				var gone net.Error
				err, failed := p.(error)
				if p == http.ErrAbortHandler || failed && (r.Context().Err() != nil || errors.As(err, &gone)) {
					// The client went, or was too slow, in the middle of its answer.
					panic(http.ErrAbortHandler)
				}
				s.log.Error("handler panicked", "route", r.Pattern, "panic", fmt.Sprint(p))
				refuse(w, http.StatusInternalServerError, "the server's log has the reason")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

type hostKey struct{}

// page is the address at which people see a thing.
func (s *Server) page(ctx context.Context, at, name string) string {
	scheme := "http"
	if s.secure {
		scheme = "https"
	}
	host, _ := ctx.Value(hostKey{}).(string)
	return scheme + "://" + host + at + url.PathEscape(name)
}

func operation(method, path, id, summary, tag string) huma.Operation {
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{tag},
		MaxBodyBytes: maxJSON, BodyReadTimeout: DefaultReadTime, Errors: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}}
}

// getting makes the operations that read what is below a path.
func getting(base, tag string) func(path, id, summary string) huma.Operation {
	return func(path, id, summary string) huma.Operation {
		return operation(http.MethodGet, base+path, id, summary, tag)
	}
}
