package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/sampler"
)

const (
	// maxRequest bounds a line of a session.
	maxRequest = 16 << 20
	// paramDelay is how long parameters that were suggested may wait for others,
	// so that they are written together.
	paramDelay = 20 * time.Millisecond
)

// sessionOptions are the flags of study session.
type sessionOptions struct {
	lease   time.Duration
	retries uint64
}

func (a *app) studySessionCmd() *cobra.Command {
	var o sessionOptions
	c := &cobra.Command{
		Use:   "session PATH [--lease DURATION] [--retries N]",
		Short: "Ask and tell over standard input and output, for client libraries",
		Long: `Ask and tell over standard input and output, for client libraries: a JSON object
on each line is a request, and each is answered by one line. docs/guide/python.md
lists them. The first request creates or opens a study.

The trials that were asked for are managed, and this process shows that they are
alive, until they are told. When the input ends before that, or the program that
started this process does, they have failed. With --retries they are tried
again, as are those of others that went silent.`,
		Example: `  echo '{"do":"open"}' | foldlog study session search.atj`,
		Args:    operands("PATH"),
	}
	c.Flags().DurationVar(&o.lease, "lease", study.DefaultGrace, "the `DURATION` that trials may be silent for")
	c.Flags().Uint64Var(&o.retries, "retries", 0, "try trials that failed again, `N` times at most")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.lease < 100*time.Millisecond {
			return cli.Usagef("--lease %v: must be 100ms at least", o.lease)
		}
		s := &session{app: a, opts: o, path: args[0], running: map[uint64]*runningTrial{}}
		return cli.Failed("study session", args[0], s.serve(c.Context(), a.Stdin))
	}
	return c
}

// session is a conversation about one study.
type session struct {
	*app
	opts sessionOptions
	path string

	// mu is held while a request or the keeper works.
	mu      sync.Mutex
	st      study.Storage // nil until a study is opened
	id      study.StudyID
	running map[uint64]*runningTrial // by number
	news    chan struct{}            // parameters wait to be written
}

// runningTrial is a trial that was asked for and not told.
type runningTrial struct {
	fence   study.Fence
	fixed   []study.FixedParam         // given in advance, and not in the study's space
	texts   map[string]json.RawMessage // given in advance as what is no number
	params  []study.Param
	written int // how many of params are in the journal
	asker   *sampler.Asker
}

// serve answers requests until the input ends or ctx does.
func (s *session) serve(ctx context.Context, in io.Reader) (err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.news = make(chan struct{}, 1)
	lines, broken := make(chan []byte), make(chan error, 1)
	go func() { broken <- readRequests(ctx, in, maxRequest, lines) }()
	var keeper sync.WaitGroup
	keeper.Go(func() { s.keep(ctx, stop) })
	defer func() {
		stop(nil)
		keeper.Wait()
		err = errors.Join(err, s.end())
	}()
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errOrphaned) {
				return nil
			}
			return context.Cause(ctx)
		case line, ok := <-lines:
			if !ok {
				return <-broken
			}
			if err := cli.WriteJSONLine(s.Out(), s.answer(ctx, line)); err != nil {
				return err
			}
		}
	}
}

// sessionAnswer is one line of the output of `foldlog study session`.
type sessionAnswer struct {
	ID    json.RawMessage `json:"id"`    // of the request, null if it has none
	OK    any             `json:"ok"`    // the result, null after an error
	Error *sessionError   `json:"error"` // null if the request was done
}

// sessionError says why a request was not done.
type sessionError struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do about it, "" if there is nothing to say
}

