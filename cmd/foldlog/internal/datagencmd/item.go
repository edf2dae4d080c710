package datagencmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/serde"
)

// itemOptions are the flags of datagen item.
type itemOptions struct {
	root, asOf       string
	trajectory, tree bool
	json             bool
}

func (a *app) itemCmd() *cobra.Command {
	var o itemOptions
	c := &cobra.Command{
		Use:   "item LOG ITEM [--trajectory] [--tree] [--as-of TIME|CHECKPOINT|SEQ] [--json]",
		Short: "Show an item: its fields, steps and failures",
		Long: `Show what the events of an item fold into: status, fields with where they come
from, the steps that are complete, failures. --trajectory shows how it came about,
checkpoint by checkpoint; --tree shows it with its sub-items. --as-of shows it as it
was at a moment: a time (2026-01-31T12:00:00Z), a checkpoint's identity, or a
sequence number.`,
		Example: "  foldlog datagen item digits/v1 digit-7 --trajectory",
		Args:    cmdline.Operands("LOG", "ITEM"),
	}
	f := c.Flags()
	f.StringVar(&o.root, "root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
	f.BoolVar(&o.trajectory, "trajectory", false, "show the checkpoints, and what each changed")
	f.BoolVar(&o.tree, "tree", false, "show the item and its sub-items")
	f.StringVar(&o.asOf, "as-of", "", "show the item as it was at `MOMENT`")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		var at datagen.AsOf
		if o.asOf != "" {
			var err error
			if at, err = datagen.ParseAsOf(o.asOf); err != nil {
				return cli.Usagef("--as-of %q: %v", o.asOf, err)
			}
		}
		return failed("item", args[0], a.readLog(c.Context(), args[0], o.root, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			return noItemHint(a.showItem(c.Context(), v, args[1], at, &o))
		}))
	}
	return c
}

func (a *app) showItem(ctx context.Context, v *datagen.View, id string, at datagen.AsOf, o *itemOptions) error {
	it, err := v.Item(ctx, id, at)
	if err != nil {
		return err
	}
	shown := datagenview.ItemOf(it)
	if o.trajectory {
		events, err := v.Events(ctx, id)
		if err == nil {
			events, err = at.Cut(events)
		}
		if err != nil {
			return err
		}
		shown.Trajectory = datagenview.TrajectoryOf(datagen.Trajectory(events))
	}
	if o.tree {
		nodes, err := v.Tree(ctx, it.Root)
		if err != nil {
			return err
		}
		shown.Tree = subtree(datagenview.TreeOf(nodes), id)
	}
	if o.json {
		return cli.WriteJSON(a.Out(), shown)
	}
	return cli.Buffered(a.Out(), func(w io.Writer) error { return a.printItem(w, it, &shown) })
}

// subtree is the node of an item, alone in a list.
func subtree(nodes []datagenview.Node, id string) []datagenview.Node {
	for _, n := range nodes {
		if n.Item == id {
			return []datagenview.Node{n}
		}
		if found := subtree(n.Children, id); len(found) > 0 {
			return found
		}
	}
	return []datagenview.Node{}
}

func (a *app) printItem(w io.Writer, it *datagen.Item, shown *datagenview.Item) error {
	pairs := [][2]string{
		{"item", cli.Safe(it.ID)}, {"status", string(it.Status)}, {"root", otherThan(it.Root, it.ID)}, {"parent", cli.Safe(it.Parent)},
		{"tags", cli.Safe(string(it.Tags))}, {"attempt", strconv.Itoa(int(it.Attempt))}, {"run", cli.Safe(it.Run)},
		{"created", cli.Moment(a.Time(), serde.Millis(it.Created))}, {"updated", cli.Moment(a.Time(), serde.Millis(it.Updated))},
	}
	if it.Cursor != nil {
		pairs = append(pairs, [2]string{"last step", cli.Safe(cmp.Or(it.Cursor.Instance, it.Cursor.Name))})
	}
	pairs = append(pairs, [2]string{"steps", strconv.Itoa(len(it.Steps))})
	for _, f := range it.Failures {
		pairs = append(pairs, [2]string{"failure", cli.Safe(datagenview.FailureText(f.Failure) + " (" + datagenview.OriginText(f.From) + ")")})
	}
	for _, f := range it.Faults {
		pairs = append(pairs, [2]string{"fault", cli.Safe(f.Error())})
	}
	if err := cli.WriteFields(w, pairs...); err != nil {
		return err
	}
	if err := a.printFields(w, it); err != nil {
		return err
	}
	if err := a.printTrajectory(w, shown.Trajectory); err != nil {
		return err
	}
	if len(shown.Tree) > 0 {
		fmt.Fprintln(w)
		printTree(w, shown.Tree, 0)
	}
	return nil
}

