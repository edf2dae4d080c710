package studycmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

func (a *app) pauseCmd() *cobra.Command {
	return a.holdCmd(&cobra.Command{
		Use:        "pause PATH NUMBER...",
		SuggestFor: []string{"stop", "hold"},
		Short:      "Put running trials on hold",
		Long: fmt.Sprintf(`Put trials on hold that "study run" runs, here or on another machine. Within
seconds the worker of each sends its command SIGTERM, keeps what that saves in
FOLDLOG_STATE_DIR, and goes on with other trials. Nobody takes the trial up again
before "study resume", also not a later run. What "ask --lease" has claimed is its
owner's to stop: "study show NUMBER" says that it is on hold.

A command asks for the same by ending with status %d.`, runner.PauseStatus),
		Example: "  foldlog study pause search.atj 3\n  foldlog study resume search.atj 3",
	}, runner.Hold, func(st *study.Study, t *study.Trial) string {
		if t.State == study.Running {
			return fmt.Sprintf("trial %d is asked to pause: worker %d stops it within seconds", t.Number, t.Owner)
		}
		return fmt.Sprintf("trial %d is on hold", t.Number)
	})
}

func (a *app) resumeCmd() *cobra.Command {
	return a.holdCmd(&cobra.Command{
		Use:   "resume PATH NUMBER...",
		Short: "Let trials go on that were put on hold",
		Long: `Let trials go on that "study pause" has put on hold, or that have asked for it.
The next worker with nothing to do takes each up, with the same parameters and
what it has saved; if no run is at work, the next "study run" does.`,
		Example: "  foldlog study resume search.atj 3",
	}, runner.Resume, func(st *study.Study, t *study.Trial) string {
		return fmt.Sprintf("trial %d may go on", t.Number)
	})
}

// holdCmd is a command that does something to some trials, to all of them or to
// none, and says what.
func (a *app) holdCmd(c *cobra.Command, do func(*study.Tx, study.TrialID) error, say func(*study.Study, *study.Trial) string) *cobra.Command {
	c.Args = cmdline.Operands("PATH", "NUMBER...")
	name := studyFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var numbers []uint64
		for _, arg := range args[1:] {
			n, err := parseNumber(arg)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		return cli.Failed("study "+c.Name(), args[0], a.writeStudy(c.Context(), args[0], *name, nil, func(j study.Storage, st *study.Study) error {
			return a.hold(c.Context(), j, st, numbers, do, say)
		}))
	}
	return c
}

func (a *app) hold(ctx context.Context, j study.Storage, st *study.Study, numbers []uint64, do func(*study.Tx, study.TrialID) error, say func(*study.Study, *study.Trial) string) error {
	var done []*study.Trial
	err := j.Update(ctx, func(tx *study.Tx) error {
		done = nil
		for _, n := range numbers {
			t, err := pickTrial(tx.Snapshot(), st, n)
			if err != nil {
				return err
			}
			if err := do(tx, t.ID); err != nil {
				return ofTrial(st, t, err)
			}
			done = append(done, t)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range done {
		a.Notef("%s", say(st, t))
	}
	return nil
}

// holdText is what follows the state of a trial that is on hold.
func holdText(path string, number uint64) string {
	return fmt.Sprintf("on hold until: foldlog study resume %s %d", cli.Safe(path), number)
}
