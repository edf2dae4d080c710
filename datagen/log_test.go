package datagen

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// steady are options under which writers live on beside each other, however long a busy
// machine lets one of them stand still.
var steady = Options{LeaseTerm: 5 * time.Minute, RetryFor: 5 * time.Minute}

// quick are options of writers that die, or have no others beside them: they are soon
// taken for dead.
var quick = Options{LeaseTerm: 400 * time.Millisecond, RetryFor: 5 * time.Minute}

func newLog(t testing.TB, s objstore.Store) *Log {
	t.Helper()
	return logWith(t, s, steady)
}

func logWith(t testing.TB, s objstore.Store, opts Options) *Log {
	t.Helper()
	l, err := OpenOrCreate(t.Context(), s, "digits", "first", opts)
	check(t, err)
	return l
}

func newWriter(t testing.TB, l *Log) *Writer {
	t.Helper()
	w, err := l.NewWriter(t.Context(), WriterOptions{Run: "run"})
	check(t, err)
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w
}

func step(i int) Step {
	return Step{Name: fmt.Sprintf("step-%d", i), Index: int64(i), Instance: fmt.Sprintf("step-%d", i)}
}

func set(name string, v int64) Change {
	return Change{Field: Field{Name: name, Type: "int", Codec: 1, Value: Value{Kind: Int, Int: v}}}
}

func TestAnItemIsResumedWhereItEnded(t *testing.T) {
	l := newLog(t, objstore.NewMemory())
	w := newWriter(t, l)
	s, err := w.Open(t.Context(), "a", CreateOptions{Tags: []byte(`{"k":"v"}`)})
	check(t, err)
	check(t, s.Checkpoint(t.Context(), step(0), []Change{set("x", 1)}))
	check(t, s.Checkpoint(t.Context(), step(1), []Change{set("x", 2)}))
	if _, err := w.Open(t.Context(), "a", CreateOptions{}); !errors.Is(err, ErrHeld) {
		t.Fatalf("opened twice: %v", err)
	}
	other := newWriter(t, l)
	if _, err := other.Open(t.Context(), "a", CreateOptions{}); !errors.Is(err, ErrHeld) {
		t.Fatalf("opened by another: %v", err)
	}
	check(t, w.Close(t.Context()))
	s, err = other.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	if it := s.Item(); !it.Done("step-1") || it.LastSeq != 4 {
		t.Errorf("item %+v", it)
	}
	check(t, s.CheckpointEnd(t.Context(), step(2), []Change{set("x", 3)}, EndCompleted))
	if _, err := other.Open(t.Context(), "a", CreateOptions{}); !errors.Is(err, ErrEnded) {
		t.Fatalf("opened after its end: %v", err)
	}
	v, err := l.View(t.Context())
	check(t, err)
	it, err := v.Item(t.Context(), "a", AsOf{})
	check(t, err)
	if it.Status != StatusCompleted || len(it.Epochs) != 2 || len(it.Faults) != 0 {
		t.Errorf("item %+v", it)
	}
	for info, err := range l.coord.List(t.Context(), objstore.ListOptions{Prefix: claimsDir}) {
		check(t, err)
		t.Errorf("claim file %s is left", info.Key)
	}
}

// TestAWriterAppendsToNoValueThatWasSet would put the item at fault for good.
func TestAWriterAppendsToNoValueThatWasSet(t *testing.T) {
	l := newLog(t, objstore.NewMemory())
	w := newWriter(t, l)
	s, err := w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	if err := s.Checkpoint(t.Context(), step(0), []Change{set("x", 1), Append("x", IntValue(2))}); !errors.Is(err, ErrEvent) {
		t.Errorf("in one checkpoint: %v", err)
	}
	check(t, s.Checkpoint(t.Context(), step(0), []Change{Append("x", IntValue(2)), set("x", 1), set("y", 1)}))
	if err := s.Checkpoint(t.Context(), step(1), []Change{Append("y", IntValue(2))}); !errors.Is(err, ErrEvent) {
		t.Errorf("in the next checkpoint: %v", err)
	}
	check(t, s.Checkpoint(t.Context(), step(1), []Change{set("y", 2)}))
	v, err := l.View(t.Context())
	check(t, err)
	it, err := v.Item(t.Context(), "a", AsOf{})
	check(t, err)
	if len(it.Faults) > 0 || len(it.Steps) != 2 {
		t.Errorf("%+v", it)
	}
	check(t, s.End(t.Context(), EndCompleted))
	s, err = w.Open(t.Context(), "a", CreateOptions{Rerun: true})
	check(t, err)
	check(t, s.Checkpoint(t.Context(), step(0), []Change{Append("y", IntValue(1))})) // a re-run has no fields
	raw := []Event{{Item: "b", Checkpoint: "c", Kind: ItemCreated}, {Item: "b", Seq: 1, Checkpoint: "c", Kind: FieldSet}, {Item: "b", Seq: 2, Checkpoint: "c", Kind: FieldAppend}, {Item: "b", Seq: 3, Checkpoint: "c", Kind: StepCompleted}}
	st, x := step(0), set("x", 1)
	for i := range raw[1:] {
		raw[i+1].Step = &st
		if raw[i+1].Kind != StepCompleted {
			raw[i+1].Field = &x.Field
		}
	}
	if err := w.Append(t.Context(), raw); !errors.Is(err, ErrEvent) {
		t.Errorf("given events: %v", err)
	}
}
