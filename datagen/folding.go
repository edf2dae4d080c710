package datagen

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// folding is the state of a fold. Events are added in order.
type folding struct {
	item     Item
	life     life
	started  bool            // there were events before
	anchored bool            // the item's identity is that of an ItemCreated
	began    bool            // an ItemCreated was applied
	ended    bool            // an ItemEnded stands
	told     bool            // the missing ItemCreated is told
	epochs   map[string]bool // those that have been current
	current  string          // writer epoch
	void     map[string]string
	spoilt   map[string]bool // checkpoints with a fault
	frames   map[string]int64
}

func newFolding() *folding {
	return &folding{epochs: map[string]bool{}, void: map[string]string{}, spoilt: map[string]bool{},
		item: Item{LastSeq: -1, done: map[stepKey]int{}, fields: map[string]int{}}}
}

// add folds events that come after those before, a checkpoint at a time. It
// reports whether the events before would fold differently with these.
func (f *folding) add(events []Event) (again bool) {
	first := !f.started
	f.started = true
	if first {
		f.identity(events)
	} else if !f.anchored && slices.ContainsFunc(events, creates) {
		return true
	}
	before := len(f.item.Faults)
	skip := f.examine(events)
	if again = !first && len(f.item.Faults) > before; again {
		return true
	}
	for i := 0; i < len(events); {
		j := i + 1
		for j < len(events) && events[j].Checkpoint == events[i].Checkpoint {
			j++
		}
		f.checkpoint(events[i:j], skip[i:j])
		i = j
	}
	f.finish()
	return false
}

func creates(e Event) bool { return e.Kind == ItemCreated }

// identity takes the item's from the first creation, or from the first event if
// there is none.
func (f *folding) identity(events []Event) {
	from := &events[0]
	if i := slices.IndexFunc(events, creates); i >= 0 {
		from, f.anchored = &events[i], true
	}
	f.item.ID, f.item.Root, f.item.Parent = from.Item, from.Root, from.Parent
}

// examine finds the faults that lie between events, whatever the fields are, and
// which events are not to be applied.
func (f *folding) examine(events []Event) (skip []bool) {
	skip = make([]bool, len(events))
	twice := repeated(events)
	for i := 0; i < len(events); {
		j := i + 1
		for j < len(events) && events[j].Seq == events[i].Seq {
			j++
		}
		if same := events[i:j]; f.rivals(same) {
			for k := range same[1:] {
				skip[i+1+k] = true
			}
		} else if same[0].ID != same[len(same)-1].ID {
			f.fault(collision(same), same...)
		}
		for k := i; k < j; k++ {
			e := &events[k]
			f.life.add(momentOf(e))
			if skip[k] {
				continue
			}
			if what := f.misplaced(e, j-i > 1); what != "" {
				f.fault(what, *e)
			}
			if twice[e.ID] {
				f.fault("two events have this identity, with different content", *e)
			}
		}
		i = j
	}
	return skip
}

// repeated are the identities that several events have. The same event is not
// among the events twice, so these differ.
func repeated(events []Event) map[string]bool {
	seen := make(map[string]bool, len(events))
	twice := map[string]bool{}
	for i := range events {
		if id := events[i].ID; seen[id] {
			twice[id] = true
		} else {
			seen[id] = true
		}
	}
	return twice
}

// rivals reports whether events at one sequence are nothing but creations of the
// item by several writers. That is no fault: the one with the smallest identity
// stands, and the epochs of the others are void.
func (f *folding) rivals(same []Event) bool {
	if len(same) < 2 {
		return false
	}
	epochs := map[string]bool{}
	for i := range same {
		e := &same[i]
		if e.Kind != ItemCreated || epochs[e.Epoch] || f.epochs[e.Epoch] || e.Root != same[0].Root || e.Parent != same[0].Parent {
			return false
		}
		epochs[e.Epoch] = true
	}
	for _, e := range same[1:] {
		f.void[e.Epoch] = same[0].Epoch
	}
	return true
}

func collision(same []Event) string {
	what := "two events at one sequence, by writer epochs "
	for i := range min(len(same), 2) {
		if i > 0 {
			what += " and "
		}
		what += strconv.Quote(same[i].Epoch)
	}
	return what + ", of which one was not fenced"
}

