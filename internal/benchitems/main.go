// Command benchitems makes a datagen log of very many items in the time that it
// takes to write their rows: what a pipeline leaves behind after weeks, for the
// benchmarks of what reads it.
package main

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/datagen"
)

func main() {
	root := flag.String("root", ".", "the `directory` that holds datagen_checkpoints")
	name := flag.String("experiment", "one", "the `name` of the experiment of the pipeline big")
	items := flag.Int("items", 1_000_000, "how many items")
	flag.Parse()
	if err := run(context.Background(), *root, *name, *items); err != nil {
		fmt.Fprintln(os.Stderr, "benchitems:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, experiment string, items int) error {
	store, err := datagen.OpenRoot(root)
	if err != nil {
		return err
	}
	log, err := datagen.OpenOrCreate(ctx, store, "big", experiment, datagen.Options{})
	if err != nil {
		return err
	}
	table, err := log.Table().Base(ctx)
	if err != nil {
		return err
	}
	if _, err := table.Append(ctx, rows(items, time.Now().Add(-time.Duration(items)*each))); err != nil {
		return err
	}
	_, err = log.MaintainOnce(ctx, datagen.MaintainOptions{All: true, Rate: -1})
	return err
}

// each is the time between the beginnings of two items.
const each = 50 * time.Millisecond

// rows are the events of all items, in batches.
func rows(items int, begin time.Time) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		const batch = 4096
		m := maker{r: rand.New(rand.NewPCG(1, 2))}
		for lo := 0; lo < items; lo += batch {
			m.events = m.events[:0]
			for i := lo; i < min(lo+batch, items); i++ {
				m.item(i, items, begin.Add(time.Duration(i)*each))
			}
			rec, err := datagen.Record(m.events)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

type maker struct {
	r      *rand.Rand
	events []datagen.Event
	// of the item that is being made
	id  string
	at  time.Time
	seq int64
}

var names = []string{"load", "rewrite", "judge"}

// item goes through the steps: some fail, are filtered, or have not ended.
func (m *maker) item(i, of int, at time.Time) {
	m.id, m.at, m.seq = fmt.Sprintf("doc-%07d", i), at, 0
	created := datagen.Event{Kind: datagen.ItemCreated}
	if i%3 == 0 {
		created.Tags = fmt.Appendf(nil, `{"lang":%q}`, []string{"de", "en", "fr", "ja"}[i%4])
	}
	m.checkpoint(created)
	for k, name := range names {
		if i >= of-of/100 && m.r.IntN(3) == 0 {
			return // at work
		}
		step := datagen.Step{Name: name, Index: int64(k), Instance: name}
		if m.r.IntN(40) == 0 {
			m.checkpoint(datagen.Event{Kind: datagen.StepFailed, Step: &step, Failure: &datagen.Failure{
				Type: []string{"TimeoutError", "ValueError", "RateLimitError"}[m.r.IntN(3)], Traceback: "File \"pipeline.py\", line 41, in " + name}})
			return
		}
		done := datagen.Event{Kind: datagen.StepCompleted, Step: &step}
		if name != "rewrite" {
			m.checkpoint(done)
			continue
		}
		field := datagen.Field{Name: "text", Type: "str", Codec: 1, Value: datagen.StrValue(m.id + ", written anew")}
		m.checkpoint(datagen.Event{Kind: datagen.FieldSet, Step: &step, Field: &field}, done)
	}
	end := datagen.EndCompleted
	if m.r.IntN(5) == 0 {
		end = datagen.EndFiltered
	}
	m.checkpoint(datagen.Event{Kind: datagen.ItemEnded, End: end})
}

func (m *maker) checkpoint(events ...datagen.Event) {
	m.at = m.at.Add(time.Duration(200+m.r.IntN(2000)) * time.Millisecond)
	checkpoint := fmt.Sprintf("%s-%d", m.id[4:], m.seq)
	for k, e := range events {
		e.ID, e.Item, e.Root, e.Checkpoint, e.Seq = datagen.EventID(m.id, checkpoint, k), m.id, m.id, checkpoint, m.seq
		e.Run, e.Epoch, e.Time, e.Schema = "bench", "0f0e0d0c-0b0a-4908-8706-050403020100.1.1", m.at.UTC().Truncate(time.Microsecond), datagen.SchemaVersion
		m.events = append(m.events, e)
		m.seq++
	}
}
