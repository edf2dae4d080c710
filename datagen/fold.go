package datagen

import (
	"bytes"
	"cmp"
	"slices"
)

// Fold makes the item of its events, which may come in any order and more than
// once; nil if there are none. It is pure. Faults are in the item.
func Fold(events []Event) *Item {
	var f Folder
	f.Add(events...)
	return f.Item()
}

// Folder folds the events of one item as they come. It keeps them: memory is that
// of the events, without the bytes of blobs. The zero value is ready.
type Folder struct {
	events []Event // in order, each once
	ids    map[string]int
	twice  map[string]bool // identities that several of them have
	folded int             // how many of them are in the state
	dirty  bool
	state  *folding
}

// Add takes events of the item in, whatever order they are in. Those that it has
// are left out.
func (f *Folder) Add(events ...Event) {
	if f.ids == nil {
		f.ids = make(map[string]int, len(events))
	}
	for i := range events {
		f.add(&events[i])
	}
}

func (f *Folder) add(e *Event) {
	n := len(f.events)
	if at, ok := f.ids[e.ID]; ok {
		if f.known(at, e) {
			return
		}
		if f.twice == nil {
			f.twice = map[string]bool{}
		}
		f.dirty, f.twice[e.ID] = true, true
	} else {
		f.ids[e.ID] = n
	}
	if n > 0 && (e.Seq <= f.events[n-1].Seq || n == f.folded && e.Checkpoint == f.events[n-1].Checkpoint) {
		f.dirty = true
	}
	f.events = append(f.events, light(*e))
}

// known reports whether the event is among those kept, of which one with its
// identity is at a place.
func (f *Folder) known(at int, e *Event) bool {
	if f.events[at].Equal(e) {
		return true
	}
	return f.twice[e.ID] && slices.ContainsFunc(f.events, func(o Event) bool { return o.Equal(e) })
}

// light is the event without the bytes of a blob.
func light(e Event) Event {
	if e.Field != nil && e.Field.Value.Blob.Bytes != nil {
		field := *e.Field
		field.Value.Blob.Bytes = nil
		if field.Value.Blob.Event == "" {
			field.Value.Blob.Event = e.ID
		}
		e.Field = &field
	}
	return e
}

// Item is what the events so far fold into, nil if there are none. It is valid
// until the next call of Add.
func (f *Folder) Item() *Item {
	if len(f.events) == 0 {
		return nil
	}
	if f.dirty || f.state == nil {
		slices.SortFunc(f.events, inOrder)
		clear(f.ids)
		for i := range f.events {
			f.ids[f.events[i].ID] = i
		}
		f.state, f.folded, f.dirty = newFolding(), 0, false
	}
	if f.folded < len(f.events) && f.state.add(f.events[f.folded:]) {
		f.state = newFolding()
		f.state.add(f.events)
	}
	f.folded = len(f.events)
	return &f.state.item
}

// Events are the events so far in the order of the fold, each once. They belong to
// the folder.
func (f *Folder) Events() []Event {
	f.Item()
	return f.events
}

// inOrder orders events by sequence; what shares one has a fault, and only needs
// some order that does not depend on how the events came.
func inOrder(a, b Event) int {
	if c := cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)); c != 0 || a.Equal(&b) {
		return c
	}
	return bytes.Compare(AppendEvent(nil, &a), AppendEvent(nil, &b))
}