// misplaced says what is wrong with an event where it stands, "" if nothing is.
func (f *folding) misplaced(e *Event, shared bool) string {
	it := &f.item
	switch winner, void := f.void[e.Epoch]; {
	case void:
		return fmt.Sprintf("writer epoch %q goes on, though the creation by %q stands", e.Epoch, winner)
	case e.Item != it.ID:
		return fmt.Sprintf("the event is of item %q", e.Item)
	case e.Root != it.Root || e.Parent != it.Parent:
		return fmt.Sprintf("root %q and parent %q, which were %q and %q", e.Root, e.Parent, it.Root, it.Parent)
	case e.Seq < 0:
		return "a negative sequence"
	}
	if e.Epoch != f.current {
		if f.epochs[e.Epoch] && !shared {
			return fmt.Sprintf("writer epoch %q goes on after %q took the item over", e.Epoch, f.current)
		}
		if !f.epochs[e.Epoch] {
			f.epochs[e.Epoch], f.current = true, e.Epoch
			it.Epochs = append(it.Epochs, e.Epoch)
		}
	}
	return malformed(e)
}

// malformed says what a kind of event lacks, "" if nothing.
func malformed(e *Event) string {
	switch e.Kind {
	case ItemCreated, StepStarted, StepFailed:
	case FieldSet, FieldAppend:
		if e.Field == nil {
			return string(e.Kind) + " without a field"
		}
		switch k := e.Field.Value.Kind; k {
		case Int, Float, Bool, Str, JSON, Blob:
		case "":
			return fmt.Sprintf("field %q without a value", e.Field.Name)
		default:
			return fmt.Sprintf("field %q has a value of unknown kind %q", e.Field.Name, string(k))
		}
	case StepCompleted:
		if e.Step == nil {
			return "a completed step without a name"
		}
	case ItemEnded:
		if m := momentOf(e); !m.whole && !m.failed {
			return fmt.Sprintf("it ends in an unknown way, %q", string(e.End))
		}
	default:
		return fmt.Sprintf("unknown kind of event %q", string(e.Kind))
	}
	return ""
}

// fault records a fault and spoils the checkpoints of its events.
func (f *folding) fault(what string, events ...Event) {
	t := Fault{Item: f.item.ID, What: what}
	for i := range events {
		t.Seq = events[i].Seq
		t.Events = append(t.Events, events[i].ID)
		t.Epochs = append(t.Epochs, events[i].Epoch)
		f.spoilt[events[i].Checkpoint] = true
	}
	if f.item.last == nil || f.item.last.Seq <= t.Seq {
		f.item.last = &t
	}
	if len(f.item.Faults) < MaxFaults {
		f.item.Faults = append(f.item.Faults, t)
	}
}

// checkpoint applies the events of a checkpoint unless one of them is at fault.
func (f *folding) checkpoint(events []Event, skip []bool) {
	if !f.spoilt[events[0].Checkpoint] {
		f.rehearse(events, skip)
	}
	for i := range events {
		if e := &events[i]; !skip[i] && (!f.spoilt[e.Checkpoint] || e.Kind == StepFailed) {
			f.apply(e)
		}
	}
}

// rehearse finds what cannot follow what is there.
func (f *folding) rehearse(events []Event, skip []bool) {
	ended, began := f.ended, f.began
	var set map[string]bool // fields as the checkpoint leaves them so far
	for i := range events {
		e := &events[i]
		switch {
		case skip[i]:
			continue
		case e.Kind == ItemCreated:
			if began && !ended && f.item.standing(e.Seq) == nil {
				f.fault("it is created again before it ended", *e)
			}
			began, ended, set = true, false, map[string]bool{}
			continue
		case !began && !f.told:
			f.told = true
			f.fault("there is no "+string(ItemCreated)+" before", *e)
			delete(f.spoilt, e.Checkpoint)
		case ended:
			f.fault(string(e.Kind)+" after the item ended", *e)
		}
		switch e.Kind {
		case ItemEnded:
			ended = momentOf(e).whole
		case FieldSet, FieldAppend:
			if set == nil {
				set = map[string]bool{}
			}
			f.mode(e, set)
		}
	}
}

// mode finds values that are appended to one that was set.
func (f *folding) mode(e *Event, set map[string]bool) {
	name := e.Field.Name
	was, ok := set[name]
	if !ok {
		if i, there := f.item.fields[name]; there {
			was = !f.item.Fields[i].Appended
		}
	}
	if e.Kind == FieldAppend && was {
		f.fault(fmt.Sprintf("a value is appended to field %q, which was set", name), *e)
	}
	set[name] = e.Kind == FieldSet
}

// finish brings what rests on all events up to date.
func (f *folding) finish() {
	it, l := &f.item, &f.life
	it.Status, it.Attempt, it.LastSeq = l.status(), l.attempt, l.last-1
	it.Updated = time.UnixMicro(l.lastAt).UTC()
	if it.created = l.created - 1; l.created > 0 {
		it.Created = time.UnixMicro(l.createdAt).UTC()
	}
}
