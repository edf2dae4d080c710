package logkind

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
)

const (
	// firstPatience is for how long a command that only reads tries a server that has
	// not answered yet.
	firstPatience = 2 * time.Second
	// Endless is for how long one who follows a log waits for a server that is away.
	Endless = time.Duration(math.MaxInt64 / 4)
)

// Server is the server that an operand names and the path there; nil for a path of
// this machine.
func (f Finder) Server(text string) (*remote.Client, string, error) {
	base, at, away, err := remote.Parse(text, f.Var("FOLDLOG_SERVER"))
	if err != nil {
		hint := "http://HOST/PATH is a log at a server, server:PATH one at that of FOLDLOG_SERVER"
		if end := strings.IndexAny(text, "?#"); end > 0 {
			hint = "what follows ? or # is of a page in a browser: leave it out, as in " + text[:end]
		}
		return nil, "", cli.WithHint(&cli.UsageError{Err: err}, hint)
	}
	if !away {
		return nil, "", nil
	}
	waiting := func(err error, patience time.Duration) {
		if patience <= firstPatience {
			return // it is told soon enough
		}
		text := "trying again"
		if patience < time.Hour {
			text += " for " + cli.Duration(patience.Round(time.Second))
		}
		f.Notef("%s: %v; %s", base, err, text)
	}
	return &remote.Client{Base: base, Token: f.Var("FOLDLOG_TOKEN"), Waiting: waiting}, at, nil
}

// ReadingServer is the server that an operand names, for a command that only reads;
// nil for a path of this machine.
func (f Finder) ReadingServer(text string) (*remote.Client, string, error) {
	c, at, err := f.Server(text)
	if c != nil {
		c.FirstPatience = firstPatience
	}
	return c, at, err
}

// StreamAt is where a metrics stream is that an operand names, and its path there.
func (f Finder) StreamAt(ctx context.Context, operand string) (World, string, error) {
	c, at, err := f.ReadingServer(operand)
	if c == nil || err != nil {
		return World{}, operand, err
	}
	return World{Server: c, ctx: ctx}, "/" + at, nil
}
