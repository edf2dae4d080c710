package datagencmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

// maxEventLine is the longest line of an event, in bytes: a blob in base64 fits.
const maxEventLine = 2 << 30

// appendFlags is the command line of datagen append.
type appendFlags struct {
	root, run string
	unordered bool
}

func (a *app) appendCmd() *cobra.Command {
	var f appendFlags
	c := &cobra.Command{
		Use:   "append LOG [FILE] [--run NAME] [--unordered] [--json]",
		Short: "Append events that are given as JSON, one a line",
		Long: `Append events that are given as JSON, one a line, from a file or from standard
input, as "foldlog cat" prints them; docs/format/datagen.md has the format. Lines
that follow one another with the same item_id and checkpoint_id are one batch: they
are durable together or not at all. event_id, root_item_id, run_id, event_ts and
schema_version may be left out; the writer_epoch is always that of this call. Lines
that say their event_ts may be appended again without any change; so a call whose
outcome is not known can be repeated.

The events of an item must come in the order of their sequences. With --unordered
they need not: all lines are read before the first is written. So
  foldlog cat --blobs A | foldlog datagen append B --unordered
makes B an equal of A; "foldlog cp" copies a whole log faster, and as it is.`,
		Example: "  foldlog datagen append digits/v1 events.jsonl",
		Args:    cmdline.Operands("LOG", "[FILE]"),
	}
	rootVar(c, &f.root)
	c.Flags().BoolVar(&f.unordered, "unordered", false, "take the events of an item in any order, after the input has ended")
	c.Flags().StringVar(&f.run, "run", "", "the `NAME` of the run that the writer says of itself (default: drawn at random)")
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		path, name := "-", "standard input"
		if len(args) > 1 && args[1] != path {
			path, name = args[1], args[1]
		}
		in, err := a.OpenInput(path)
		if err != nil {
			return failed("append", args[0], err)
		}
		defer in.Close()
		done, err := a.appendEvents(c.Context(), args[0], &f, &eventLines{in: in, name: name})
		switch {
		case err != nil && done.Events > 0:
			a.Notef("%s in %s were appended before", cli.Plural(done.Events, "event"), cli.Plural(done.Batches, "batch"))
			fallthrough
		case err != nil:
			return failed("append", args[0], err)
		case *asJSON:
			return cli.WriteJSON(a.Out(), done)
		}
		a.Notef("appended %s in %s", cli.Plural(done.Events, "event"), cli.Plural(done.Batches, "checkpoint"))
		return nil
	}
	return c
}

// AppendedEvents is the output of `foldlog datagen append --json`.
type AppendedEvents struct {
	Events  int64 `json:"events"`
	Batches int64 `json:"batches"` // checkpoints
}

func (a *app) appendEvents(ctx context.Context, arg string, f *appendFlags, lines *eventLines) (done AppendedEvents, err error) {
	ref, err := a.DatagenLog(ctx, arg, f.root)
	if err != nil {
		return done, err
	}
	outages := &outageTeller{note: a.Notef}
	l, err := ref.Open(ctx, datagen.Options{OnOutage: outages.tell})
	if err != nil {
		return done, err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{Run: f.run})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }()
	p := &appender{app: a, w: w, lines: lines, done: &done}
	events := lines.events()
	if f.unordered {
		events = datagen.ByItem(events)
		lines.at = nil // they are not told by then
	}
	for e, err := range events {
		if err == nil {
			err = p.event(ctx, e)
		}
		if err != nil {
			return done, err
		}
	}
	return done, p.flush(ctx)
}

// eventLines are events as lines of JSON.
type eventLines struct {
	in   io.Reader
	name string
	line int        // that was read last
	at   func() int // the number of the line of the event that was yielded last; nil if that is not known
}

func (l *eventLines) events() iter.Seq2[datagen.Event, error] {
	l.at = func() int { return l.line }
	return func(yield func(datagen.Event, error) bool) {
		lines := bufio.NewScanner(l.in)
		lines.Buffer(nil, maxEventLine)
		for lines.Scan() {
			if l.line++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			e, err := datagen.ParseEvent(lines.Bytes())
			if err != nil {
				err = fmt.Errorf("%s: line %d: %w", l.name, l.line, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(datagen.Event{}, fmt.Errorf("%s: line %d: %w", l.name, l.line+1, err))
		}
	}
}

// appender puts events together into batches.
type appender struct {
	*app
	w     *datagen.Writer
	lines *eventLines
	// first is the line of the first event of the batch, last that of the last.
	first, last int
	batch       []datagen.Event
	done        *AppendedEvents
}

func (p *appender) event(ctx context.Context, e datagen.Event) error {
	if n := len(p.batch); n > 0 && (p.batch[n-1].Item != e.Item || p.batch[n-1].Checkpoint != e.Checkpoint) {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if p.lines.at != nil {
		if p.last = p.lines.at(); len(p.batch) == 0 {
			p.first = p.last
		}
	}
	e.Epoch = ""
	p.batch = append(p.batch, e)
	return nil
}

// flush makes the batch durable.
func (p *appender) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	datagen.FillBatch(p.batch, p.Time())
	if err := p.w.Append(ctx, p.batch); err != nil {
		return p.failed(err)
	}
	p.done.Events += int64(len(p.batch))
	p.done.Batches++
	p.batch = p.batch[:0:0]
	return nil
}

// failed says which lines it is that could not be appended.
func (p *appender) failed(err error) error {
	var wrong *datagen.EventError
	switch {
	case p.lines.at == nil:
		return fmt.Errorf("%s: item %q, checkpoint %q: %w", p.lines.name, p.batch[0].Item, p.batch[0].Checkpoint, err)
	case errors.As(err, &wrong):
		return fmt.Errorf("%s: line %d: %w", p.lines.name, p.first+wrong.Index, err)
	}
	return fmt.Errorf("%s: lines %d to %d: %w", p.lines.name, p.first, p.last, err)
}
