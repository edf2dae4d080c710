package metricsview

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
)

// streamEnds is how much of each end of a stream is read to sum it up.
const streamEnds = 64 << 10

// FirstSlug is the slug of the first open near the beginning, "" if none.
func FirstSlug(f io.ReaderAt) (slug string, err error) {
	err = metrics.ReadStream(io.NewSectionReader(f, 0, metrics.MaxLine+streamEnds), func(it *metrics.Item) {
		if slug == "" && it.Kind == metrics.ItemEvent && it.Event.Kind == metrics.KindOpen {
			slug = it.Event.Slug
		}
	})
	return slug, err
}

// Ending is what the end of a stream says about its run. The zero value says nothing.
type Ending struct {
	Opened  bool   // there was an event
	Stepped bool   // a metric or an annotation has come since the last open
	Done    bool   // the last event says so
	Step    int64  // of the last event that has one
	Failure string // why its process failed, "" if it has not said so
	Signal  string // that interrupted it, and nothing has come since; "" if none did
}

// EndingOf reads the last whole events of a stream, as many as its end holds.
func EndingOf(f io.ReaderAt, size int64) (end Ending, err error) {
	from := max(0, size-streamEnds)
	err = metrics.ReadStream(io.NewSectionReader(f, from, size-from), func(it *metrics.Item) {
		if it.Kind == metrics.ItemEvent {
			end.take(&it.Event)
		}
	})
	return end, err
}

func (end *Ending) take(e *metrics.Event) {
	switch e.Kind {
	case metrics.KindOpen:
		*end = Ending{}
	case metrics.KindMetric:
		end.Step, end.Stepped, end.Signal = e.Step, true, ""
	case metrics.KindAnnotation:
		n := metrics.ReadNote(e)
		end.Step, end.Stepped, end.Signal = e.Step, true, n.Signal
		if n.Class == metrics.NoteFailed {
			end.Failure = cmp.Or(n.Error, n.Text)
		}
	}
	end.Opened, end.Done = true, e.Kind == metrics.KindDone
}

// maxFailure bounds, in runes, what is told of a failure.
const maxFailure = 60

// String says it behind the name of the run: ", failed: out of memory".
func (end Ending) String() string {
	reason, _, _ := strings.Cut(end.Failure, "\n")
	switch {
	case !end.Opened:
		return ""
	case end.Failure != "":
		return ", failed: " + cli.Shorten(reason, maxFailure)
	case end.Done:
		return ", ended"
	case end.Signal != "":
		return fmt.Sprintf(", interrupted by %s at step %d", end.Signal, end.Step)
	case !end.Stepped:
		return ", opened"
	}
	return fmt.Sprintf(", step %d", end.Step)
}
