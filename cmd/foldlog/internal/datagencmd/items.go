package datagencmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
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

// itemsOptions are the flags of datagen items.
type itemsOptions struct {
	root         string
	status, tags []string
	sort         string
	query        datagen.ItemQuery
	json         bool
}

var statuses = []string{"pending", "running", "completed", "filtered", "failed"}

func (a *app) itemsCmd() *cobra.Command {
	var o itemsOptions
	c := &cobra.Command{
		Use:     "items LOG [--status STATUS]... [--tag KEY=VALUE]... [--sort ORDER] [--limit N] [--json]",
		Short:   "List the items of a log",
		Long:    "List the items of a log, sub-items too, in the order in which they were created,\nor sorted by --sort. All conditions must hold. Of an item that has failed it is told\nwhat the failure said; foldlog datagen failures has all of it.",
		Example: "  foldlog datagen items digits/v1 --status failed --sort updated\n  foldlog datagen items digits/v1 --tag split=train --roots",
		Args:    cmdline.Operands("LOG"),
	}
	f := c.Flags()
	f.StringVar(&o.root, "root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
	f.StringArrayVar(&o.status, "status", nil, "items of this `STATUS` only; again for each further one")
	f.StringArrayVar(&o.tags, "tag", nil, "items with this tag, `KEY=VALUE`; again for each further one")
	f.StringVar(&o.query.Step, "step", "", "items that completed the step `NAME` last")
	f.StringVar(&o.query.ErrorType, "error", "", "items that stand at a failure of this `TYPE`")
	f.StringVar(&o.query.Prefix, "prefix", "", "items whose identity begins with `TEXT`")
	f.StringVar(&o.query.Root, "of", "", "items of the tree of `ITEM`")
	f.BoolVar(&o.query.Suspect, "suspect", false, "items whose events may contradict each other")
	f.BoolVar(&o.query.Roots, "roots", false, "no sub-items")
	f.StringVar(&o.sort, "sort", "created", "the `ORDER`: created, updated (latest first), item or events (most first)")
	f.IntVar(&o.query.Limit, "limit", 0, "list `N` items at most (0: no limit)")
	f.BoolVar(&o.json, "json", false, "print one line of JSON for each item")
	c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(statuses, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"created", "updated", "item", "events"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.parse(); err != nil {
			return err
		}
		return failed("items", args[0], a.readLog(c.Context(), args[0], o.root, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			return a.listItems(c.Context(), v, &o)
		}))
	}
	return c
}

func (o *itemsOptions) parse() error {
	for _, s := range o.status {
		if !slices.Contains(statuses, s) {
			return cli.Usagef("--status %q: there are %s", s, strings.Join(statuses, ", "))
		}
		o.query.Status = append(o.query.Status, datagen.Status(s))
	}
	for _, t := range o.tags {
		key, value, ok := strings.Cut(t, "=")
		if !ok || key == "" {
			return cli.Usagef("--tag %q: must be KEY=VALUE", t)
		}
		if o.query.Tags == nil {
			o.query.Tags = map[string]string{}
		}
		o.query.Tags[key] = value
	}
	if o.query.Limit < 0 {
		return cli.Usagef("--limit %d: must not be negative", o.query.Limit)
	}
	var err error
	if o.query.Order, err = datagen.ParseItemOrder(o.sort); err != nil {
		return cli.Usagef("--sort: %v", err)
	}
	return nil
}

func (a *app) listItems(ctx context.Context, v *datagen.View, o *itemsOptions) error {
	items := v.Items(ctx, o.query)
	if o.json {
		return cli.Buffered(a.Out(), func(w io.Writer) error {
			for s, err := range items {
				if err != nil {
					return err
				}
				if err := cli.WriteJSONLine(w, datagenview.ItemLineOf(s)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "STATUS"}, cli.Column{Title: "LAST STEP"},
		cli.Column{Title: "ATTEMPT", Align: cli.Right}, cli.Column{Title: "EVENTS", Align: cli.Right},
		cli.Column{Title: "UPDATED"}, cli.Column{Title: "ERROR"}, cli.Column{Title: "TAGS"})
	t.Bold = a.Color()
	var say *latestFailures // once an item has failed
	n, err := t.Stream(a.Out(), func(yield func([]string, error) bool) {
		for s, err := range items {
			why := s.ErrorType
			if why != "" && say == nil && err == nil {
				say, err = failuresSay(ctx, v)
			}
			if why != "" && err == nil {
				why = say.item(s.ID, why)
			}
			if !yield([]string{cli.Shorten(s.ID, 100), string(s.Status), s.Step, strconv.Itoa(int(s.Attempt)), cli.Count(int64(s.Events)),
				a.Ago(serde.Millis(s.Updated)), why, cli.Shorten(string(s.Tags), 60)}, err) {
				return
			}
		}
	})
	if err == nil && n == 0 {
		a.Notef("no items")
	}
	return err
}

func (a *app) failuresCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "failures LOG [ITEM] [--json]",
		Short:   "List the failures of all attempts, of one item or of all",
		Long:    "List the failures of all attempts, of one item or of all, those too that a later\nattempt made good.",
		Example: "  foldlog datagen failures digits/v1\n  foldlog datagen failures digits/v1 digit-7 --json",
		Args:    cmdline.Operands("LOG", "[ITEM]"),
	}
	root := rootFlag(c)
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each failure")
	c.RunE = func(c *cobra.Command, args []string) error {
		item := ""
		if len(args) > 1 {
			item = args[1]
		}
		return failed("failures", args[0], a.readLog(c.Context(), args[0], *root, func(_ logkind.DatagenRef, _ *datagen.Log, v *datagen.View) error {
			return a.listFailures(c.Context(), v, item, *asJSON)
		}))
	}
	return c
}

func (a *app) listFailures(ctx context.Context, v *datagen.View, item string, asJSON bool) error {
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "STEP"}, cli.Column{Title: "ATTEMPT", Align: cli.Right},
		cli.Column{Title: "WHEN"}, cli.Column{Title: "WHY"})
	t.Bold = a.Color()
	failures := v.Failures(ctx, item)
	if asJSON {
		return cli.Buffered(a.Out(), func(w io.Writer) error {
			for f, err := range failures {
				if err != nil {
					return noItemHint(err)
				}
				if err := cli.WriteJSONLine(w, datagenview.FailureOf(f.Item, f.ItemFailure)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	n, err := t.Stream(a.Out(), func(yield func([]string, error) bool) {
		for f, err := range failures {
			step := ""
			if f.From.Step != nil {
				step = cmp.Or(f.From.Step.Instance, f.From.Step.Name)
			}
			if !yield([]string{f.Item, step, strconv.Itoa(int(f.From.Attempt)), a.Ago(serde.Millis(f.From.Time)), cli.Shorten(datagenview.FailureText(f.Failure), 100)}, err) {
				return
			}
		}
	})
	if err == nil && n == 0 {
		a.Notef("no failures")
	}
	return noItemHint(err)
}

// noItemHint says how to find the items there are.
func noItemHint(err error) error {
	if errors.Is(err, datagen.ErrNoItem) {
		return cli.WithHint(err, "foldlog datagen items LOG lists the items")
	}
	return err
}
