package datagen

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/foldlog/foldlog/lance/memwal"
)

// Change is what a step does to a field: it sets it, or appends to it.
type Change struct {
	Append bool
	Field
}

// Stream writes the events of one item, as its only writer. Its calls may come from any
// goroutine and run one at a time. After [ErrFenced], [ErrUnsure], [ErrClosed] or [ErrHeld]
// it cannot be used any more: open the item again. After any other error nothing of the
// call is in the log, and the stream can go on.
type Stream struct {
	w     *Writer
	id    string
	opts  CreateOptions
	epoch string
	claim *claim
	// sealed are the shards that were found or made sealed while the item was taken.
	sealed map[memwal.ID]bool

	mu      sync.Mutex
	folder  Folder
	next    int64
	attempt int32
	// creation is the event that begins the item, until it is in the log; it belongs to
	// the first checkpoint.
	creation   *Event
	fresh      bool // the item was begun by this stream
	checkpoint string
	err        error
	closed     bool
}

// ID is the item's identity.
func (s *Stream) ID() string { return s.id }

// Epoch is the writer epoch that the stream's events carry.
func (s *Stream) Epoch() string { return s.epoch }

// Item is the item with everything that the stream has written. It is valid until the
// next call that writes.
func (s *Stream) Item() *Item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.folder.Item()
}

// Attempt is that of the next event.
func (s *Stream) Attempt() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attempt
}

// Checkpoint writes that a step is complete, with all its changes, as one batch. It
// is durable when this returns.
func (s *Stream) Checkpoint(ctx context.Context, step Step, changes []Change) error {
	return s.write(ctx, append(changesOf(step, changes), &Event{Kind: StepCompleted, Step: &step}))
}

// CheckpointEnd is Checkpoint and End in one batch.
func (s *Stream) CheckpointEnd(ctx context.Context, step Step, changes []Change, end End) error {
	return s.write(ctx, append(changesOf(step, changes), &Event{Kind: StepCompleted, Step: &step}, &Event{Kind: ItemEnded, End: end}))
}

// Fail writes that the attempt failed, in a step or outside of any (nil). What comes
// next is of the next attempt.
func (s *Stream) Fail(ctx context.Context, step *Step, f Failure) error {
	return s.write(ctx, []*Event{{Kind: StepFailed, Step: step, Failure: &f}})
}

// End writes that nothing more is to be done for the item, and closes the stream.
func (s *Stream) End(ctx context.Context, end End) error {
	return s.write(ctx, []*Event{{Kind: ItemEnded, End: end}})
}

// Create writes the creation of the item, which else comes with the first checkpoint.
// If the item is created it does nothing.
func (s *Stream) Create(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creation == nil {
		return nil
	}
	return s.batch(ctx, nil)
}

// Sub opens an item that a step of this one makes: its identity is that of SubItem.
// The step and the index tell it from its siblings.
func (s *Stream) Sub(ctx context.Context, step string, index int64, opts CreateOptions) (*Stream, error) {
	if err := s.Create(ctx); err != nil {
		return nil, err
	}
	opts.Root, opts.Parent = s.opts.Root, s.id
	guess := int64(-1)
	if s.fresh {
		guess = 0
	}
	return s.w.openAt(ctx, SubItem(s.id, step, index), opts, guess)
}

// Close ends the stream but not the item. What it wrote stays; this writer can open the
// item again, and others can once this writer is closed. After End it does nothing.
func (s *Stream) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close(ctx)
	return nil
}

func (s *Stream) close(ctx context.Context) {
	if s.closed {
		return
	}
	s.closed = true
	if s.claim != nil && s.err == nil {
		s.w.release(ctx, s.claim)
	}
	if s.err == nil {
		s.err = ErrClosed
	}
	s.w.unreserve(s.id)
}

func changesOf(step Step, changes []Change) []*Event {
	events := make([]*Event, 0, len(changes)+2)
	for _, c := range changes {
		e := &Event{Kind: FieldSet, Step: &step, Field: &c.Field}
		if c.Append {
			e.Kind = FieldAppend
		}
		events = append(events, e)
	}
	return events
}

// newCheckpoint draws the identity of a checkpoint.
func newCheckpoint() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return uuidText(b[:], 4)
}