func (s *session) answer(ctx context.Context, line []byte) sessionAnswer {
	var r sessionRequest
	err := json.Unmarshal(line, &r)
	if err != nil {
		return sessionAnswer{ID: r.ID, Error: s.describe(wrongRequest(line, maxRequest, err))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.do(ctx, &r)
	if err != nil {
		return sessionAnswer{ID: r.ID, Error: s.describe(err)}
	}
	return sessionAnswer{ID: r.ID, OK: result}
}

// errorKinds tell clients apart what they may act on. The first match wins.
var errorKinds = []struct {
	kind  string
	match func(error) bool
}{
	{"fenced", cli.Is(study.ErrFenced)},
	{"budget", cli.Is(study.ErrBudget)},
	{"exists", cli.Is(study.ErrExists)},
	{"not_found", cli.Is(study.ErrNotFound)},
	{"not_found", cli.Is(os.ErrNotExist)},
	{"usage", cli.As[*cli.UsageError]},
	{"usage", cli.Is(study.ErrInvalid)},
	{"usage", cli.Is(study.ErrReserved)},
	{"usage", cli.Is(study.ErrTooLarge)},
	{"conflict", cli.Is(study.ErrConflict)},
}

func (s *session) describe(err error) *sessionError {
	e := &sessionError{Kind: "journal", Message: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: cli.HintFor(err, hintRules())}
	for _, k := range errorKinds {
		if k.match(err) {
			e.Kind = k.kind
			break
		}
	}
	return e
}

var errOrphaned = errors.New("the program that started the session has ended")

// keep writes what waits, shows that the trials live, fails those of others
// that do not, and stops the session when the program that started it has
// ended.
func (s *session) keep(ctx context.Context, stop context.CancelCauseFunc) {
	parent := os.Getppid()
	pulse := time.NewTicker(min(s.opts.lease/4, 15*time.Second))
	defer pulse.Stop()
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	var sweeper *study.Sweeper
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
			if os.Getppid() != parent {
				stop(errOrphaned)
			}
		case <-s.news:
			time.Sleep(paramDelay)
			s.each(ctx, (*session).writeParams)
		case <-pulse.C:
			// Who could not write, or did not look, cannot tell the silence of others
			// from its own.
			if renewed := s.each(ctx, (*session).renew); !renewed || time.Since(looked) > s.opts.lease/2 {
				sweeper = study.NewSweeper(&study.SweeperOptions{Grace: s.opts.lease, Retry: s.policy()})
			}
			looked = time.Now()
			s.sweep(ctx, sweeper)
		}
	}
}

// each does something to every running trial, and tells whether all went well. What
// goes wrong is said, and found again by the request that needs it.
func (s *session) each(ctx context.Context, do func(*session, context.Context, *runningTrial) error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	well := true
	for number, t := range s.running {
		if err := do(s, ctx, t); err != nil && ctx.Err() == nil {
			well = false
			s.Debugf("trial %d: %v", number, err)
		}
	}
	return well
}

func (s *session) writeParams(ctx context.Context, t *runningTrial) error {
	if t.written == len(t.params) {
		return nil
	}
	return s.change(ctx, t, func(*study.Tx) error { return nil })
}

func (s *session) renew(ctx context.Context, t *runningTrial) error {
	return s.change(ctx, t, func(tx *study.Tx) error { return tx.LifecycleRenew(t.fence, tx.AtMillis()) })
}

// change writes the parameters that wait and something else about a trial in one
// extent.
func (s *session) change(ctx context.Context, t *runningTrial, fn func(tx *study.Tx) error) error {
	err := s.st.Update(ctx, func(tx *study.Tx) error {
		if rest := t.params[t.written:]; len(rest) > 0 {
			if err := tx.LifecycleFenced(t.fence, &study.MutateParams{Params: rest}); err != nil {
				return err
			}
		}
		return fn(tx)
	})
	if err == nil {
		t.written = len(t.params)
	}
	return err
}

func (s *session) sweep(ctx context.Context, sweeper *study.Sweeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.st == nil {
		return
	}
	if _, err := sweeper.Sweep(ctx, s.st); err != nil && ctx.Err() == nil {
		s.Debugf("sweep: %v", err)
	}
	if err := s.deliverPending(ctx); err != nil && ctx.Err() == nil {
		s.Debugf("deliver: %v", err)
	}
}

// deliverPending creates the trials that repeat failed ones.
func (s *session) deliverPending(ctx context.Context) error {
	if s.st.Snapshot().NumPending() == 0 {
		return nil
	}
	_, err := s.deliverOutbox(ctx, s.st)
	return err
}

func (s *session) policy() *study.RetryPolicy {
	if s.opts.retries == 0 {
		return nil
	}
	return &study.RetryPolicy{MaxRetries: s.opts.retries}
}

// endPatience is how long the end of a session may take.
const endPatience = 10 * time.Second

// end fails the trials that were not told, and closes the journal.
func (s *session) end() error {
	if s.st == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), endPatience)
	defer stop()
	var err error
	for number, t := range s.running {
		outcome := study.FailedWith("the session ended before the result was told")
		e := s.change(ctx, t, func(tx *study.Tx) error { return tx.LifecycleTerminal(t.fence, outcome, s.policy()) })
		if e != nil && !errors.Is(e, study.ErrFenced) {
			err = errors.Join(err, fmt.Errorf("fail trial %d: %w", number, e))
		}
	}
	return errors.Join(err, s.deliverPending(ctx), s.st.Close())
}
