package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// errKilled is what a memory log answers from a write on.
var errKilled = errors.New("killed")

// memLog is a log in memory. It checks every batch, and dies after so many writes.
type memLog struct {
	mu     sync.Mutex
	items  map[string][]datagen.Event
	folds  map[string]*datagen.Item
	batch  int
	writes int
	dieAt  int // 0 is never
	dead   bool
}

func newMemLog() *memLog {
	return &memLog{items: map[string][]datagen.Event{}, folds: map[string]*datagen.Item{}}
}

// revive lets the log go on after its death.
func (l *memLog) revive(dieAt int) {
	l.writes, l.dieAt, l.dead = 0, dieAt, false
}

func (l *memLog) fold(id string) *datagen.Item {
	if l.folds[id] == nil && len(l.items[id]) > 0 {
		l.folds[id] = datagen.Fold(l.items[id])
	}
	return l.folds[id]
}

// Feed hands the sources out in their order.
func (l *memLog) Feed(_ context.Context, sources iter.Seq2[pipeline.Source, error]) (pipeline.Feed, error) {
	f := &memFeed{log: l}
	for s, err := range sources {
		if err != nil {
			return nil, err
		}
		f.left = append(f.left, s)
	}
	return f, nil
}

type memFeed struct {
	log  *memLog
	mu   sync.Mutex
	left []pipeline.Source
}

func (f *memFeed) Left() []string { return nil }

func (f *memFeed) Next(context.Context) (pipeline.Taken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.left) == 0 {
		return pipeline.Taken{}, io.EOF
	}
	s := f.left[0]
	f.left = f.left[1:]
	stream, err := f.log.open(s.Key, s.Key, "", s.Tags)
	return pipeline.Taken{Source: s, Stream: stream, Close: func() {}}, err
}

func (l *memLog) Blob(_ context.Context, ref datagen.BlobRef) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, events := range l.items {
		for i := range events {
			if events[i].ID == ref.Event {
				return events[i].Field.Value.Blob.Bytes, nil
			}
		}
	}
	return nil, fmt.Errorf("no event %q", ref.Event)
}

func (l *memLog) open(id, root, parent string, tags json.RawMessage) (*memStream, error) {
	s := &memStream{log: l, id: id, root: root, parent: parent, epoch: fmt.Sprintf("e%d", l.epoch())}
	if item := s.Item(); item != nil {
		s.attempt = item.Attempt
		if item.Status == datagen.StatusFailed {
			s.attempt++
		}
		return s, nil
	}
	return s, s.write(datagen.Event{Kind: datagen.ItemCreated, Tags: tags})
}

func (l *memLog) epoch() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.batch
}

type memStream struct {
	log              *memLog
	id, root, parent string
	epoch            string
	attempt          int32
}

func (s *memStream) Item() *datagen.Item {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.fold(s.id)
}

func (s *memStream) write(events ...datagen.Event) error {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return errKilled
	}
	l.writes++
	if l.writes == l.dieAt {
		l.dead = true
		return errKilled
	}
	l.batch++
	seq := int64(len(l.items[s.id]))
	for i := range events {
		e := &events[i]
		e.Checkpoint = fmt.Sprintf("c%d", l.batch)
		e.Item, e.Root, e.Parent, e.Seq = s.id, s.root, s.parent, seq+int64(i)
		e.ID = datagen.EventID(s.id, e.Checkpoint, i)
		e.Attempt, e.Run, e.Epoch = s.attempt, "run", s.epoch
		e.Time, e.Schema = time.UnixMicro(int64(l.batch)).UTC(), datagen.SchemaVersion
	}
	if err := datagen.CheckBatch(events); err != nil {
		return err
	}
	l.items[s.id] = append(l.items[s.id], events...)
	delete(l.folds, s.id)
	return nil
}

func step(step datagen.Step, changes []datagen.Change) []datagen.Event {
	var events []datagen.Event
	for _, c := range changes {
		kind := datagen.FieldSet
		if c.Append {
			kind = datagen.FieldAppend
		}
		events = append(events, datagen.Event{Kind: kind, Step: &step, Field: &c.Field})
	}
	return append(events, datagen.Event{Kind: datagen.StepCompleted, Step: &step})
}

func (s *memStream) Checkpoint(_ context.Context, st datagen.Step, changes []datagen.Change) error {
	return s.write(step(st, changes)...)
}

func (s *memStream) Finish(_ context.Context, st datagen.Step, changes []datagen.Change, end datagen.End) error {
	return s.write(append(step(st, changes), datagen.Event{Kind: datagen.ItemEnded, End: end})...)
}

func (s *memStream) Fail(_ context.Context, st *datagen.Step, f datagen.Failure) error {
	err := s.write(datagen.Event{Kind: datagen.StepFailed, Step: st, Failure: &f})
	s.attempt++
	return err
}

func (s *memStream) Close(context.Context) error { return nil }

func (s *memStream) End(_ context.Context, end datagen.End) error {
	return s.write(datagen.Event{Kind: datagen.ItemEnded, End: end})
}

func (s *memStream) Sub(_ context.Context, step string, index int64, tags json.RawMessage) (pipeline.Stream, error) {
	return s.log.open(datagen.SubItem(s.id, step, index), s.root, s.id, tags)
}

// sources are items that begin with their number.
func sources(keys ...string) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		for i, key := range keys {
			fields := func() ([]datagen.Change, error) {
				return []datagen.Change{datagen.Set("number", datagen.IntValue(int64(i)))}, nil
			}
			if !yield(pipeline.Source{Key: key, Fields: fields}, nil) {
				return
			}
		}
	}
}

// outcome is what a log holds, without what differs between runs: the fields, the
// end, and the steps in their order.
func (l *memLog) outcome() map[string]any {
	all := map[string]any{}
	for id := range l.items {
		item := l.fold(id)
		fields := map[string][]any{}
		for i := range item.Fields {
			for _, v := range item.Fields[i].Values {
				name := item.Fields[i].Name
				value := v.Value
				value.Blob.Event = ""
				fields[name] = append(fields[name], value)
			}
		}
		var steps []string
		for _, s := range item.Steps {
			steps = append(steps, s.Instance)
		}
		all[id] = map[string]any{"status": item.Status, "fields": fields, "steps": steps, "parent": item.Parent, "faults": len(item.Faults)}
	}
	return all
}

// twice are the instances that were completed more than once.
func (l *memLog) twice() (names []string) {
	for id, events := range l.items {
		var seen []string
		for i := range events {
			if events[i].Kind != datagen.StepCompleted {
				continue
			}
			if slices.Contains(seen, events[i].Step.Instance) {
				names = append(names, id+" "+events[i].Step.Instance)
			}
			seen = append(seen, events[i].Step.Instance)
		}
	}
	return names
}
