package cli

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// Unit is what a progress bar counts.
type Unit int

// The units of a progress bar.
const (
	Items Unit = iota
	Bytes
)

// Progress is one bar on standard error. It shows only when standard error is
// a terminal and the command is not quiet; otherwise its methods do nothing.
// Its methods may be called from several goroutines.
type Progress struct {
	env    *Env
	mu     sync.Mutex
	pool   *mpb.Progress
	bar    *mpb.Bar
	suffix atomic.Pointer[string]
}

// NewProgress starts a bar whose total Set gives. The caller must call Close
// before it prints anything else.
func (e *Env) NewProgress(label string, unit Unit) *Progress {
	if e.Quiet || !e.IsTerminal(e.Stderr) {
		return &Progress{env: e}
	}
	p := &Progress{env: e}
	counters := decor.CountersNoUnit("%d / %d", decor.WCSyncSpace)
	if unit == Bytes {
		counters = decor.CountersKibiByte("% .1f / % .1f", decor.WCSyncSpace)
	}
	pool := mpb.New(mpb.WithOutput(e.Err()), mpb.WithWidth(48), mpb.WithAutoRefresh())
	// A total of 0 keeps the bar open: only the caller knows when the work
	// has ended, whatever the numbers say.
	bar := pool.New(0, mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name(Safe(label))),
		mpb.AppendDecorators(counters, decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace),
			decor.Any(func(decor.Statistics) string { return p.text() })))
	p.pool, p.bar = pool, bar
	return p
}

// text is what stands behind the bar.
func (p *Progress) text() string {
	if s := p.suffix.Load(); s != nil {
		return "  " + *s
	}
	return ""
}

// Say puts a few words behind the bar.
func (p *Progress) Say(words string) {
	words = Safe(words)
	p.suffix.Store(&words)
}

// Notef prints one line for people above the bar, or where there is none as
// [Env.Notef] does.
func (p *Progress) Notef(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		p.env.Notef(format, args...)
		return
	}
	io.WriteString(p.pool, Safe(fmt.Sprintf(format, args...))+"\n")
}

// Set says that done of total are done. Either may go backwards.
func (p *Progress) Set(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		return
	}
	p.bar.SetTotal(total, false)
	p.bar.SetCurrent(done)
}

// Close takes the bar off the screen. It may be called more than once.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.pool.Wait()
	p.bar, p.pool = nil, nil
}
