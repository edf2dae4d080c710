package studycmd

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

const (
	// pushEvery is how often the runs of trials that have ended are sent.
	pushEvery = 5 * time.Second
	// pushPatience is how long they are tried at the end of study run.
	pushPatience = 30 * time.Second
)

// runPusher sends the server of a study the runs of its trials that have ended, as
// `foldlog metrics push` does. The files stay, so that nothing depends on it.
type runPusher struct {
	run    *Running
	client metrics.Client
	sent   map[study.TrialID]string // the stream of each trial that is there
}

// pushRuns sends runs until stop, which sends the rest. It does nothing for a study of
// this machine.
func (run *Running) pushRuns() (stop func()) {
	c, _, err := run.Server(run.Journal)
	if c == nil || err != nil || run.Runs == "" || !run.sendRuns {
		return func() {}
	}
	p := &runPusher{run, metrics.Client{Base: c.Base, Token: c.Token, HTTP: &http.Client{Timeout: metrics.DefaultRequestTimeout}}, map[study.TrialID]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		tick := time.NewTicker(pushEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if _, err := p.pass(ctx); err != nil && ctx.Err() == nil {
					run.Debugf("%v; it is tried again", err)
				}
			}
		}
	})
	return func() {
		cancel()
		working.Wait()
		p.rest()
	}
}

// rest sends what is left, and says what does not get there.
func (p *runPusher) rest() {
	defer p.client.HTTP.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), pushPatience)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		left, err := p.pass(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		if ctx.Err() != nil || !errors.Is(err, metrics.ErrAway) && !errors.Is(err, remote.ErrAway) {
			p.run.Notef("%s not at the server: %v; foldlog metrics push %s --to %s sends what is missing",
				cli.Plural(int64(left), "run"), err, filepath.Join(p.run.Runs, metrics.RunsDir), p.client.Base)
			return
		}
	}
}

// pass sends what has ended and is not there yet, and tells how many were not sent.
func (p *runPusher) pass(ctx context.Context) (left int, err error) {
	if err := p.run.r.Refresh(ctx); err != nil {
		return 0, err
	}
	for t := range p.run.r.Snapshot().Trials(p.run.Study, study.TrialFilter{}) {
		slug, stream := runner.TrialRun(t)
		if stream == "" || p.sent[t.ID] == stream || !t.State.Terminal() || metrics.CheckStreamID(stream) != nil {
			continue
		}
		path := metrics.StreamPath(p.run.Runs, slug, stream)
		if _, statErr := os.Stat(path); statErr != nil {
			continue // of another machine
		}
		if _, pushErr := p.client.Push(ctx, path); pushErr != nil {
			left++
			err = fmt.Errorf("push run %s: %w", slug, pushErr)
			continue
		}
		p.sent[t.ID] = stream
	}
	return left, err
}
