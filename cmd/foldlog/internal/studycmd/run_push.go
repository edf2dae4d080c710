package studycmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

const (
	// pushEvery is how often what trials have written is sent.
	pushEvery = time.Second
	// pushPatience is how long what is left is tried at the end of study run.
	pushPatience = 30 * time.Second
)

// runPusher sends the server of a study the runs of its trials while they are written,
// as `foldlog metrics push` does again and again. The files stay, so that nothing
// depends on it.
type runPusher struct {
	run    *Running
	client metrics.Client
	next   uint64              // the first trial that has not been looked at
	open   map[uint64]struct{} // trials whose runs may have more to send, by number
	sent   map[uint64]sentRun
}

// sentRun is what the server has of a trial's run.
type sentRun struct {
	stream string
	size   int64 // of the file when it was sent
}

// pushRuns sends runs until stop, which sends the rest. It does nothing for a study of
// this machine.
func (run *Running) pushRuns() (stop func()) {
	c, _, err := run.Server(run.Journal)
	if c == nil || err != nil || run.Runs == "" || !run.sendRuns {
		return func() {}
	}
	p := &runPusher{
		run: run, client: metrics.Client{Base: c.Base, Token: c.Token, HTTP: &http.Client{Timeout: metrics.DefaultRequestTimeout}},
		open: map[uint64]struct{}{}, sent: map[uint64]sentRun{},
	}
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

// rest sends what is left once nobody writes any more, and says what does not get there.
func (p *runPusher) rest() {
	defer p.client.HTTP.CloseIdleConnections()
	for number := range p.sent {
		p.open[number] = struct{}{}
	}
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

// pass sends what is new, and tells how many runs are not all there.
func (p *runPusher) pass(ctx context.Context) (left int, err error) {
	if err := p.run.r.Refresh(ctx); err != nil {
		return len(p.open), err
	}
	snap := p.run.r.Snapshot()
	for t := range snap.Trials(p.run.Study, study.TrialFilter{From: p.next}) {
		p.open[t.Number], p.next = struct{}{}, t.Number+1
	}
	for _, number := range slices.Sorted(maps.Keys(p.open)) {
		t, findErr := snap.TrialByNumber(p.run.Study, number)
		if findErr != nil { // history was taken back
			delete(p.open, number)
			p.next = min(p.next, number)
			continue
		}
		if pushErr := p.push(ctx, t); pushErr != nil {
			left++
			err = pushErr
		} else if t.State.Terminal() {
			delete(p.open, number)
		}
	}
	return left, err
}

// push sends what the file of a trial's run has more than the last time, if it is here.
func (p *runPusher) push(ctx context.Context, t *study.Trial) error {
	slug, stream := runner.TrialRun(t)
	if stream == "" || metrics.CheckStreamID(stream) != nil {
		return nil
	}
	path := metrics.StreamPath(p.run.Runs, slug, stream)
	info, err := os.Stat(path)
	if err != nil || p.sent[t.Number] == (sentRun{stream, info.Size()}) {
		return nil // of another machine, or all there
	}
	if _, err := p.client.Push(ctx, path); err != nil {
		if errors.Is(err, metrics.ErrMissing) && !t.State.Terminal() {
			return nil // it has only just begun
		}
		return fmt.Errorf("push run %s: %w", slug, err)
	}
	p.sent[t.Number] = sentRun{stream, info.Size()}
	return nil
}
