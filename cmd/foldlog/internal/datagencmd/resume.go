package datagencmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline/pipefile"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/logkind"
)

func (a *app) resumeCmd() *cobra.Command {
	var rootDir, items, key string
	c := &cobra.Command{
		Use:   "resume LOG [--items FILE.jsonl [--key FIELD]] [--json]",
		Short: "Say what the next run would do, and from where",
		Long: `Say what the next run would do, and from where. Nothing is run or written. With
--items the items of that file are told apart: fresh ones, those to be resumed, and
those that have ended; without, all items of the log that have not ended are listed.`,
		Example: "  foldlog datagen resume digits/v1 --items digits.jsonl",
		Args:    cmdline.Operands("LOG"),
	}
	rootVar(c, &rootDir)
	c.Flags().StringVar(&items, "items", "", "a `FILE` with an item a line, - for standard input")
	c.Flags().StringVar(&key, "key", "", "lines of items are the fields themselves, and `FIELD` is the key")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each item that would run")
	c.RunE = func(c *cobra.Command, args []string) error {
		return failed("resume", args[0], a.readLog(c.Context(), args[0], rootDir, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			r := &resumer{app: a, ctx: c.Context(), v: v, json: *asJSON, key: key}
			return r.run(items)
		}))
	}
	return c
}

// ResumePlan is a line of `foldlog datagen resume --json`.
type ResumePlan struct {
	Item    string        `json:"item"`
	Class   datagen.Class `json:"class"`   // fresh or resumable
	After   string        `json:"after"`   // the instance of the last step that is complete, "" if there is none
	Steps   int           `json:"steps"`   // that are complete and are passed over
	Failure string        `json:"failure"` // that it stands at, "" if it has not failed
}

// resumer says what would run.
type resumer struct {
	*app
	ctx    context.Context
	v      *datagen.View
	json   bool
	key    string // the field that is the key of the items
	counts map[datagen.Class]int
}

func (r *resumer) run(items string) error {
	r.counts = map[datagen.Class]int{}
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "GOES ON AFTER"}, cli.Column{Title: "STEPS DONE", Align: cli.Right}, cli.Column{Title: "FAILED WITH"})
	t.Bold = r.Color()
	var fault error
	for c, err := range r.classes(items, &fault) {
		if err != nil {
			return err
		}
		if r.counts[c.Class]++; c.Class != datagen.Fresh && c.Class != datagen.Resumable {
			continue
		}
		plan, err := r.plan(c)
		if err != nil {
			return err
		}
		if r.json {
			if err := cli.WriteJSONLine(r.Out(), plan); err != nil {
				return err
			}
		} else if c.Class == datagen.Resumable {
			t.Row(plan.Item, cmp.Or(plan.After, "(the beginning)"), cli.Count(int64(plan.Steps)), cli.Shorten(plan.Failure, 80))
		}
	}
	if fault != nil || r.json {
		return fault
	}
	return cli.Buffered(r.Out(), func(w io.Writer) error { return r.print(w, t) })
}

func (r *resumer) print(w io.Writer, t *cli.Table) error {
	err := cli.WriteFields(w, [][2]string{
		{"fresh", cli.Count(int64(r.counts[datagen.Fresh]))}, {"to be resumed", cli.Count(int64(r.counts[datagen.Resumable]))},
		{"completed", cli.Count(int64(r.counts[datagen.Finished]))}, {"filtered", cli.Count(int64(r.counts[datagen.Filtered]))},
	}...)
	if err != nil || t.Len() == 0 {
		return err
	}
	fmt.Fprintln(w)
	return t.Write(w)
}

// plan is where an item goes on.
func (r *resumer) plan(c datagen.Classified) (ResumePlan, error) {
	plan := ResumePlan{Item: c.Key, Class: c.Class}
	if c.Class == datagen.Fresh {
		return plan, nil
	}
	it, err := r.v.Item(r.ctx, c.Key, datagen.AsOf{})
	if err != nil {
		return plan, err
	}
	plan.Steps = len(it.Steps)
	if it.Cursor != nil {
		plan.After = cmp.Or(it.Cursor.Instance, it.Cursor.Name)
	}
	if f := it.Failure(); f != nil {
		plan.Failure = datagenview.FailureText(f.Failure)
	}
	return plan, nil
}

// classes are the items of a file, or else the roots of the log, with what is to be
// done about them. Fault is set if the file is wrong.
func (r *resumer) classes(items string, fault *error) iter.Seq2[datagen.Classified, error] {
	if items != "" {
		return r.v.Classify(r.ctx, r.keys(items, fault))
	}
	return func(yield func(datagen.Classified, error) bool) {
		for s, err := range r.v.Items(r.ctx, datagen.ItemQuery{Roots: true}) {
			class := datagen.Resumable
			switch s.Status {
			case datagen.StatusCompleted:
				class = datagen.Finished
			case datagen.StatusFiltered:
				class = datagen.Filtered
			}
			if !yield(datagen.Classified{Key: s.ID, Class: class}, err) {
				return
			}
		}
	}
}

func (r *resumer) keys(path string, fault *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		in, dir, err := r.openItems(path)
		if err != nil {
			*fault = cli.Failed("open items", path, err)
			return
		}
		defer in.Close()
		for s, err := range pipefile.Sources(path, in, dir, r.key) {
			if err != nil {
				*fault = err
				return
			}
			if !yield(s.Key) {
				return
			}
		}
	}
}