func otherThan(text, other string) string {
	if text == other {
		return ""
	}
	return cli.Safe(text)
}

func (a *app) printFields(w io.Writer, it *datagen.Item) error {
	if len(it.Fields) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "FIELD"}, cli.Column{Title: "VALUE"}, cli.Column{Title: "SET BY"})
	t.Bold = a.Color()
	for i := range it.Fields {
		f := &it.Fields[i]
		for j := range f.Values {
			value := &f.Values[j]
			t.Row(f.Name, cli.Shorten(datagenview.Value(value.Value).Text(), 80), cmp.Or(value.From.Step.Instance, value.From.Step.Name))
		}
	}
	return t.Write(w)
}

func (a *app) printTrajectory(w io.Writer, row []datagenview.Checkpoint) error {
	if len(row) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable(cli.Column{Title: "SEQ", Align: cli.Right}, cli.Column{Title: "ATTEMPT", Align: cli.Right}, cli.Column{Title: "WHEN"},
		cli.Column{Title: "STEP"}, cli.Column{Title: "WHAT CHANGED"})
	t.Bold = a.Color()
	for i := range row {
		c := &row[i]
		t.Row(strconv.FormatInt(c.From.Seq, 10), strconv.Itoa(int(c.From.Attempt)), a.Ago(c.From.AtMS), cmp.Or(c.From.Instance, c.From.Step), cli.Shorten(c.Text(), 100))
	}
	return t.Write(w)
}

// printTree writes to a buffer, which keeps the error for its flush.
func printTree(w io.Writer, nodes []datagenview.Node, depth int) {
	for _, n := range nodes {
		fmt.Fprintf(w, "%s%s  %s\n", strings.Repeat("  ", depth), cli.Safe(n.Item), n.Status)
		printTree(w, n.Children, depth+1)
	}
}

func (a *app) blobCmd() *cobra.Command {
	var rootDir, out string
	var index int
	c := &cobra.Command{
		Use:     "blob LOG ITEM FIELD [--index N] [--out FILE]",
		Short:   "Write the bytes of a blob field, checked against their checksum",
		Long:    "Write the bytes of a blob field to standard output or to a file. Of a field that\nwas appended to it is the last value, or the one of --index, counted from 0.",
		Example: "  foldlog datagen blob digits/v1 digit-7 image --out digit-7.png",
		Args:    cmdline.Operands("LOG", "ITEM", "FIELD"),
	}
	rootVar(c, &rootDir)
	c.Flags().IntVar(&index, "index", -1, "the value `N` of a field that was appended to, from 0 (default: the last)")
	c.Flags().Lookup("index").DefValue = "0" // the usage says it in words
	cmdline.OutFlag(c.Flags(), &out)
	c.RunE = func(c *cobra.Command, args []string) error {
		return failed("blob", args[0], a.readLog(c.Context(), args[0], rootDir, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			b, err := readField(c.Context(), v, args[1], args[2], index)
			if err != nil {
				return noItemHint(err)
			}
			if out != "" {
				return cli.ReplaceFile(out, func(w io.Writer) error { _, err := w.Write(b); return err })
			}
			if f, ok := a.Stdout.(*os.File); ok && a.IsTerminal(f) {
				return cli.WithHint(errors.New("a terminal is no place for bytes"), "give --out FILE, or a pipe")
			}
			_, err = a.Out().Write(b)
			return err
		}))
	}
	return c
}

func readField(ctx context.Context, v *datagen.View, item, name string, index int) ([]byte, error) {
	it, err := v.Item(ctx, item, datagen.AsOf{})
	if err != nil {
		return nil, err
	}
	f, ok := it.Field(name)
	if !ok {
		return nil, cli.WithHint(fmt.Errorf("item %q has no field %q", item, name), "foldlog datagen item LOG ITEM lists its fields")
	}
	if index < 0 {
		index = len(f.Values) - 1
	}
	if index >= len(f.Values) {
		return nil, cli.Usagef("--index %d: field %q has %s", index, name, cli.Plural(int64(len(f.Values)), "value"))
	}
	value := f.Values[index]
	if value.Kind != datagen.Blob {
		return nil, cli.WithHint(fmt.Errorf("field %q is %s and no blob", name, value.Kind), "foldlog datagen item LOG ITEM shows it")
	}
	return v.Blob(ctx, value.Blob)
}
