package studycmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study"
)

// fenceFlags are --worker and --epoch of the commands that change a trial.
type fenceFlags struct {
	c             *cobra.Command
	worker, epoch uint64
}

// workerFlag adds --worker alone.
func workerFlag(c *cobra.Command) *fenceFlags {
	f := &fenceFlags{c: c}
	c.Flags().Uint64Var(&f.worker, "worker", 0, "the `ID` of this worker, below 2^53 (default: drawn at random)")
	return f
}

func fenceFlag(c *cobra.Command) *fenceFlags {
	f := &fenceFlags{c: c}
	c.Flags().Uint64Var(&f.worker, "worker", 0, "the owner's `ID`, as ask printed it (managed trials)")
	c.Flags().Uint64Var(&f.epoch, "epoch", 0, "the claim's `EPOCH`, as ask printed it (managed trials)")
	return f
}

// id is the worker to write as, nil to draw one.
func (f *fenceFlags) id() (*uint64, error) {
	if !f.c.Flags().Changed("worker") {
		return nil, nil
	}
	if f.worker >= 1<<53 {
		return nil, cli.Usagef("--worker %d: must be below 2^53", f.worker)
	}
	return &f.worker, nil
}

// check refuses one flag without the other.
func (f *fenceFlags) check() (worker *uint64, err error) {
	if f.c.Flags().Changed("worker") != f.c.Flags().Changed("epoch") {
		return nil, cli.Usagef("--worker and --epoch go together")
	}
	return f.id()
}

// fence is the right to change a trial: given for a managed one, absent for a
// raw one.
func (f *fenceFlags) fence(t *study.Trial) (study.Fence, error) {
	given := f.c.Flags().Changed("epoch")
	switch {
	case t.Managed && !given:
		err := fmt.Errorf("trial %d: %w: it is managed and belongs to whoever claimed it", t.Number, study.ErrManaged)
		return study.Fence{}, cli.WithHint(err, "give --worker and --epoch, as foldlog study ask --lease printed them")
	case !t.Managed && given:
		err := fmt.Errorf("trial %d: %w: it is raw and has no owner", t.Number, study.ErrManaged)
		return study.Fence{}, cli.WithHint(err, "leave --worker and --epoch out")
	}
	return study.Fence{Trial: t.ID, Worker: f.worker, Epoch: f.epoch}, nil
}
