package datagencmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"

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
		if key != "" && items == "" {
			return cli.Usagef("--key is of the lines of a file, which --items names")
		}
		return failed("resume", args[0], a.readLog(c.Context(), args[0], rootDir, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			r := &resumer{app: a, ctx: c.Context(), json: *asJSON, key: key}
			return r.run(v, items)
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
	ctx  context.Context
	json bool
	key  string // the field that is the key of the items
}

func (r *resumer) run(v *datagen.View, items string) error {
	if items != "" && items != "-" { // before the log, which takes longer
		if _, err := os.Stat(items); err != nil {
			return cli.Failed("open items", items, err)
		}
	}
	u, err := v.Unfinished(r.ctx)
	if err != nil {
		return err
	}
	defer u.Close()
	if items == "" {
		plans, err := r.begun(u)
		if err != nil {
			return err
		}
		return r.say(u.Classes().Roots(), plans)
	}
	return r.ofFile(u, items)
}

// begun are the plans for the roots of the log that are to be resumed, in the order in
// which they were created.
func (r *resumer) begun(u *datagen.Unfinished) ([]ResumePlan, error) {
	type created struct {
		at int64
		ResumePlan
	}
	var list []created
	for it, err := range u.Folds() {
		if err := cmp.Or(err, r.ctx.Err()); err != nil {
			return nil, err
		}
		if it.Parent == "" {
			list = append(list, created{datagen.ByCreation.Place(&datagen.ItemSummary{Created: it.Created}).Key, planOf(it)})
		}
	}
	slices.SortFunc(list, func(a, b created) int {
		return cmp.Or(cmp.Compare(a.at, b.at), datagen.CompareIDs(a.Item, b.Item), cmp.Compare(a.Item, b.Item))
	})
	plans := make([]ResumePlan, len(list))
	for i := range list {
		plans[i] = list[i].ResumePlan
	}
	return plans, nil
}

// ofFile tells the items of a file, in its order, those that would run as JSON as soon as
// they are read.
func (r *resumer) ofFile(u *datagen.Unfinished, path string) error {
	resumable := map[string]ResumePlan{}
	for it, err := range u.Folds() {
		if err := cmp.Or(err, r.ctx.Err()); err != nil {
			return err
		}
		resumable[it.ID] = planOf(it)
	}
	counts := map[datagen.Class]int{}
	var plans []ResumePlan
	err := cli.Buffered(r.Out(), func(w io.Writer) error {
		for key, err := range r.keys(path) {
			if err := cmp.Or(err, r.ctx.Err()); err != nil {
				return err
			}
			class := u.Classes().Of(key)
			plan := ResumePlan{Item: key, Class: class}
			if counts[class]++; class == datagen.Resumable {
				plan = resumable[key]
				plans = append(plans, plan)
			}
			if r.json && (class == datagen.Fresh || class == datagen.Resumable) {
				if err := cli.WriteJSONLine(w, plan); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || r.json {
		return err
	}
	return r.say(counts, plans)
}

// say prints how many items there are of each class, and the plans.
func (r *resumer) say(counts map[datagen.Class]int, plans []ResumePlan) error {
	if r.json {
		return cli.Buffered(r.Out(), func(w io.Writer) error {
			for _, p := range plans {
				if err := cli.WriteJSONLine(w, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := cli.WriteFields(r.Out(), [][2]string{
		{"fresh", cli.Count(int64(counts[datagen.Fresh]))}, {"to be resumed", cli.Count(int64(counts[datagen.Resumable]))},
		{"completed", cli.Count(int64(counts[datagen.Finished]))}, {"filtered", cli.Count(int64(counts[datagen.Filtered]))},
	}...)
	if err != nil || len(plans) == 0 {
		return err
	}
	fmt.Fprintln(r.Out())
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "GOES ON AFTER"}, cli.Column{Title: "STEPS DONE", Align: cli.Right}, cli.Column{Title: "FAILED WITH"})
	t.Bold = r.Color()
	_, err = t.Stream(r.Out(), func(yield func([]string, error) bool) {
		for _, p := range plans {
			if !yield([]string{p.Item, cmp.Or(p.After, "(the beginning)"), cli.Count(int64(p.Steps)), cli.Shorten(p.Failure, 80)}, nil) {
				return
			}
		}
	})
	return err
}

// planOf is where an item goes on. It keeps nothing of the item but its texts.
func planOf(it *datagen.Item) ResumePlan {
	plan := ResumePlan{Item: it.ID, Class: datagen.Resumable, Steps: len(it.Steps)}
	if it.Cursor != nil {
		plan.After = cmp.Or(it.Cursor.Instance, it.Cursor.Name)
	}
	if f := it.Failure(); f != nil {
		plan.Failure = datagenview.FailureText(f.Failure)
	}
	return plan
}

// keys are those of the items of a file.
func (r *resumer) keys(path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		in, err := r.OpenInput(path)
		if err != nil {
			yield("", cli.Failed("open items", path, err))
			return
		}
		defer in.Close()
		for s, err := range pipefile.Sources(path, in, filepath.Dir(path), r.key) {
			if !yield(s.Key, err) || err != nil {
				return
			}
		}
	}
}
