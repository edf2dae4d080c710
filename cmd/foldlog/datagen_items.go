package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

// itemsOptions are the flags of datagen items.
type itemsOptions struct {
	root        string
	status      []string
	tags        []string
	filter      datagen.Filter
	sort        string
	limit       int
	roots, json bool
}

var datagenStatuses = []string{"pending", "running", "completed", "filtered", "failed"}

func (a *app) datagenItemsCmd() *cobra.Command {
	var o itemsOptions
	c := &cobra.Command{
		Use:     "items LOG [--status STATUS]... [--tag KEY=VALUE]... [--sort ORDER] [--limit N] [--json]",
		Short:   "List the items of a log",
		Long:    "List the items of a log, sub-items too, in the order in which they were created,\nor sorted by --sort. All conditions must hold.",
		Example: "  foldlog datagen items digits/v1 --status failed --sort updated\n  foldlog datagen items digits/v1 --tag split=train --roots",
		Args:    operands("LOG"),
	}
	f := c.Flags()
	f.StringVar(&o.root, "root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
	f.StringArrayVar(&o.status, "status", nil, "items of this `STATUS` only; again for each further one")
	f.StringArrayVar(&o.tags, "tag", nil, "items with this tag, `KEY=VALUE`; again for each further one")
	f.StringVar(&o.filter.Step, "step", "", "items that completed the step `NAME` last")
	f.StringVar(&o.filter.ErrorType, "error", "", "items that stand at a failure of this `TYPE`")
	f.StringVar(&o.filter.Prefix, "prefix", "", "items whose identity begins with `TEXT`")
	f.StringVar(&o.filter.Root, "of", "", "items of the tree of `ITEM`")
	f.BoolVar(&o.filter.Suspect, "suspect", false, "items whose events may contradict each other")
	f.BoolVar(&o.roots, "roots", false, "no sub-items")
	f.StringVar(&o.sort, "sort", "created", "the `ORDER`: created, updated (latest first), item or events (most first)")
	f.IntVar(&o.limit, "limit", 0, "list `N` items at most (0: no limit)")
	f.BoolVar(&o.json, "json", false, "print one line of JSON for each item")
	c.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(datagenStatuses, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"created", "updated", "item", "events"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.parse(); err != nil {
			return err
		}
		return datagenFailed("items", args[0], a.readLog(c.Context(), args[0], o.root, func(_ logRef, _ *datagen.Log, v *datagen.View) error {
			return a.listItems(c.Context(), v, &o)
		}))
	}
	return c
}

func (o *itemsOptions) parse() error {
	for _, s := range o.status {
		if !slices.Contains(datagenStatuses, s) {
			return cli.Usagef("--status %q: there are %s", s, strings.Join(datagenStatuses, ", "))
		}
		o.filter.Status = append(o.filter.Status, datagen.Status(s))
	}
	for _, t := range o.tags {
		key, value, ok := strings.Cut(t, "=")
		if !ok || key == "" {
			return cli.Usagef("--tag %q: must be KEY=VALUE", t)
		}
		if o.filter.Tags == nil {
			o.filter.Tags = map[string]string{}
		}
		o.filter.Tags[key] = value
	}
	if o.limit < 0 {
		return cli.Usagef("--limit %d: must not be negative", o.limit)
	}
	if itemOrders[o.sort] == nil {
		return cli.Usagef("--sort %q: there are created, updated, item, events", o.sort)
	}
	return nil
}

// itemOrders are the values of --sort.
var itemOrders = map[string]func(x, y datagen.ItemSummary) int{
	"created": func(x, y datagen.ItemSummary) int { return x.Created.Compare(y.Created) },
	"updated": func(x, y datagen.ItemSummary) int { return y.Updated.Compare(x.Updated) },
	"item":    func(x, y datagen.ItemSummary) int { return datagen.CompareIDs(x.ID, y.ID) },
	"events":  func(x, y datagen.ItemSummary) int { return cmp.Compare(y.Events, x.Events) },
}

func (a *app) listItems(ctx context.Context, v *datagen.View, o *itemsOptions) error {
	list, err := sortedItems(ctx, v, o)
	if err != nil {
		return err
	}
	if o.json {
		return cli.Buffered(a.Out(), func(w io.Writer) error {
			for _, s := range list {
				if err := cli.WriteJSONLine(w, viewItemLine(s)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if len(list) == 0 {
		a.Notef("no items")
		return nil
	}
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "STATUS"}, cli.Column{Title: "LAST STEP"},
		cli.Column{Title: "ATTEMPT", Align: cli.Right}, cli.Column{Title: "EVENTS", Align: cli.Right},
		cli.Column{Title: "UPDATED"}, cli.Column{Title: "ERROR"}, cli.Column{Title: "TAGS"})
	t.Bold = a.Color()
	for _, s := range list {
		t.Row(shorten(s.ID, 100), string(s.Status), s.Step, strconv.Itoa(int(s.Attempt)), cli.Count(int64(s.Events)), a.age(millis(s.Updated)), s.ErrorType, shorten(string(s.Tags), 60))
	}
	return t.Write(a.Out())
}

// sortedItems keeps little more than the limit in memory.
func sortedItems(ctx context.Context, v *datagen.View, o *itemsOptions) ([]datagen.ItemSummary, error) {
	var list []datagen.ItemSummary
	for s, err := range v.Items(ctx, o.filter) {
		if err != nil {
			return nil, err
		}
		if !o.roots || s.Parent == "" {
			list = append(list, s)
		}
		if o.limit > 0 && len(list) >= 2*o.limit+1000 {
			list = o.first(list)
		}
	}
	return o.first(list), nil
}

// first sorts a list and cuts it at the limit.
func (o *itemsOptions) first(list []datagen.ItemSummary) []datagen.ItemSummary {
	order := itemOrders[o.sort]
	slices.SortStableFunc(list, func(x, y datagen.ItemSummary) int {
		return cmp.Or(order(x, y), datagen.CompareIDs(x.ID, y.ID))
	})
	if o.limit > 0 && len(list) > o.limit {
		clear(list[o.limit:])
		list = list[:o.limit]
	}
	return list
}

func (a *app) datagenFailuresCmd() *cobra.Command {
	c := &cobra.Command{
		Use:     "failures LOG [ITEM] [--json]",
		Short:   "List the failures of all attempts, of one item or of all",
		Long:    "List the failures of all attempts, of one item or of all, those too that a later\nattempt made good.",
		Example: "  foldlog datagen failures digits/v1\n  foldlog datagen failures digits/v1 digit-7 --json",
		Args:    operands("LOG", "[ITEM]"),
	}
	root := rootFlag(c)
	asJSON := jsonFlag(c, "print one line of JSON for each failure")
	c.RunE = func(c *cobra.Command, args []string) error {
		item := ""
		if len(args) > 1 {
			item = args[1]
		}
		return datagenFailed("failures", args[0], a.readLog(c.Context(), args[0], *root, func(_ logRef, _ *datagen.Log, v *datagen.View) error {
			return a.listFailures(c.Context(), v, item, *asJSON)
		}))
	}
	return c
}

func (a *app) listFailures(ctx context.Context, v *datagen.View, item string, asJSON bool) error {
	t := cli.NewTable(cli.Column{Title: "ITEM"}, cli.Column{Title: "STEP"}, cli.Column{Title: "ATTEMPT", Align: cli.Right},
		cli.Column{Title: "WHEN"}, cli.Column{Title: "WHY"})
	t.Bold = a.Color()
	for f, err := range v.Failures(ctx, item) {
		if err != nil {
			return noItemHint(err)
		}
		if asJSON {
			if err := cli.WriteJSONLine(a.Out(), viewFailureOf(f.Item, f.ItemFailure)); err != nil {
				return err
			}
			continue
		}
		step := ""
		if f.From.Step != nil {
			step = cmp.Or(f.From.Step.Instance, f.From.Step.Name)
		}
		t.Row(f.Item, step, strconv.Itoa(int(f.From.Attempt)), a.age(millis(f.From.Time)), shorten(failureText(f.Failure), 100))
	}
	if asJSON {
		return nil
	}
	if t.Len() == 0 {
		a.Notef("no failures")
		return nil
	}
	return t.Write(a.Out())
}

// noItemHint says how to find the items there are.
func noItemHint(err error) error {
	if errors.Is(err, datagen.ErrNoItem) {
		return cli.WithHint(err, "foldlog datagen items LOG lists the items")
	}
	return err
}
