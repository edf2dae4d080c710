package datagen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/memwal"
)

// Filter selects items. The zero value is all of them.
type Filter struct {
	// Status, if not empty, are the states that an item may be in.
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

// Overview is the log at a glance, after one pass over the columns that tell it. Memory
// does not follow the log: what is too much goes into a temporary file.
func (v *View) Overview(ctx context.Context) (Overview, error) {
	t := newTally(v.log.most.tallied)
	defer t.close()
	err := v.pass(ctx, SummaryColumns, t.event, t.batch)
	if err == nil {
		var o Overview
		if o, err = t.overview(); err == nil {
			return o, nil
		}
	}
	return Overview{}, fmt.Errorf("sum up log: %w", err)
}

// Items yields the items that a query asks for, in its order, after one pass over the
// log. Memory does not follow the log: what is too much goes into a temporary file.
func (v *View) Items(ctx context.Context, q ItemQuery) iter.Seq2[ItemSummary, error] {
	return func(yield func(ItemSummary, error) bool) {
		p := v.log.newParts()
		defer p.close()
		list := sorter{order: q.Order, most: v.log.most.sorted}
		defer list.close()
		err := v.each(ctx, indexColumns, p.add)
		if err == nil {
			err = p.each(func(events iter.Seq2[Event, error]) error { return v.log.listPart(events, q, &list) })
		}
		if err != nil {
			yield(ItemSummary{}, fmt.Errorf("list items: %w", err))
			return
		}
		n := 0
		for s, err := range list.all() {
			if !yield(s, err) || err != nil {
				return
			}
			if n++; n == q.Limit {
				return
			}
		}
	}
}

// listPart adds the items of a part that a query asks for to a list.
func (l *Log) listPart(events iter.Seq2[Event, error], q ItemQuery, list *sorter) error {
	x := l.NewIndex()
	for e, err := range events {
		if err != nil {
			return err
		}
		x.event(&e)
	}
	items, _ := x.List(q)
	for i := range items {
		if err := list.add(items[i]); err != nil {
			return err
		}
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
		err := v.failed(ctx, func(e *Event) error {
			if e.Failure != nil && !yield(ItemFailed{e.Item, ItemFailure{*e.Failure, origin(e)}}, nil) {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(ItemFailed{}, fmt.Errorf("list failures: %w", err))
		}
	}
}

// failed passes over the events of the kinds that may be failures. Of other rows only
// the kind is read.
func (v *View) failed(ctx context.Context, take func(*Event) error) error {
	p := newPass(v, LightColumns, take, func(rec arrow.RecordBatch) error { return decodeAll(rec, take) })
	p.kinds = []Kind{StepFailed}
	if schema := v.state().Base().Schema(); schema.HasField(fields[colStatus].Name) {
		p.kinds = append(p.kinds, ItemEnded) // which may be a failure in version 2
	}
	return v.held(ctx, func(m *memwal.View) error { return p.run(ctx, m) })
}

// Classes passes over the log and tells what is to be done about any key: fresh,
// resumable, finished, filtered. Memory is what Classes keeps of each item.
func (v *View) Classes(ctx context.Context) (*Classes, error) {
	c := new(Classes)
	err := v.pass(ctx, ClassColumns, func(e *Event) error { c.AddEvent(e); return nil }, c.Add)
	if err != nil {
		return nil, fmt.Errorf("classify items: %w", err)
	}
	return c, nil
}
