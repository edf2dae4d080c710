// Package studycmd is foldlog study: a file for each command that works on the studies of a
// journal.
package studycmd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/study"
)

const long = `Work on the studies of a journal: create them, ask for trials and tell their
results, and look at them. A study journal is PATH, a small file, and PATH.d
beside it, or http://HOST/PATH at a server ("foldlog serve"); server:PATH is one at
that of FOLDLOG_SERVER. Any number of processes may work on it at once.

A trial is raw or managed. A raw one belongs to whoever asked for it. A managed
one is claimed under a lease: its owner shows the worker id and the epoch of
the claim with every change, and nobody else can change it. A trial whose owner
goes silent can be failed and tried again by "study retry".`

// app is what the commands share.
type app struct{ logkind.Finder }

// New is foldlog study and the commands beneath it.
func New(f logkind.Finder) *cobra.Command {
	a := &app{f}
	noun := &cobra.Command{
		Use:   "study",
		Short: "Hyper-parameter search: create, run, ask, tell, look, import and export",
		Long:  long,
	}
	noun.AddCommand(
		a.initCmd(),
		a.createCmd(),
		a.askCmd(),
		a.tellCmd(),
		a.reportCmd(),
		a.shouldPruneCmd(),
		a.renewCmd(),
		a.attrCmd(),
		a.enqueueCmd(),
		a.retryCmd(),
		a.runCmd(),
		a.pauseCmd(),
		a.resumeCmd(),
		a.sessionCmd(),
		a.workerCmd(),
		a.showCmd(),
		a.trialsCmd(),
		a.bestCmd(),
		a.importanceCmd(),
		a.compareCmd(),
		a.plotCmd(),
		a.exportCmd(),
		a.importCmd(),
		a.migrateCmd(),
		a.serveOptunaCmd(),
	)
	return noun
}

// studyFlag adds --study, which every command has that works on one study.
func studyFlag(c *cobra.Command) *string {
	name := c.Flags().String("study", "", "the `NAME` of the study, where the journal holds several")
	c.RegisterFlagCompletionFunc("study", completeStudies)
	return name
}

// readStudy opens a journal for reading and hands one of its studies to fn.
func (a *app) readStudy(ctx context.Context, path, name string, fn func(*study.Snapshot, *study.Study) error) error {
	return a.readStudies(ctx, path, func(r logkind.StudyReader) error {
		snap := r.Snapshot()
		st, err := pickStudy(snap, path, name)
		if err != nil {
			return err
		}
		return fn(snap, st)
	})
}

// readStudies opens a journal for reading.
func (a *app) readStudies(ctx context.Context, path string, fn func(logkind.StudyReader) error) error {
	r, err := a.Glance(ctx, path)
	if err != nil {
		return err
	}
	defer r.Close()
	return fn(r)
}

// writeStudy opens a journal for writing and hands one of its studies to fn.
// Worker is the id that operations carry, nil to draw one.
func (a *app) writeStudy(ctx context.Context, path, name string, worker *uint64, fn func(study.Storage, *study.Study) error) (err error) {
	j, err := a.OpenJournal(ctx, path, worker)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	st, err := pickStudy(j.Snapshot(), path, name)
	if err != nil {
		return err
	}
	return fn(j, st)
}

// pickStudy finds the study of that name, or the only one.
func pickStudy(snap *study.Snapshot, path, name string) (*study.Study, error) {
	if name != "" {
		if st, ok := snap.StudyByName(name); ok {
			return st, nil
		}
		return nil, fmt.Errorf("study %q: %w; the journal holds %s", name, study.ErrNotFound, studyNames(snap))
	}
	var first *study.Study
	n := 0
	for st := range openStudies(snap) {
		if n++; n == 1 {
			first = st
		}
	}
	switch n {
	case 0:
		err := fmt.Errorf("the journal holds no study: %w", study.ErrNotFound)
		return nil, cli.WithHint(err, "foldlog study create "+path+" creates one")
	case 1:
		return first, nil
	}
	return nil, cli.WithHint(cli.Usagef("the journal holds %s", studyNames(snap)), "say which: --study NAME")
}

// openStudies yields the studies that are not deleted.
func openStudies(snap *study.Snapshot) iter.Seq[*study.Study] {
	return func(yield func(*study.Study) bool) {
		for st := range snap.Studies() {
			if !st.Deleted() && !yield(st) {
				return
			}
		}
	}
}

// studyNames lists the first studies of a journal.
func studyNames(snap *study.Snapshot) string {
	const limit = 20
	var names []string
	more := 0
	for st := range openStudies(snap) {
		if len(names) == limit {
			more++
			continue
		}
		names = append(names, strconv.Quote(st.Config.Name))
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	if len(names) == 0 {
		return "no study"
	}
	return strings.Join(names, ", ")
}

// pickTrial finds a trial of a study by its number.
func pickTrial(snap *study.Snapshot, st *study.Study, number uint64) (*study.Trial, error) {
	t, err := snap.TrialByNumber(st.ID, number)
	if errors.Is(err, study.ErrNotFound) {
		return nil, fmt.Errorf("trial %d: %w; study %q has %s", number, study.ErrNotFound, st.Config.Name,
			cli.Plural(int64(st.NumTrials()), "trial"))
	}
	return t, err
}

// ofTrial says which trial of which study an error is about, where the id in
// it is not the number that people know the trial by.
func ofTrial(st *study.Study, t *study.Trial, err error) error {
	if err == nil || uint64(t.ID) == t.Number {
		return err
	}
	return fmt.Errorf("trial number %d of study %q: %w", t.Number, st.Config.Name, err)
}

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

// parseNumber reads the operand NUMBER.
func parseNumber(arg string) (uint64, error) {
	n, err := strconv.ParseUint(arg, 10, 64)
	if err != nil {
		return 0, cli.Usagef("NUMBER %q: trials are numbered from 0", strings.TrimSpace(arg))
	}
	return n, nil
}

// parseValues reads operands that are floats; nan, inf and -inf are some.
func parseValues(args []string) ([]float64, error) {
	values := make([]float64, len(args))
	for i, arg := range args {
		v, err := strconv.ParseFloat(strings.TrimSpace(arg), 64)
		if err != nil {
			return nil, cli.Usagef("VALUE %q is not a number; nan, inf and -inf are", strings.TrimSpace(arg))
		}
		values[i] = v
	}
	return values, nil
}

// checkCount refuses values that are not one per objective.
func checkCount(st *study.Study, values []float64) error {
	if want := len(st.Config.Directions); len(values) != want {
		return cli.Usagef("study %q wants %s (%s), not %d", st.Config.Name, cli.Plural(int64(want), "value"), studyview.Objectives(st), len(values))
	}
	return nil
}
