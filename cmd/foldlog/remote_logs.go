package main

import (
	"cmp"
	"context"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
)

// located is a log that was found.
type located struct {
	kind logKind
	log  string // as the kind knows it
	name string // as people give it
	// server is where it is, nil for this machine and what it reaches.
	server *remote.Client
}

const (
	// firstPatience is for how long a command that only reads tries a server that has
	// not answered yet.
	firstPatience = 2 * time.Second
	// endless is for how long one who follows a log waits for a server that is away.
	endless = time.Duration(math.MaxInt64 / 4)
)

// readingServer is the server that an operand names, for a command that only reads;
// nil for a path of this machine.
func (a *app) readingServer(text string) (*remote.Client, string, error) {
	c, at, err := a.atServer(text)
	if c != nil {
		c.FirstPatience = firstPatience
	}
	return c, at, err
}

// kindAt is the kind of a log at a server, nil if it is none of those known here. A
// server knows datagen logs by where they lie, and takes a copy of one for the dataset
// that it is.
func (w world) kindAt(ctx context.Context, l remote.Log) logKind {
	if datagens := (datagenKind{w}); l.Kind == nameLance && datagens.holds(ctx, "/"+l.Path) {
		return datagens
	}
	for _, k := range kindsAt(w) {
		if k.Name() == l.Kind {
			return k
		}
	}
	return nil
}

// lookUpAt asks a server what is at a path.
func (a *app) lookUpAt(ctx context.Context, c *remote.Client, text, at string) (located, error) {
	logs, _, err := c.Logs(ctx, at)
	if err != nil {
		return located{}, err
	}
	w := world{c, ctx}
	if itself(logs, at) {
		if kind := w.kindAt(ctx, logs[0]); kind != nil {
			a.Debugf("%s is a %s", logs[0].Path, kind.Name())
			return located{kind, "/" + logs[0].Path, w.name(logs[0].Path), c}, nil
		}
	}
	if len(logs) > 0 || at == "" {
		return located{}, &unknownKindError{text, true, a.kinds}
	}
	return located{}, noLogAt(c)
}

// itself tells whether what a server has found at a path is one log that the path, or
// its page, is of, and not what a directory holds.
func itself(logs []remote.Log, at string) bool {
	return len(logs) == 1 && at != "" && !strings.HasPrefix(logs[0].Path, at+"/")
}

func noLogAt(c *remote.Client) error {
	return cli.WithHint(fs.ErrNotExist, "the server has no log there; foldlog ls "+c.Base+" lists those that it has")
}

// listAt is list for a server, or a directory under its root.
func (a *app) listAt(ctx context.Context, c *remote.Client, at string, emit func(summary) error) error {
	logs, waiting, err := c.Logs(ctx, at)
	if err != nil {
		return err
	}
	if len(logs) == 0 && at != "" {
		return noLogAt(c)
	}
	if waiting > 0 {
		a.Notef("the server is still reading %s", plural(waiting, "stream"))
	}
	slices.SortFunc(logs, func(a, b remote.Log) int { return cli.CompareNames(a.Path, b.Path) })
	w := world{c, ctx}
	unreadable := 0
	for s := range inOrder(logs, func(l remote.Log) summary { return w.summarize(ctx, l) }) {
		if s.State == stateUnreadable {
			unreadable++
		}
		if err := cmp.Or(ctx.Err(), emit(s)); err != nil {
			return err
		}
	}
	return someUnreadable(unreadable)
}

// summarize tells what ls shows. Of streams, which may be many, the server has said
// all of it.
func (w world) summarize(ctx context.Context, l remote.Log) summary {
	s := summary{State: stateGood, Bytes: l.Bytes, ModifiedMS: l.ModifiedMS}
	kind := w.kindAt(ctx, l)
	switch {
	case kind == nil:
		s.State, s.Detail = stateUnreadable, "a kind of log that a newer version of foldlog reads"
	case l.Kind == nameStream:
		s.Detail = streamWords(l)
	default:
		var err error
		if s, err = kind.Summarize(ctx, "/"+l.Path); err != nil {
			s.State, s.Detail = stateUnreadable, err.Error()
		}
	}
	if s.Path, s.Kind = w.name(l.Path), l.Kind; kind != nil {
		s.Kind = kind.Name()
	}
	return s
}

// summariesAhead is how many logs of a server are looked at at once.
const summariesAhead = 16

// inOrder yields what do makes of each, in order, doing several at once.
func inOrder[T, R any](list []T, do func(T) R) func(yield func(R) bool) {
	return func(yield func(R) bool) {
		results := make([]chan R, len(list))
		start := func(i int) {
			if i >= len(list) {
				return
			}
			results[i] = make(chan R, 1)
			go func() { results[i] <- do(list[i]) }()
		}
		for i := range min(summariesAhead, len(list)) {
			start(i)
		}
		for i := range list {
			start(i + summariesAhead)
			if !yield(<-results[i]) {
				return
			}
		}
	}
}
