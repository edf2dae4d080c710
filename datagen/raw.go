package datagen

import (
	"context"
	"fmt"
	"time"
)

// Append writes events that say themselves what their item, sequence and checkpoint
// are, such as those that a program in another language made. Events that follow each
// other and share item and checkpoint are one batch. What can be derived may be left
// out (see FillBatch), the run and the writer epoch too: the epoch is always this
// writer's.
//
// A batch that the log has already, with the same events, is not written again, so a
// call whose outcome is not known can be made once more. The same identity with other
// contents is an [EventError], as is a sequence that does not follow the item's last.
// The items belong to this writer until it is closed. Batches before one that fails
// are in the log.
func (w *Writer) Append(ctx context.Context, events []Event) error {
	for from := 0; from < len(events); {
		to := from + 1
		for to < len(events) && events[to].Item == events[from].Item && events[to].Checkpoint == events[from].Checkpoint {
			to++
		}
		if err := w.appendBatch(ctx, events[from:to:to]); err != nil {
			return fmt.Errorf("append events %d to %d: %w", from, to-1, err)
		}
		from = to
	}
	return nil
}

func (w *Writer) appendBatch(ctx context.Context, given []Event) error {
	batch := make([]Event, len(given))
	for i := range given {
		batch[i] = given[i]
		if f := batch[i].Field; f != nil {
			own := *f
			if b := own.Value.Blob; own.Value.Kind == Blob && b.Bytes != nil && b.Checksum == "" {
				own.Value.Blob = NewBlob(b.Bytes)
			}
			batch[i].Field = &own
		}
	}
	s, err := w.rawStream(ctx, &batch[0])
	if err != nil {
		return err
	}
	return s.appendRaw(ctx, batch)
}

// rawStream is the stream that the batches of an item go through.
func (w *Writer) rawStream(ctx context.Context, e *Event) (*Stream, error) {
	w.mu.Lock()
	s := w.raw[e.Item]
	w.mu.Unlock()
	if s != nil && s.usable() {
		return s, nil
	}
	s, err := w.openAt(ctx, e.Item, CreateOptions{Root: e.Root, Parent: e.Parent, raw: true}, -1)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.raw[e.Item] = s
	return s, nil
}

func (s *Stream) usable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err == nil
}

func (s *Stream) appendRaw(ctx context.Context, batch []Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for i := range batch { // identities first: they tell what is there
		if e := &batch[i]; e.ID == "" {
			e.ID = EventID(e.Item, e.Checkpoint, i)
		}
	}
	there, err := s.there(batch)
	if there || err != nil {
		return err
	}
	FillBatch(batch, time.Now())
	for i := range batch {
		e := &batch[i]
		if e.Run == "" {
			e.Run = s.w.run
		}
		if e.Epoch == "" {
			e.Epoch = s.epoch
		}
		if e.Epoch != s.epoch {
			return &EventError{Index: i, ID: e.ID, Column: "writer_epoch", Err: fmt.Errorf("%q is not this writer's: leave it out", e.Epoch)}
		}
	}
	if err := CheckBatch(batch); err != nil {
		return err
	}
	if err := s.follows(&batch[0]); err != nil {
		return err
	}
	if err := s.checkModes(batch); err != nil {
		return err
	}
	if err := s.commit(ctx, batch); err != nil {
		return err
	}
	s.written(ctx, batch)
	return nil
}

// there reports whether the item has the batch already. What the caller left out counts
// as being the same.
func (s *Stream) there(batch []Event) (bool, error) {
	have := make(map[string]*Event, len(batch))
	for i := range batch {
		have[batch[i].ID] = nil
	}
	n := 0
	events := s.folder.Events()
	for i := range events {
		if _, wanted := have[events[i].ID]; wanted {
			have[events[i].ID] = &events[i]
			n++
		}
	}
	if n == 0 {
		return false, nil
	}
	for i := range batch {
		e, old := batch[i], have[batch[i].ID]
		if old == nil {
			return false, &EventError{Index: i, ID: e.ID, Err: fmt.Errorf("it is new, and others of its checkpoint are in the log")}
		}
		fillFrom(&e, old)
		if !e.Equal(old) {
			return false, &EventError{Index: i, ID: e.ID, Column: "event_id", Err: fmt.Errorf("%w: the log has it with other contents", ErrFault)}
		}
	}
	return true, nil
}

// fillFrom takes over what a caller may leave out.
func fillFrom(e, old *Event) {
	if e.Run == "" {
		e.Run = old.Run
	}
	if e.Epoch == "" {
		e.Epoch = old.Epoch
	}
	if e.Time.IsZero() {
		e.Time = old.Time
	}
	if e.Root == "" {
		e.Root = old.Root
	}
	if e.Schema == 0 {
		e.Schema = old.Schema
	}
}

// follows checks that a batch may come after what the item has.
func (s *Stream) follows(first *Event) error {
	it := s.folder.Item()
	fail := func(column, format string, args ...any) error {
		return &EventError{ID: first.ID, Column: column, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case it == nil && first.Kind != ItemCreated:
		return fail("event_type", "an item begins with %s", ItemCreated)
	case it == nil:
		return nil
	case first.Seq <= it.LastSeq:
		return fail("item_seq", "%d does not follow the item's last, %d", first.Seq, it.LastSeq)
	case it.Status.Finished() && first.Kind != ItemCreated:
		return &EndedError{Item: it}
	case first.Root != it.Root || first.Parent != it.Parent:
		return fail("root_item_id", "the item's root is %q and its parent %q", it.Root, it.Parent)
	}
	return nil
}
