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
	"github.com/foldlog/foldlog/study"
)

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
