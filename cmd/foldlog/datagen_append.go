package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

// maxEventLine is the longest line of an event, in bytes: a blob in base64 fits.
const maxEventLine = 2 << 30

func (a *app) datagenAppendCmd() *cobra.Command {
	var rootDir, run string
	c := &cobra.Command{
		Use:   "append LOG [FILE] [--run NAME] [--json]",
		Short: "Append events that are given as JSON, one a line",
		Long: `Append events that are given as JSON, one a line, from a file or from standard
input, as "foldlog cat" prints them; docs/format/datagen.md has the format. Lines
that follow one another with the same item_id and checkpoint_id are one batch: they
are durable together or not at all. event_id, root_item_id, run_id, event_ts and
schema_version may be left out, and writer_epoch must be. Lines that say their event_ts may be appended again
without any change; so a call whose outcome is not known can be repeated.`,
		Example: "  foldlog datagen append digits/v1 events.jsonl",
		Args:    operands("LOG", "[FILE]"),
	}
	c.Flags().StringVar(&rootDir, "root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
	c.Flags().StringVar(&run, "run", "", "the `NAME` of the run that the writer says of itself (default: drawn at random)")
	asJSON := jsonFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		in, name, err := a.appendInput(args)
		if err != nil {
			return datagenFailed("append", args[0], err)
		}
		defer in.Close()
		done, err := a.appendEvents(c.Context(), args[0], rootDir, run, in, name)
		switch {
		case err != nil && done.Events > 0:
			a.Notef("%s in %s were appended before", plural(done.Events, "event"), plural(done.Batches, "batch"))
			fallthrough
		case err != nil:
			return datagenFailed("append", args[0], err)
		case *asJSON:
			return cli.WriteJSON(a.Out(), done)
		}
		a.Notef("appended %s in %s", plural(done.Events, "event"), plural(done.Batches, "checkpoint"))
		return nil
	}
	return c
}

func (a *app) appendInput(args []string) (io.ReadCloser, string, error) {
	if len(args) < 2 || args[1] == "-" {
		if a.Stdin == nil {
			return nil, "", errors.New("there is no standard input")
		}
		return io.NopCloser(a.Stdin), "standard input", nil
	}
	f, err := os.Open(args[1])
	return f, args[1], err
}

// appendedEvents is the output of `foldlog datagen append --json`.
type appendedEvents struct {
	Events  int64 `json:"events"`
	Batches int64 `json:"batches"` // checkpoints
}

func (a *app) appendEvents(ctx context.Context, arg, root, run string, in io.Reader, name string) (done appendedEvents, err error) {
	ref, err := a.logRef(arg, root)
	if err != nil {
		return done, err
	}
	outages := &outageTeller{note: a.Notef}
	l, err := ref.open(ctx, datagen.Options{OnOutage: outages.tell})
	if err != nil {
		return done, err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{Run: run})
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, w.Close(context.WithoutCancel(ctx))) }()
	p := &appender{app: a, w: w, name: name, done: &done}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxEventLine)
	for lines.Scan() {
		if p.line++; len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := p.event(ctx, lines.Bytes()); err != nil {
			return done, err
		}
	}
	if err := lines.Err(); err != nil {
		return done, fmt.Errorf("%s: line %d: %w", name, p.line+1, err)
	}
	return done, p.flush(ctx)
}

// appender puts lines together into batches.
type appender struct {
	*app
	w     *datagen.Writer
	name  string
	line  int
	first int // the line of the first event of the batch
	batch []datagen.Event
	done  *appendedEvents
}

func (p *appender) event(ctx context.Context, line []byte) error {
	e, err := datagen.ParseEvent(line)
	if err != nil {
		return fmt.Errorf("%s: line %d: %w", p.name, p.line, err)
	}
	if n := len(p.batch); n > 0 && (p.batch[n-1].Item != e.Item || p.batch[n-1].Checkpoint != e.Checkpoint) {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	if len(p.batch) == 0 {
		p.first = p.line
	}
	p.batch = append(p.batch, e)
	return nil
}

// flush makes the batch durable.
func (p *appender) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}
	datagen.FillBatch(p.batch, p.Time())
	err := p.w.Append(ctx, p.batch)
	var wrong *datagen.EventError
	if errors.As(err, &wrong) {
		return fmt.Errorf("%s: line %d: %w", p.name, p.first+wrong.Index, err)
	}
	if err != nil {
		return fmt.Errorf("%s: lines %d to %d: %w", p.name, p.first, p.first+len(p.batch)-1, err)
	}
	p.done.Events += int64(len(p.batch))
	p.done.Batches++
	p.batch = p.batch[:0:0]
	return nil
}
