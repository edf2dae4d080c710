package datagen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/foldlog/foldlog/lance/memwal"
)

// CreateOptions says how an item is begun. The zero value is a root item without tags.
type CreateOptions struct {
	// Root and Parent place the item in a tree; empty is an item of its own.
	Root, Parent string
	// Tags are query tags, a JSON object, for an item that is new.
	Tags json.RawMessage
	// Rerun begins an item that has ended, or is at fault, once more.
	Rerun bool

	// raw is for batches that say themselves what happened.
	raw bool
}

// Open begins an item, or resumes it where its last completed step ended, taking it
// over from a writer that died. An item that has ended is an EndedError, unless it is
// to be run again; one whose writer lives, or that is open in this one, a HeldError;
// one at fault a [Fault]. The creation of a new item is written with its first
// checkpoint. While the storage fails it tries again for as long as Options.RetryFor.
func (w *Writer) Open(ctx context.Context, item string, opts CreateOptions) (*Stream, error) {
	return w.openAt(ctx, item, opts, -1)
}

// openAt is Open with a guess of the next sequence, which is claimed before the log is
// looked at; -1 is no guess.
func (w *Writer) openAt(ctx context.Context, item string, opts CreateOptions, guess int64) (*Stream, error) {
	if len(item) > MaxTextBytes { // and not for every error to repeat
		return nil, fmt.Errorf("open item %.40q…: %w: its identity has %d bytes, and %d is the most", item, ErrEvent, len(item), MaxTextBytes)
	}
	if opts.Parent == "" && opts.Root == "" {
		opts.Root = item
	}
	if err := w.reserve(item); err != nil {
		return nil, err
	}
	s := &Stream{w: w, id: item, opts: opts, epoch: w.newEpoch()}
	err := s.checkCreation()
	if err == nil {
		err = w.log.Outlast(ctx, func() error { return s.tryTake(ctx, guess) })
	}
	if err != nil {
		if s.claim != nil {
			w.release(context.WithoutCancel(ctx), s.claim)
		}
		w.unreserve(item)
		return nil, err
	}
	s.begin()
	return s, nil
}

func (w *Writer) newEpoch() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return epochOf(w.shard, w.claimed, w.epoch.Add(1))
}

func (w *Writer) reserve(item string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Err(); err != nil {
		return fmt.Errorf("open item %q: %w", item, err)
	}
	if w.open[item] {
		return &HeldError{Item: item, By: w.shard.String(), Holder: "this writer"}
	}
	w.open[item] = true
	return nil
}

func (w *Writer) unreserve(item string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, item)
}

// tryTake is take, which may be tried again: what was claimed before stays claimed.
func (s *Stream) tryTake(ctx context.Context, guess int64) error {
	if err := s.w.Err(); err != nil {
		return fmt.Errorf("open item %q: %w", s.id, err)
	}
	if s.claim != nil {
		guess = -1
	}
	return s.take(ctx, guess)
}

// maxTakes bounds how often an item that moves meanwhile is looked at anew.
const maxTakes = 16

// take makes this stream the item's one writer. First nobody else must be able to
// write the next event: the writer of the last one is this one or is sealed, and the
// claim of the next one is ours. Then the log must still end where it did when that
// began. Both are looked at in one view that is younger than all of it.
func (s *Stream) take(ctx context.Context, guess int64) error {
	if err := s.w.settle(); err != nil {
		return fmt.Errorf("open item %q: %w", s.id, err)
	}
	if guess >= 0 {
		if err := s.take1(ctx, guess); err != nil && !errors.Is(err, errClaimPassed) {
			return err
		}
	}
	s.sealed = map[memwal.ID]bool{}
	for range maxTakes {
		found, err := s.w.log.find(ctx, s.id)
		if err != nil {
			return fmt.Errorf("open item %q: %w", s.id, err)
		}
		s.folder = Folder{}
		s.folder.Add(found.events...)
		it := s.folder.Item()
		s.next = 0
		if it != nil {
			s.next = it.LastSeq + 1
			if err := s.mayGoOn(it); err != nil {
				return err
			}
		}
		done, err := s.settled(ctx, found)
		if done || err != nil {
			return err
		}
	}
	return &HeldError{Item: s.id, Holder: "others that take it at the same time"}
}

