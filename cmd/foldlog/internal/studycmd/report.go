package studycmd

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
)

func (a *app) reportCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "report PATH NUMBER STEP VALUE... [--worker ID --epoch N]",
		Short: "Report intermediate values of a trial",
		Long: `Report intermediate values of a trial at a step, one for each objective. The
same step may be reported again: all are kept, and the last one counts.`,
		Example: "  foldlog study report search.atj 3 100 0.57",
		Args:    cmdline.Operands("PATH", "NUMBER", "STEP", "VALUE..."),
	}
	cmdline.TakesNumbers(c)
	name, fence := studyFlag(c), fenceFlag(c)
	c.ValidArgsFunction = completeRunning
	c.RunE = func(c *cobra.Command, args []string) error {
		step, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return cli.Usagef("STEP %q is not a whole number from 0", strings.TrimSpace(args[2]))
		}
		values, err := parseValues(args[3:])
		if err != nil {
			return err
		}
		return a.changeTrial(c.Context(), "study report", args, *name, fence, func(tx *study.Tx, st *study.Study, t *study.Trial, f study.Fence) error {
			if err := checkCount(st, values); err != nil {
				return err
			}
			if t.Managed {
				return tx.LifecycleFenced(f, &study.MutateReport{Step: step, Values: values})
			}
			return tx.Report(t.ID, step, values...)
		})
	}
	return c
}

func (a *app) renewCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "renew PATH NUMBER [--worker ID --epoch N]",
		Short: "Show that the owner of a trial lives",
		Long: `Show that the owner of a trial lives, so that nobody takes it for stale: the
lease that ask stated begins anew. If the trial was taken away, the exit status
is 1, and there is no use in going on with it.`,
		Example: "  foldlog study renew search.atj 3 --worker 7 --epoch 1",
		Args:    cmdline.Operands("PATH", "NUMBER"),
	}
	name, fence := studyFlag(c), fenceFlag(c)
	c.ValidArgsFunction = completeRunning
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.changeTrial(c.Context(), "study renew", args, *name, fence, func(tx *study.Tx, _ *study.Study, t *study.Trial, f study.Fence) error {
			if t.Managed {
				return tx.LifecycleRenew(f, tx.AtMillis())
			}
			return tx.Heartbeat(t.ID, tx.AtMillis())
		})
	}
	return c
}

// changeTrial makes one change to the trial that the operands PATH NUMBER name.
func (a *app) changeTrial(ctx context.Context, doing string, args []string, name string, fence *fenceFlags,
	change func(*study.Tx, *study.Study, *study.Trial, study.Fence) error) error {
	number, err := parseNumber(args[1])
	if err != nil {
		return err
	}
	worker, err := fence.check()
	if err != nil {
		return err
	}
	return cli.Failed(doing, args[0], a.writeStudy(ctx, args[0], name, worker, func(j study.Storage, st *study.Study) error {
		t, err := pickTrial(j.Snapshot(), st, number)
		if err != nil {
			return err
		}
		f, err := fence.fence(t)
		if err != nil {
			return err
		}
		return ofTrial(st, t, j.Update(ctx, func(tx *study.Tx) error { return change(tx, st, t, f) }))
	}))
}
