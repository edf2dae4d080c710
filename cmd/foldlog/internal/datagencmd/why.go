package datagencmd

import (
	"context"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
)

// latestFailures are what the latest failures of a log say, which lists of items and
// counts of failures have no more of than the type.
type latestFailures struct {
	items map[string]said
	kinds map[failureKind]said
}

// failureKind is what failures are counted by.
type failureKind struct{ step, failure string }

// said is a failure in one line; at orders those of one item, or of one kind.
type said struct {
	text string
	at   int64
}

// maxSaid bounds of how many items it is kept, and maxWhy how long it is, in runes.
const (
	maxSaid = 100_000
	maxWhy  = 80
)

// failuresSay passes over a log.
func failuresSay(ctx context.Context, v *datagen.View) (*latestFailures, error) {
	l := &latestFailures{items: map[string]said{}, kinds: map[failureKind]said{}}
	for f, err := range v.Failures(ctx, "") {
		if err != nil {
			return nil, err
		}
		text := cli.Shorten(datagenview.FailureText(f.Failure), maxWhy)
		kind := failureKind{failure: f.Type}
		if f.From.Step != nil {
			kind.step = f.From.Step.Name
		}
		keepLatest(l.items, f.Item, said{text, f.From.Seq})
		keepLatest(l.kinds, kind, said{text, f.From.Time.UnixMicro()})
	}
	return l, nil
}

func keepLatest[K comparable](m map[K]said, key K, s said) {
	if was, ok := m[key]; ok && was.at < s.at || !ok && len(m) < maxSaid {
		m[key] = s
	}
}

// item is why an item has failed, at least the type of it.
func (l *latestFailures) item(id, failure string) string {
	if s, ok := l.items[id]; ok {
		return s.text
	}
	return failure
}
