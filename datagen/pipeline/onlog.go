package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/foldlog/foldlog/datagen"
)

// OnLog is the log that a writer writes. Sources that others hold are asked for
// again at the end, until they have ended or their holder is dead. Those that failed
// before are run again, and those that others failed meanwhile are not. The sources
// are kept in memory.
func OnLog(l *datagen.Log, w *datagen.Writer) Log { return &onLog{l, w} }

type onLog struct {
	log    *datagen.Log
	writer *datagen.Writer
}

// Feed implements Log. The sources are read to their end first.
func (o *onLog) Feed(ctx context.Context, sources iter.Seq2[Source, error]) (_ Feed, err error) {
	f := &logFeed{onLog: o, sources: map[string]Source{}}
	var keys []string
	for s, err := range sources {
		if err != nil {
			return nil, err
		}
		if _, twice := f.sources[s.Key]; !twice {
			keys = append(keys, s.Key)
			f.sources[s.Key] = s
		}
	}
	err = o.log.Outlast(ctx, func() error {
		f.first, err = o.log.View(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	f.claims, err = o.writer.Claims(ctx, keys, datagen.ClaimsOptions{Create: func(key string) datagen.CreateOptions {
		return datagen.CreateOptions{Tags: f.sources[key].Tags}
	}})
	return f, err
}

// Blob implements Log.
func (o *onLog) Blob(ctx context.Context, ref datagen.BlobRef) (b []byte, err error) {
	err = o.log.Outlast(ctx, func() error {
		v, err := o.log.View(ctx)
		if err == nil {
			b, err = v.Blob(ctx, ref)
		}
		return err
	})
	return b, err
}

// logFeed is one call of Feed.
type logFeed struct {
	*onLog
	first   *datagen.View // the log when we began
	claims  *datagen.Claims
	sources map[string]Source
}

// Next implements Feed.
func (f *logFeed) Next(ctx context.Context) (Taken, error) {
	for {
		stream, err := f.claims.Next(ctx)
		if err != nil {
			return Taken{}, err
		}
		closing := func() { stream.Close(context.WithoutCancel(ctx)) }
		failed, err := f.failedMeanwhile(ctx, stream)
		if err == nil && !failed {
			return Taken{Source: f.sources[stream.ID()], Stream: logStream{stream}, Close: closing}, nil
		}
		closing()
		if err != nil {
			return Taken{}, err
		}
	}
}

// Left implements Feed.
func (f *logFeed) Left() []string { return f.claims.Left() }

// failedMeanwhile tells whether an item failed since we began. Whoever did that has
// used its attempts up.
func (f *logFeed) failedMeanwhile(ctx context.Context, stream *datagen.Stream) (bool, error) {
	item := stream.Item()
	if item == nil || item.Status != datagen.StatusFailed {
		return false, nil
	}
	var then *datagen.Item
	err := f.log.Outlast(ctx, func() (err error) {
		then, err = f.first.Item(ctx, item.ID, datagen.AsOf{})
		return err
	})
	switch {
	case errors.Is(err, datagen.ErrNoItem):
		return true, nil
	case err != nil:
		return false, err
	}
	return then.Status != datagen.StatusFailed || then.LastSeq < item.LastSeq, nil
}

// logStream is a stream of the log as this package wants it.
type logStream struct{ *datagen.Stream }

// Item is never nil.
func (s logStream) Item() *datagen.Item {
	if item := s.Stream.Item(); item != nil {
		return item
	}
	return &datagen.Item{ID: s.ID(), Root: s.ID(), Status: datagen.StatusPending}
}

func (s logStream) Finish(ctx context.Context, step datagen.Step, changes []datagen.Change, end datagen.End) error {
	return s.CheckpointEnd(ctx, step, changes, end)
}

// Sub opens a sub-item. One that has ended is no error, and is not written to.
func (s logStream) Sub(ctx context.Context, step string, index int64, tags json.RawMessage) (Stream, error) {
	sub, err := s.Stream.Sub(ctx, step, index, datagen.CreateOptions{Tags: tags})
	var over *datagen.EndedError
	if errors.As(err, &over) {
		return endedStream{over.Item}, nil
	}
	if err != nil {
		return nil, err
	}
	return logStream{sub}, nil
}

// endedStream is an item that has ended.
type endedStream struct{ item *datagen.Item }

func (s endedStream) Item() *datagen.Item { return s.item }
func (s endedStream) Checkpoint(context.Context, datagen.Step, []datagen.Change) error {
	return datagen.ErrEnded
}
func (s endedStream) Finish(context.Context, datagen.Step, []datagen.Change, datagen.End) error {
	return datagen.ErrEnded
}
func (s endedStream) Fail(context.Context, *datagen.Step, datagen.Failure) error {
	return datagen.ErrEnded
}
func (s endedStream) End(context.Context, datagen.End) error { return datagen.ErrEnded }
func (s endedStream) Sub(context.Context, string, int64, json.RawMessage) (Stream, error) {
	return nil, datagen.ErrEnded
}
func (s endedStream) Close(context.Context) error { return nil }
