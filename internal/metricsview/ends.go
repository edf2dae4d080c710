package metricsview

import (
	"io"

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

// LastEvent is the last whole event within the end of a stream, nil if there
// is none.
func LastEvent(f io.ReaderAt, size int64) (last *metrics.Event, err error) {
	from := max(0, size-streamEnds)
	err = metrics.ReadStream(io.NewSectionReader(f, from, size-from), func(it *metrics.Item) {
		if it.Kind == metrics.ItemEvent {
			e := it.Event
			last = &e
		}
	})
	return last, err
}
