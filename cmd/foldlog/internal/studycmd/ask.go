package studycmd

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

// askOptions are the flags of study ask.
type askOptions struct {
	lease  time.Duration
	budget uint64
	key    string
	asJSON bool
}

func (a *app) askCmd() *cobra.Command {
	var o askOptions
	c := &cobra.Command{
		Use:   "ask PATH [--lease DURATION] [--worker ID] [--key TEXT] [--json]",
		Short: "Start a trial, and print its number and parameters",
		Long: `Start a trial, and print its number and parameters. A trial that waits is taken
first, lowest number first; if none does, one is created. Parameters that were
not enqueued are suggested by the study's sampler from its space. The seed, the
number of the trial and the trials so far decide what is suggested, whichever
process asks.

Without --lease the trial is raw: it is yours until you tell its result, and
nobody notices if you never do. With --lease it is managed: it is claimed, and
worker and epoch are printed, which tell, report, renew and attr must show. Tell
or renew the trial within the lease. One whose owner has been silent for longer
is failed by "study run" or "study retry --stale", which watch it; asking alone
never fails anybody's trial.

With --key, which is drawn for each trial, an ask may be repeated: if the answer
was lost, the same key prints the trial that was started, as long as it runs.

Raw asks leave managed trials alone, and the other way round.`,
		Example: "  foldlog study ask search.atj --json | jq .params\n  foldlog study ask search.atj --lease 10m --worker 7",
		Args:    cmdline.Operands("PATH"),
	}
	name, fence := studyFlag(c), workerFlag(c)
	c.Flags().DurationVar(&o.lease, "lease", 0, "claim a managed trial; its owner may be silent for this `DURATION`")
	c.Flags().Uint64Var(&o.budget, "budget", 0, "with --lease, reserve no trial beyond `N` in the study (0: no limit)")
	c.Flags().StringVar(&o.key, "key", "", "a `TEXT` of this trial alone; asking again with it gives the same trial")
	c.Flags().BoolVar(&o.asJSON, "json", false, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.check(c); err != nil {
			return err
		}
		worker, err := fence.id()
		if err != nil {
			return err
		}
		return cli.Failed("study ask", args[0], a.writeStudy(c.Context(), args[0], *name, worker, func(j study.Storage, st *study.Study) error {
			return a.ask(c.Context(), j, st, o)
		}))
	}
	return c
}

func (o *askOptions) check(c *cobra.Command) error {
	managed := c.Flags().Changed("lease")
	switch {
	case managed && o.lease < time.Millisecond:
		return cli.Usagef("--lease %v: must be a millisecond at least", o.lease)
	case !managed && o.budget > 0:
		return cli.Usagef("--budget needs --lease: raw trials are not counted")
	}
	return nil
}

func (a *app) ask(ctx context.Context, j study.Storage, st *study.Study, o askOptions) error {
	id, err := asktell.Ask(ctx, j, st.ID, asktell.AskOptions{Key: o.key, Lease: o.lease, Budget: o.budget})
	if err != nil {
		return err
	}
	snap := j.Snapshot()
	t, err := snap.Trial(id)
	if err != nil {
		return err
	}
	a.noteLeft(snap, t)
	return a.printAsked(snap, st, t, o.asJSON)
}

// noteLeft says that trials of the other kind wait.
func (a *app) noteLeft(snap *study.Snapshot, t *study.Trial) {
	if asktell.FirstWaiting(snap, t.Study, !t.Managed) == nil {
		return
	}
	if t.Managed {
		a.Notef("raw trials are waiting; ask without --lease to take one")
	} else {
		a.Notef("managed trials are waiting; ask with --lease to take one")
	}
}

// AskedTrial is the output of `foldlog study ask --json` and of enqueue.
type AskedTrial struct {
	Study string `json:"study"`
	studyview.Trial
}

func (a *app) printAsked(snap *study.Snapshot, st *study.Study, t *study.Trial, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(a.Out(), AskedTrial{st.Config.Name, studyview.TrialOf(snap, st, t)})
	}
	pairs := [][2]string{{"trial", strconv.FormatUint(t.Number, 10)}, {"id", strconv.FormatUint(uint64(t.ID), 10)}}
	if t.Managed {
		pairs = append(pairs, [2]string{"worker", strconv.FormatUint(t.Owner, 10)}, [2]string{"epoch", strconv.FormatUint(t.Epoch, 10)})
		if grace := studyview.GraceMillis(t); grace != nil {
			pairs = append(pairs, [2]string{"lease", leaseText(*grace)})
		}
	}
	if t.Attempt > 1 {
		pairs = append(pairs, [2]string{"attempt", attemptText(t)})
	}
	return cli.WriteFields(a.Out(), append(pairs, paramFields(t.Params)...)...)
}

func leaseText(millis int64) string {
	return cli.Duration(time.Duration(millis) * time.Millisecond)
}

// attemptText is "2", or "2 of 3".
func attemptText(t *study.Trial) string {
	s := strconv.FormatUint(t.Attempt, 10)
	if t.MaxAttempts > 0 {
		s += " of " + strconv.FormatUint(t.MaxAttempts, 10)
	}
	return s
}

func paramFields(params []study.Param) (pairs [][2]string) {
	for _, p := range params {
		pairs = append(pairs, [2]string{"param " + p.Name, p.Text()})
	}
	return pairs
}
