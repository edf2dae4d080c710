package datagen_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/objstore"
)

// An item goes through two steps, each durable once its Checkpoint returns, and is read
// back with where its fields come from. OpenRoot gives a directory or a bucket in the
// place of the store in memory.
func Example() {
	ctx := context.Background()
	l, err := datagen.OpenOrCreate(ctx, objstore.NewMemory(), "digits", "v1", datagen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{Run: "run-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	s, err := w.Open(ctx, "digit-7", datagen.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	draw := datagen.Step{Name: "draw", Instance: "draw"}
	err = s.Checkpoint(ctx, draw, []datagen.Change{datagen.Set("label", datagen.IntValue(7))})
	if err != nil {
		log.Fatal(err)
	}
	score := datagen.Step{Name: "score", Index: 1, Instance: "score"}
	err = s.CheckpointEnd(ctx, score, []datagen.Change{datagen.Set("confidence", datagen.FloatValue(0.93))}, datagen.EndCompleted)
	if err != nil {
		log.Fatal(err)
	}
	view, err := l.View(ctx)
	if err != nil {
		log.Fatal(err)
	}
	it, err := view.Item(ctx, "digit-7", datagen.AsOf{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(it.ID, it.Status)
	for _, f := range it.Fields {
		v := f.Value()
		fmt.Printf("%s = %s, by step %s\n", f.Name, datagen.AppendValue(nil, &v), f.Values[0].From.Step.Name)
	}
	// Output:
	// digit-7 completed
	// label = 7, by step draw
	// confidence = 0.93, by step score
}

// What a writer leaves behind the next one goes on with: steps that are done are passed
// over.
func ExampleWriter_Open() {
	ctx := context.Background()
	l, err := datagen.OpenOrCreate(ctx, objstore.NewMemory(), "digits", "v1", datagen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	work := func(steps ...string) {
		w, err := l.NewWriter(ctx, datagen.WriterOptions{})
		if err != nil {
			log.Fatal(err)
		}
		defer w.Close(ctx)
		s, err := w.Open(ctx, "digit-7", datagen.CreateOptions{})
		if err != nil {
			log.Fatal(err)
		}
		for i, name := range steps {
			if s.Item().Done(name) {
				fmt.Println("passed over:", name)
				continue
			}
			step := datagen.Step{Name: name, Index: int64(i), Instance: name}
			if err := s.Checkpoint(ctx, step, nil); err != nil {
				log.Fatal(err)
			}
			fmt.Println("done:", name)
		}
	}
	work("draw")          // and then the process ends
	work("draw", "score") // the next one resumes
	// Output:
	// done: draw
	// passed over: draw
	// done: score
}

// Workers share a list of items: each is handed out once, whichever machine asks.
func ExampleWriter_Claims() {
	ctx := context.Background()
	l, err := datagen.OpenOrCreate(ctx, objstore.NewMemory(), "digits", "v1", datagen.Options{})
	if err != nil {
		log.Fatal(err)
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close(ctx)
	claims, err := w.Claims(ctx, []string{"digit-7", "digit-8"}, datagen.ClaimsOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for {
		s, err := claims.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := s.End(ctx, datagen.EndCompleted); err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.ID())
	}
	// Output:
	// digit-7
	// digit-8
}

// Fold is pure: the same events, in any order and however often, make the same item.
func ExampleFold() {
	var events []datagen.Event
	for _, line := range []string{
		`{"item_id":"digit-7","item_seq":1,"checkpoint_id":"b","event_type":"FIELD_SET","step_name":"draw","step_instance_id":"draw","field_name":"label","field_type":"int","value_kind":"int","value":7}`,
		`{"item_id":"digit-7","item_seq":2,"checkpoint_id":"b","event_type":"STEP_COMPLETED","step_name":"draw","step_instance_id":"draw"}`,
		`{"item_id":"digit-7","item_seq":0,"checkpoint_id":"a","event_type":"ITEM_CREATED"}`,
	} {
		e, err := datagen.ParseEvent([]byte(line))
		if err != nil {
			log.Fatal(err)
		}
		e.ID, e.Root = fmt.Sprintf("event-%d", e.Seq), e.Item
		events = append(events, e)
	}
	it := datagen.Fold(append(events, events...))
	label, _ := it.Field("label")
	fmt.Println(it.Status, it.Cursor.Name, label.Value().Int, it.Err())
	// Output: running draw 7 <nil>
}