// fill completes the events of the next batch, all of the same moment. The creation
// comes first and keeps its identity.
func (s *Stream) fill(events []*Event) {
	now := time.Now().UTC().Truncate(time.Microsecond)
	for i, e := range events {
		if e == s.creation && !e.Time.IsZero() {
			continue
		}
		e.ID, e.Seq = EventID(s.id, s.checkpoint, i), s.next+int64(i)
		e.Item, e.Root, e.Parent = s.id, s.opts.Root, s.opts.Parent
		e.Checkpoint, e.Attempt, e.Run, e.Epoch = s.checkpoint, s.attempt, s.w.run, s.epoch
		e.Time, e.Schema = now, SchemaVersion
		if e.Field != nil && e.Field.Value.Kind == Blob {
			field := *e.Field
			if b := field.Value.Blob.Bytes; b != nil && field.Value.Blob.Checksum == "" {
				field.Value.Blob = NewBlob(b)
			}
			field.Value.Blob.Event = e.ID
			e.Field = &field
		}
	}
}

// checkCreation refuses what could never be written.
func (s *Stream) checkCreation() error {
	s.checkpoint = newCheckpoint()
	e := &Event{Kind: ItemCreated, Tags: s.opts.Tags}
	s.fill([]*Event{e})
	if err := CheckBatch([]Event{*e}); err != nil {
		return fmt.Errorf("open item %q: %w", s.id, err)
	}
	return nil
}

// write makes one batch durable.
func (s *Stream) write(ctx context.Context, events []*Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.batch(ctx, events)
}

// batch is write for a caller who holds the lock.
func (s *Stream) batch(ctx context.Context, events []*Event) error {
	if s.err != nil {
		return s.err
	}
	if s.creation != nil {
		events = append([]*Event{s.creation}, events...)
	} else {
		s.checkpoint = newCheckpoint()
	}
	s.fill(events)
	batch := make([]Event, len(events))
	for i, e := range events {
		batch[i] = *e
	}
	err := CheckBatch(batch)
	if err == nil {
		err = s.checkModes(batch)
	}
	if err != nil {
		return fmt.Errorf("item %q: %w", s.id, err)
	}
	if err := s.commit(ctx, batch); err != nil {
		return fmt.Errorf("item %q: %w", s.id, err)
	}
	s.written(ctx, batch)
	return nil
}

// checkModes refuses a value that is appended to one that was set, which would put the
// item at fault.
func (s *Stream) checkModes(batch []Event) error {
	set := map[string]bool{}
	it := s.folder.Item()
	for i := range batch {
		switch e := &batch[i]; e.Kind {
		case ItemCreated:
			it = nil
			clear(set)
		case FieldSet, FieldAppend:
			name := e.Field.Name
			was, ok := set[name]
			if !ok && it != nil {
				at, there := it.fields[name]
				was = there && !it.Fields[at].Appended
			}
			if set[name] = e.Kind == FieldSet; was && !set[name] {
				return &EventError{Index: i, ID: e.ID, Column: "field_name", Err: fmt.Errorf("a value is appended to field %q, which was set", name)}
			}
		}
	}
	return nil
}

// commit appends a batch. If the caller's context ends meanwhile it returns at once: the
// stream cannot be used then, and the item can be opened again once the outcome is known.
func (s *Stream) commit(ctx context.Context, batch []Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rows, err := Record(batch)
	if err == nil && s.claim != nil {
		err = s.w.log.Outlast(ctx, func() error { return s.w.still(ctx, s.claim) })
	}
	if errors.Is(err, ErrHeld) {
		s.claim, s.err = nil, err
		s.close(ctx)
	}
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() { answer <- s.w.append(rows) }()
	select {
	case err = <-answer:
	case <-ctx.Done():
		s.err, s.closed = fmt.Errorf("%w: %w", ErrUnsure, ctx.Err()), true
		go func() {
			<-answer
			s.w.unreserve(s.id)
		}()
		return s.err
	}
	if errors.Is(err, ErrFenced) || errors.Is(err, ErrUnsure) || errors.Is(err, ErrClosed) {
		s.err = err
		s.close(ctx)
	}
	return err
}

// written takes a batch that is durable into account.
func (s *Stream) written(ctx context.Context, batch []Event) {
	s.creation = nil
	s.folder.Add(batch...)
	last := &batch[len(batch)-1]
	s.next = last.Seq + 1
	if s.claim != nil {
		s.w.spent(context.WithoutCancel(ctx), s.claim)
		s.claim = nil
	}
	switch last.Kind {
	case StepFailed:
		s.attempt++
	case ItemEnded:
		s.close(ctx)
	}
}