// mayGoOn refuses an item that has ended or is at fault.
func (s *Stream) mayGoOn(it *Item) error {
	if s.opts.Rerun || s.opts.raw {
		return nil
	}
	if err := it.Err(); err != nil {
		return err
	}
	if it.Status.Finished() {
		return &EndedError{Item: it}
	}
	return nil
}

// settled reports whether the item, as it was found, is ours to go on with, and else
// does what is missing, after which it must be looked at again.
func (s *Stream) settled(ctx context.Context, found *found) (bool, error) {
	shards, ours, err := s.owners(ctx, found)
	if err != nil || ours {
		return ours, err
	}
	before := true // whether all of them were sealed before the item was looked at
	for _, id := range shards {
		if err := s.w.log.watches.of(id).inherit(ctx, s.w.shard.String()); err != nil {
			return false, heldItem(err, s.id)
		}
		before = before && s.sealed[id]
		s.sealed[id] = true
	}
	if s.claim != nil && s.claim.seq == s.next {
		return before, nil
	}
	if s.claim != nil {
		s.w.release(ctx, s.claim)
		s.claim = nil
	}
	if err := s.take1(ctx, s.next); err != nil && !errors.Is(err, errClaimPassed) {
		return false, err
	}
	return false, nil
}

func (s *Stream) take1(ctx context.Context, seq int64) (err error) {
	s.claim, err = s.w.claim(ctx, s.id, seq)
	return err
}

// owners are the shards whose writers may write the item: that of the epoch of its last
// event, whoever wrote that. An epoch that is none of ours names no shard: then it is the one in which the
// event lies, or, if it is merged, any of a writer without a lease.
func (s *Stream) owners(ctx context.Context, found *found) (shards []memwal.ID, ours bool, err error) {
	foreign := false
	for _, last := range found.last() {
		if id, ok := shardOf(found.events[last].Epoch); ok {
			shards = append(shards, id)
		} else if p := found.places[last]; p != (memwal.Place{}) {
			shards = append(shards, p.Shard)
		} else {
			foreign = true
		}
	}
	slices.SortFunc(shards, func(a, b memwal.ID) int { return bytes.Compare(a[:], b[:]) })
	shards = slices.Compact(shards)
	if !foreign {
		return shards, len(shards) == 1 && shards[0] == s.w.shard, nil
	}
	all, err := s.w.log.table.Shards(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("open item %q: %w", s.id, err)
	}
	for _, info := range all {
		leased, err := s.w.log.watches.of(info.ID).leased(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("open item %q: %w", s.id, err)
		}
		if !info.Sealed && !leased {
			shards = append(shards, info.ID)
		}
	}
	return shards, false, nil
}

// found is an item as a view has it: all copies of its events, and where they lie.
type found struct {
	events []Event
	places []memwal.Place
}

// last are the numbers of the events with the highest sequence: copies of one, or, where
// a fence was broken, several.
func (f *found) last() []int {
	var last []int
	for i := range f.events {
		if len(last) > 0 && f.events[i].Seq > f.events[last[0]].Seq {
			last = last[:0]
		}
		if len(last) == 0 || f.events[i].Seq == f.events[last[0]].Seq {
			last = append(last, i)
		}
	}
	return last
}

// find reads an item in a view that begins now.
func (l *Log) find(ctx context.Context, item string) (*found, error) {
	v, err := l.View(ctx)
	if err != nil {
		return nil, err
	}
	return v.find(ctx, item)
}

// begin prepares the first events of a stream: an item that is new, or is run again,
// is created with the first checkpoint.
func (s *Stream) begin() {
	it := s.folder.Item()
	if s.opts.raw {
		return
	}
	if it != nil {
		s.attempt = it.Attempt + 1
		s.opts.Root, s.opts.Parent = it.Root, it.Parent
		if !s.opts.Rerun || !it.Status.Finished() && it.Err() == nil {
			return
		}
		if s.opts.Tags == nil {
			s.opts.Tags = slices.Clone(it.Tags)
		}
	}
	s.fresh = it == nil
	s.creation = &Event{Kind: ItemCreated, Tags: s.opts.Tags}
	s.checkpoint = newCheckpoint()
	s.fill([]*Event{s.creation})
	s.folder.Add(*s.creation)
}
