package studycmd

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// enqueueOptions are the flags of study enqueue.
type enqueueOptions struct {
	key         string
	raw, asJSON bool
}

func (a *app) enqueueCmd() *cobra.Command {
	var o enqueueOptions
	c := &cobra.Command{
		Use:   "enqueue PATH NAME=VALUE... [--key KEY] [--raw] [--json]",
		Short: "Create a trial with given parameters that waits to be asked for",
		Long: `Create a trial with given parameters that waits to be asked for. The values must
lie in the study's space; a category is given by its label or as JSON. What is
not given is drawn when the trial is asked for.

With --key the same key gives the same trial, however often and from however
many processes it is enqueued. The trial is managed, for ask --lease and for
"study run"; with --raw it is raw.`,
		Example: "  foldlog study enqueue search.atj lr=0.01 optimizer=adam --key baseline",
		Args:    cmdline.Operands("PATH", "NAME=VALUE..."),
	}
	name := studyFlag(c)
	c.Flags().StringVar(&o.key, "key", "", "enqueue the trial of this `KEY` once")
	c.Flags().BoolVar(&o.raw, "raw", false, "make a raw trial, for ask without --lease")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("key") && o.key == "" {
			return cli.Usagef("--key is empty")
		}
		return cli.Failed("study enqueue", args[0], a.writeStudy(c.Context(), args[0], *name, nil, func(j study.Storage, st *study.Study) error {
			return a.enqueue(c.Context(), j, st, args[1:], o)
		}))
	}
	return c
}

// EnqueuedTrial is the output of `foldlog study enqueue --json`.
type EnqueuedTrial struct {
	Created bool `json:"created"` // false if the key had been used before
	AskedTrial
}

func (a *app) enqueue(ctx context.Context, j study.Storage, st *study.Study, args []string, o enqueueOptions) error {
	tpl, err := parseFixed(st, args)
	if err != nil {
		return err
	}
	var id study.TrialID
	var created bool
	err = j.Update(ctx, func(tx *study.Tx) error {
		id, created, err = asktell.Enqueue(tx, st.ID, tpl, asktell.EnqueueOptions{Key: o.key, Raw: o.raw})
		return err
	})
	if err != nil {
		return err
	}
	snap := j.Snapshot()
	t, err := snap.Trial(id)
	if err != nil {
		return err
	}
	if !created {
		a.noteEnqueued(t, tpl, o)
	}
	if o.asJSON {
		return cli.WriteJSON(a.Out(), EnqueuedTrial{created, AskedTrial{st.Config.Name, studyview.TrialOf(snap, st, t)}})
	}
	pairs := [][2]string{{"trial", strconv.FormatUint(t.Number, 10)}, {"id", strconv.FormatUint(uint64(t.ID), 10)}}
	return cli.WriteFields(a.Out(), append(pairs, paramFields(studyview.FixedParams(st, t))...)...)
}

// noteEnqueued says that a key had been used before, and for what.
func (a *app) noteEnqueued(t *study.Trial, tpl *study.Template, o enqueueOptions) {
	a.Notef("trial %d was enqueued with key %q before; it is %s", t.Number, o.key, t.State.Name())
	if t.Managed == o.raw {
		a.Notef("it is not of the kind asked for")
	}
	byName := func(x, y study.FixedParam) int { return strings.Compare(x.Name, y.Name) }
	want := slices.SortedFunc(slices.Values(tpl.Fixed), byName)
	if t.Template == nil || !slices.Equal(t.Template.Fixed, want) {
		a.Notef("its parameters are not those asked for now")
	}
}

// parseFixed reads operands NAME=VALUE against the space of a study.
func parseFixed(st *study.Study, args []string) (*study.Template, error) {
	tpl := new(study.Template)
	for _, arg := range args {
		name, text, ok := strings.Cut(arg, "=")
		if !ok || name == "" {
			return nil, cli.Usagef("%q is not NAME=VALUE", arg)
		}
		if slices.ContainsFunc(tpl.Fixed, func(f study.FixedParam) bool { return f.Name == name }) {
			return nil, cli.Usagef("parameter %q is given twice", name)
		}
		v, err := asktell.ParseParam(st, name, text)
		if err != nil {
			return nil, cli.Usagef("parameter %q: %w", name, err)
		}
		tpl.Fixed = append(tpl.Fixed, study.FixedParam{Name: name, Value: v})
	}
	return tpl, nil
}
