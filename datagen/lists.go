package datagen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Filter selects items. The zero value is all of them.
type Filter struct {
	// Status, if there, are the states of which an item must have one.
	Status []Status
	// Tags must all be among the item's tags; a value is compared as text, or as JSON
	// where it is none.
	Tags map[string]string
	// Root, Step and ErrorType, if not empty, are the item's root, the step that it
	// completed last, and the type of the failure that it stands at.
	Root, Step, ErrorType string
	// Prefix is what the item's identity begins with.
	Prefix string
	// Suspect asks for items whose events may contradict each other.
	Suspect bool
}

func (f *Filter) match(s *ItemSummary) bool {
	return (len(f.Status) == 0 || slices.Contains(f.Status, s.Status)) &&
		(f.Root == "" || f.Root == s.Root) && (f.Step == "" || f.Step == s.Step) &&
		(f.ErrorType == "" || f.ErrorType == s.ErrorType) && strings.HasPrefix(s.ID, f.Prefix) &&
		(!f.Suspect || s.Suspect) && f.tagged(s.Tags)
}

func (f *Filter) tagged(raw json.RawMessage) bool {
	if len(f.Tags) == 0 {
		return true
	}
	var tags map[string]json.RawMessage
	if json.Unmarshal(raw, &tags) != nil {
		return false
	}
	for k, want := range f.Tags {
		v, ok := tags[k]
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		if !ok || s != want {
			return false
		}
	}
	return true
}

// Summary sums up all items in one pass. Memory is what a Summary keeps of each.
func (v *View) Summary(ctx context.Context) (*Summary, error) {
	s := NewSummary()
	err := v.each(ctx, SummaryColumns, func(e *Event) bool { s.AddEvent(e); return true }, s.Add)
	if err != nil {
		return nil, fmt.Errorf("sum up log: %w", err)
	}
	return s, nil
}

// Overview is the log at a glance.
func (v *View) Overview(ctx context.Context) (Overview, error) {
	s, err := v.Summary(ctx)
	if err != nil {
		return Overview{}, err
	}
	return s.Overview(), nil
}

// Items yields the items that a filter selects, each once, in the order in which their
// creations lie. Memory is that of a Summary.
func (v *View) Items(ctx context.Context, f Filter) iter.Seq2[ItemSummary, error] {
	return func(yield func(ItemSummary, error) bool) {
		sum, err := v.Summary(ctx)
		if err != nil {
			yield(ItemSummary{}, err)
			return
		}
		l := &lister{sum: sum, filter: f, yield: yield}
		l.created = true
		if err = l.pass(ctx, v); err == nil && l.n < sum.Len() {
			l.created = false // what was never created
			err = l.pass(ctx, v)
		}
		if err != nil && !errors.Is(err, errEnough) {
			yield(ItemSummary{}, fmt.Errorf("list items: %w", err))
		}
	}
}

// lister is a second pass, which has the texts that a summary does not keep.
type lister struct {
	sum     *Summary
	filter  Filter
	yield   func(ItemSummary, error) bool
	created bool
	n       int
}

func (l *lister) pass(ctx context.Context, v *View) error {
	return v.each(ctx, listColumns, func(e *Event) bool { return l.event(e) == nil }, func(rec arrow.RecordBatch) error {
		for e, err := range Decode(rec) {
			if err == nil {
				err = l.event(&e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func listColumns(table *arrow.Schema) []string {
	return pick(table, func(i int) bool {
		switch i {
		case colItem, colRoot, colParent, colSeq, colKind, colTags, colTime, colVersion:
			return true
		}
		return false
	})
}

func (l *lister) event(e *Event) error {
	if l.created {
		if e.Kind != ItemCreated {
			return nil
		}
		if s, ok := l.sum.Item(e.Item); !ok || !s.Created.Equal(e.Time) {
			return nil // created again later
		}
	}
	s, ok := l.sum.Visit(e.Item)
	if !ok {
		return nil
	}
	l.n++
	s.Root, s.Parent, s.Tags = e.Root, e.Parent, e.Tags
	if l.filter.match(&s) && !l.yield(s, nil) {
		return errEnough
	}
	return nil
}

// ItemFailed is a failure with its item.
type ItemFailed struct {
	Item string
	ItemFailure
}

// Failures yields every failure, of all attempts, in the order in which they lie: of
// one item, or, if it is empty, of all.
func (v *View) Failures(ctx context.Context, item string) iter.Seq2[ItemFailed, error] {
	return func(yield func(ItemFailed, error) bool) {
		if item != "" {
			it, err := v.Item(ctx, item, AsOf{})
			if err != nil {
				yield(ItemFailed{}, err)
				return
			}
			for _, f := range it.Failures {
				if !yield(ItemFailed{item, f}, nil) {
					return
				}
			}
			return
		}
		for e, err := range v.All(ctx) {
			if err != nil {
				yield(ItemFailed{}, err)
				return
			}
			if e.Failure != nil && !yield(ItemFailed{e.Item, ItemFailure{*e.Failure, origin(&e)}}, nil) {
				return
			}
		}
	}
}

// Classes passes over the log and tells what is to be done about any key: fresh,
// resumable, finished, filtered. Memory is what Classes keeps of each item.
func (v *View) Classes(ctx context.Context) (*Classes, error) {
	c := new(Classes)
	err := v.each(ctx, ClassColumns, func(e *Event) bool { c.AddEvent(e); return true }, c.Add)
	if err != nil {
		return nil, fmt.Errorf("classify items: %w", err)
	}
	return c, nil
}

// Classify yields every key with its class, in one pass over the log.
func (v *View) Classify(ctx context.Context, keys iter.Seq[string]) iter.Seq2[Classified, error] {
	return func(yield func(Classified, error) bool) {
		c, err := v.Classes(ctx)
		if err != nil {
			yield(Classified{}, err)
			return
		}
		for k := range keys {
			if !yield(Classified{k, c.Of(k)}, nil) {
				return
			}
		}
	}
}

// Classified is a key with its class.
type Classified struct {
	Key   string
	Class Class
}
