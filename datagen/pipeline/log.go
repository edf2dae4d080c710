package pipeline

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/foldlog/foldlog/datagen"
)

// Log is what Run needs of a datagen log; see OnLog.
type Log interface {
	// Feed begins to hand out sources.
	Feed(ctx context.Context, sources iter.Seq2[Source, error]) (Feed, error)
	// Blob reads the bytes of a blob.
	Blob(ctx context.Context, ref datagen.BlobRef) ([]byte, error)
}

// Feed hands sources out to the workers of one run. It is safe for concurrent use.
type Feed interface {
	// Next is a source that has work left and that no other worker is at, with its
	// stream; io.EOF once all are done here or elsewhere. Whoever gets one calls its
	// Close.
	Next(ctx context.Context) (Taken, error)
	// Left are the sources that nobody can work on, for their events contradict each
	// other.
	Left() []string
}

// Stream writes one item; see datagen.Stream.
type Stream interface {
	// Item is the fold of the item with everything that was written.
	Item() *datagen.Item
	// Checkpoint records a step that is done.
	Checkpoint(ctx context.Context, step datagen.Step, changes []datagen.Change) error
	// Finish is Checkpoint and End as one batch.
	Finish(ctx context.Context, step datagen.Step, changes []datagen.Change, end datagen.End) error
	// Fail records a failed attempt; the next one follows.
	Fail(ctx context.Context, step *datagen.Step, f datagen.Failure) error
	// End records that nothing more is to be done.
	End(ctx context.Context, end datagen.End) error
	// Sub creates or resumes a sub-item.
	Sub(ctx context.Context, step string, index int64, tags json.RawMessage) (Stream, error)
	// Close gives up a sub-item that has not ended.
	Close(ctx context.Context) error
}

// Source is an item from the outside.
type Source struct {
	// Key is its identity in the experiment.
	Key string
	// Tags are query tags, a JSON object, nil for none.
	Tags json.RawMessage
	// Fields is asked for what the item begins with, once it is begun; it is
	// recorded as the step InputStep. Nil is nothing.
	Fields func() ([]datagen.Change, error)
}

// Taken is a source that is ours to work on.
type Taken struct {
	Source
	Stream Stream
	// Close lets others know that we are no longer at it.
	Close func()
}
