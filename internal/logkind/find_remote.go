package logkind

import (
	"context"

	"github.com/foldlog/foldlog/remote"
)

// kindAt is the kind of a log at a server, nil if it is none of those known here. A
// server knows datagen logs by where they lie, and takes a copy of one for the dataset
// that it is.
func (w World) kindAt(ctx context.Context, l remote.Log) Kind {
	if datagens := (datagenKind{w}); l.Kind == LanceDataset && datagens.holds(ctx, "/"+l.Path) {
		return datagens
	}
	for _, k := range kindsAt(w) {
		if k.Name() == l.Kind {
			return k
		}
	}
	return nil
}

// summarize tells what ls shows. Of streams, which may be many, the server has said
// all of it.
func (w World) summarize(ctx context.Context, l remote.Log, opts SummarizeOptions) Summary {
	s := Summary{State: StateGood, Bytes: l.Bytes, ModifiedMS: l.ModifiedMS}
	kind := w.kindAt(ctx, l)
	switch {
	case kind == nil:
		s.State, s.Detail = StateUnreadable, "a kind of log that a newer version of foldlog reads"
	case l.Kind == MetricsStream:
		s.Detail = streamWords(l)
	default:
		var err error
		if s, err = kind.Summarize(ctx, "/"+l.Path, opts); err != nil {
			s.State, s.Detail = StateUnreadable, err.Error()
		}
	}
	if s.Path, s.Kind = w.NameOf(l.Path), l.Kind; kind != nil {
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
