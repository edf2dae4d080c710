package studycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/session"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
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

func (a *app) sessionCmd() *cobra.Command {
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
again, as are those of others that went silent.

A SIGTERM, which a cluster sends to every process of a job, is left to the program
that started this one. A second one ends it at once.`,
		Example: `  echo '{"do":"open"}' | foldlog study session search.atj`,
		Args:    cmdline.Operands("PATH"),
	}
	c.Flags().DurationVar(&o.lease, "lease", study.DefaultGrace, "the `DURATION` that trials may be silent for")
	c.Flags().Uint64Var(&o.retries, "retries", 0, "try trials that failed again, `N` times at most")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.lease < 100*time.Millisecond {
			return cli.Usagef("--lease %v: must be 100ms at least", o.lease)
		}
		s := &conversation{app: a, opts: o, path: args[0], running: map[uint64]*runningTrial{}}
		ctx, stop := session.OutliveTermination(c.Context())
		defer stop()
		return cli.Failed("study session", args[0], s.serve(ctx))
	}
	return c
}

// conversation is a session about one study.
type conversation struct {
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
	unsure  *study.MutateReport // the latest report, if it is not known whether it was written
	written int                 // how many of params are in the journal
	asker   *sampler.Asker
}

// serve answers requests until the input ends or ctx does.
func (s *conversation) serve(ctx context.Context) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.news = make(chan struct{}, 1)
	var keeper sync.WaitGroup
	keeper.Go(func() { s.keep(ctx) })
	defer func() {
		stop()
		keeper.Wait()
		err = errors.Join(err, s.end())
	}()
	return session.Serve(ctx, s.In(), maxRequest, func(ctx context.Context, line []byte) error {
		return cli.WriteJSONLine(s.Out(), s.answer(ctx, line))
	})
}

func (s *conversation) answer(ctx context.Context, line []byte) session.Answer {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return session.Answer{ID: r.ID, Error: describe(session.WrongRequest(line, maxRequest, err))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	result, err := s.do(ctx, &r)
	if err != nil {
		return session.Answer{ID: r.ID, Error: describe(err)}
	}
	return session.Answer{ID: r.ID, OK: result}
}

func describe(err error) *session.Problem { return session.Describe(err, problems, "journal") }

// problems are the errors that clients may act on.
var problems = []session.Kind{
	{Name: "fenced", Match: cli.Is(study.ErrFenced)},
	{Name: "budget", Match: cli.Is(study.ErrBudget)},
	{Name: "exists", Match: cli.Is(study.ErrExists)},
	{Name: "not_found", Match: cli.Is(study.ErrNotFound)},
	{Name: "not_found", Match: cli.Is(os.ErrNotExist)},
	{Name: "usage", Match: cli.As[*cli.UsageError]},
	{Name: "usage", Match: cli.Is(study.ErrInvalid)},
	{Name: "usage", Match: cli.Is(study.ErrReserved)},
	{Name: "usage", Match: cli.Is(study.ErrTooLarge)},
	{Name: "conflict", Match: cli.Is(study.ErrConflict)},
}

// keep writes what waits, shows that the trials live, and fails those of others that
// do not.
func (s *conversation) keep(ctx context.Context) {
	pulse := time.NewTicker(min(s.opts.lease/4, 15*time.Second))
	defer pulse.Stop()
	var sweeper *study.Sweeper
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.news:
			time.Sleep(paramDelay)
			s.each(ctx, (*conversation).writeParams)
		case <-pulse.C:
			// Who could not write, or did not look, cannot tell the silence of others
			// from its own.
			if renewed := s.each(ctx, (*conversation).renew); !renewed || time.Since(looked) > s.opts.lease/2 {
				sweeper = study.NewSweeper(study.SweeperOptions{Grace: s.opts.lease, Retry: s.policy()})
			}
			looked = time.Now()
			s.sweep(ctx, sweeper)
		}
	}
}

// each does something to every running trial, and tells whether all went well. What
// goes wrong is said, and found again by the request that needs it.
func (s *conversation) each(ctx context.Context, do func(*conversation, context.Context, *runningTrial) error) bool {
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

func (s *conversation) writeParams(ctx context.Context, t *runningTrial) error {
	if t.written == len(t.params) {
		return nil
	}
	return s.change(ctx, t, func(*study.Tx) error { return nil })
}

func (s *conversation) renew(ctx context.Context, t *runningTrial) error {
	return s.change(ctx, t, func(tx *study.Tx) error { return tx.LifecycleRenew(t.fence, tx.AtMillis()) })
}

// missing are the parameters that are not in the journal, where an earlier try may have
// written them all the same.
func (t *runningTrial) missing(tx *study.Tx) ([]study.Param, error) {
	now, err := tx.Snapshot().Trial(t.fence.Trial)
	if err != nil {
		return nil, err
	}
	var rest []study.Param
	for _, p := range t.params[t.written:] {
		if _, ok := now.Param(p.Name); !ok {
			rest = append(rest, p)
		}
	}
	return rest, nil
}

// change writes the parameters that wait and something else about a trial in one
// extent.
func (s *conversation) change(ctx context.Context, t *runningTrial, fn func(tx *study.Tx) error) error {
	err := s.st.Update(ctx, func(tx *study.Tx) error {
		rest, err := t.missing(tx)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
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

// finish ends a trial. If an earlier try with an unknown outcome had already ended it so,
// that counts as done.
func (s *conversation) finish(ctx context.Context, t *runningTrial, o study.Outcome) error {
	var again []study.TrialRef
	err := s.change(ctx, t, func(tx *study.Tx) (err error) {
		again, err = asktell.Finish(tx, t.fence, o, s.policy())
		return err
	})
	if errors.Is(err, study.ErrFenced) {
		if now, findErr := s.st.Snapshot().Trial(t.fence.Trial); findErr == nil && asktell.FinishedBefore(now, t.fence, o) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	return s.toldRepeats(s.st.Snapshot(), again)
}

func (s *conversation) sweep(ctx context.Context, sweeper *study.Sweeper) {
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
func (s *conversation) deliverPending(ctx context.Context) error {
	if s.st.Snapshot().NumPending() == 0 {
		return nil
	}
	_, err := s.deliverOutbox(ctx, s.st)
	return err
}

func (s *conversation) policy() *study.RetryPolicy {
	if s.opts.retries == 0 {
		return nil
	}
	return &study.RetryPolicy{MaxRetries: s.opts.retries}
}

// endPatience is how long the end of a session may take.
const endPatience = 10 * time.Second

// end fails the trials that were not told, and closes the journal.
func (s *conversation) end() error {
	if s.st == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), endPatience)
	defer stop()
	var err error
	for number, t := range s.running {
		outcome := study.FailedWith("the session ended before the result was told")
		e := s.finish(ctx, t, outcome)
		if e != nil && !errors.Is(e, study.ErrFenced) {
			err = errors.Join(err, fmt.Errorf("fail trial %d: %w", number, e))
		}
	}
	return errors.Join(err, s.deliverPending(ctx), s.st.Close())
}
