package studycmd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// tellOptions are the operands and flags of study tell.
type tellOptions struct {
	number  uint64
	values  []float64
	state   study.State
	reason  string
	retries *uint64 // nil opens no outbox entry
	fence   *fenceFlags
}

func (a *app) tellCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "tell PATH NUMBER [VALUE...] [--state STATE] [--reason TEXT] [--worker ID --epoch N]",
		Short: "Tell the result of a trial",
		Long: `Tell the result of a trial: one value for each objective. nan, inf and -inf are
values too. With --state pruned or failed there are none; --reason says why a
trial failed, and means failed.

A managed trial takes its result from its owner alone, who shows --worker and
--epoch. If it was taken away meanwhile, nothing is written, the error says who
owns it now, and repeats the values so that they are not lost. With --retries N
a trial that failed is tried again, N times at most, by a trial with the same
parameters that waits for the next ask --lease.`,
		Example: "  foldlog study tell search.atj 3 0.42\n  foldlog study tell search.atj 3 --reason 'out of memory'",
		Args:    cmdline.Operands("PATH", "NUMBER", "[VALUE]..."),
	}
	cmdline.TakesNumbers(c)
	name := studyFlag(c)
	o := tellOptions{fence: fenceFlag(c)}
	var state string
	var retries uint64
	c.Flags().StringVar(&state, "state", "complete", "the `STATE` it ended in: complete, pruned or failed")
	c.Flags().StringVar(&o.reason, "reason", "", "the `TEXT` that says why it failed")
	c.Flags().Uint64Var(&retries, "retries", 0, "try a managed trial that failed again, `N` times at most")
	c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions([]string{"complete", "pruned", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	c.ValidArgsFunction = completeRunning
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("retries") {
			o.retries = &retries
		}
		if err := o.parse(c, args, state); err != nil {
			return err
		}
		worker, err := o.fence.check()
		if err != nil {
			return err
		}
		return cli.Failed("study tell", args[0], a.writeStudy(c.Context(), args[0], *name, worker, func(j study.Storage, st *study.Study) error {
			return a.tell(c.Context(), j, st, &o)
		}))
	}
	return c
}

func (o *tellOptions) parse(c *cobra.Command, args []string, state string) (err error) {
	if o.number, err = parseNumber(args[1]); err != nil {
		return err
	}
	if o.values, err = parseValues(args[2:]); err != nil {
		return err
	}
	if o.reason != "" && !c.Flags().Changed("state") {
		state = "failed"
	}
	o.state, err = study.ParseState(state)
	switch {
	case err != nil || !o.state.Terminal():
		return cli.Usagef("--state %q: complete, pruned or failed", state)
	case o.state != study.Complete && len(o.values) > 0:
		return cli.WithHint(cli.Usagef("a trial that is %s has no values", o.state.Name()), "foldlog study report records intermediate values")
	case o.state != study.Failed && o.reason != "":
		return cli.Usagef("--reason is for trials that failed")
	case o.state != study.Failed && o.retries != nil:
		return cli.Usagef("--retries is for trials that failed")
	}
	return nil
}

func (a *app) tell(ctx context.Context, j study.Storage, st *study.Study, o *tellOptions) error {
	t, err := pickTrial(j.Snapshot(), st, o.number)
	if err != nil {
		return err
	}
	if o.state == study.Complete {
		if err := checkCount(st, o.values); err != nil {
			return err
		}
	}
	if !t.Managed && o.retries != nil {
		return cli.WithHint(cli.Usagef("trial %d is raw: --retries is for managed trials", t.Number), "foldlog study retry tries any failed trial again")
	}
	fence, err := o.fence.fence(t)
	if err != nil {
		return err
	}
	var again []study.TrialRef
	err = j.Update(ctx, func(tx *study.Tx) (err error) {
		if t.Managed {
			again, err = o.end(tx, fence)
			return err
		}
		return asktell.End(tx, t.ID, study.Outcome{State: o.state, Values: o.values, Error: o.reason})
	})
	if err != nil {
		return ofTrial(st, t, o.keep(err))
	}
	a.Notef("trial %d is %s%s", t.Number, o.state.Name(), o.text(st))
	return a.toldRepeats(j.Snapshot(), again)
}

// keep repeats values that were not written, or perhaps not, so that they are
// not lost.
func (o *tellOptions) keep(err error) error {
	if len(o.values) == 0 {
		return err
	}
	texts := make([]string, len(o.values))
	for i, v := range studyview.Numbers(o.values) {
		texts[i] = v.String()
	}
	word := "were not"
	if cli.As[*journal.UncertainError](err) {
		word = "may not be"
	}
	return fmt.Errorf("%w; these values %s recorded: %s", err, word, strings.Join(texts, " "))
}

func (o *tellOptions) text(st *study.Study) string {
	switch {
	case o.state == study.Complete:
		return ": " + studyview.Results(st, o.values)
	case o.reason != "":
		return ": " + o.reason
	}
	return ""
}

// end ends a managed trial, and returns the trial that tries it again.
func (o *tellOptions) end(tx *study.Tx, fence study.Fence) ([]study.TrialRef, error) {
	outcome := study.Outcome{State: o.state, Values: o.values, Error: o.reason}
	var policy *study.RetryPolicy
	if o.retries != nil {
		policy = &study.RetryPolicy{MaxRetries: *o.retries}
	}
	return asktell.Finish(tx, fence, outcome, policy)
}

// deliverOutbox carries out what follows the end of managed trials, says which
// trials are tried again, and returns the trials that were created.
func (a *app) deliverOutbox(ctx context.Context, j study.Storage) ([]*study.Trial, error) {
	ids, err := study.DeliverOutbox(ctx, j, study.OutboxHandlers{})
	snap := j.Snapshot()
	var created []*study.Trial
	for _, id := range ids {
		t, findErr := a.toldRepeat(snap, id)
		if err = errors.Join(err, findErr); findErr == nil {
			created = append(created, t)
		}
	}
	return created, err
}

// toldRepeats says which trials new ones try again.
func (a *app) toldRepeats(snap *study.Snapshot, refs []study.TrialRef) error {
	for _, ref := range refs {
		if _, err := a.toldRepeat(snap, ref.ID); err != nil {
			return err
		}
	}
	return nil
}

// toldRepeat says which trial a new one tries again.
func (a *app) toldRepeat(snap *study.Snapshot, id study.TrialID) (*study.Trial, error) {
	t, err := snap.Trial(id)
	if err != nil {
		return nil, err
	}
	if source := studyview.ParentOf(snap, t); source != nil {
		a.Notef("trial %d tries trial %d again, attempt %s", t.Number, source.Number, attemptText(t))
	}
	return t, nil
}
