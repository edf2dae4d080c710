package studycmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/runner/studyfile"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// useStudyFile creates the study of a file, or finds that it is the one there.
// Nothing is made for one that cannot be run.
func (a *app) useStudyFile(ctx context.Context, p *runPlan) error {
	f := p.file
	trial := study.NewMemory(study.MemoryOptions{})
	if _, _, err := study.OpenOrCreate(ctx, trial, f.Study); err != nil {
		return cli.Failed("study run", f.Path, err)
	}
	if err := p.Config.Check(trial.Snapshot()); err != nil {
		return fmt.Errorf("study run: %w", f.Explain(err))
	}
	st, created, err := a.createFromFile(ctx, f, f.Journal)
	if err != nil {
		return cli.Failed("study run", f.Path, err)
	}
	if created {
		a.Notef("created study %q in %s", st.Config.Name, f.Journal)
	}
	return nil
}

// createFromFile creates the study of a file in a journal, unless it is there. A
// study of that name that is another one is an error at the key that differs.
func (a *app) createFromFile(ctx context.Context, f *studyfile.File, path string) (*study.Study, bool, error) {
	config := f.Study
	if config.Seed == nil {
		seed := rand.Uint64N(1 << 53)
		config.Seed = &seed
	}
	st, _, created, err := a.createStudy(ctx, path, config, searchOptions{f.Sampler, f.Pruner}, true)
	if err != nil || created {
		return st, created, err
	}
	for _, d := range fileDifferences(f, st) {
		err := fmt.Errorf("study %q in %s has another one", st.Config.Name, path)
		return nil, false, cli.WithHint(f.At(d, err), "a study stays as it was created: put that back, or give the file another name or journal")
	}
	return st, false, nil
}

// fileDifferences are the keys in which a study is not what a file says.
func fileDifferences(f *studyfile.File, st *study.Study) (keys []string) {
	have, want := st.Config, f.Study
	for _, d := range []struct {
		key  string
		same bool
	}{
		{"metrics", fmt.Sprint(have.Directions) == fmt.Sprint(want.Directions) && fmt.Sprint(have.MetricNames) == fmt.Sprint(want.MetricNames)},
		{"space", sameSpace(have.Space, want.Space)},
		{"seed", want.Seed == nil || have.Seed != nil && *have.Seed == *want.Seed},
		{"unit", have.ResourceUnit == want.ResourceUnit},
		{"sampler", f.Sampler == "" || f.Sampler == sampler.TextOf(st)},
		{"pruner", f.Pruner == "" || f.Pruner == pruner.TextOf(st)},
	} {
		if !d.same {
			keys = append(keys, d.key)
		}
	}
	return keys
}

// createOfFile is study create --file.
func (a *app) createOfFile(c *cobra.Command, o *createOptions, args []string) error {
	for _, flag := range []string{"name", "direction", "metric", "space", "seed", "sampler", "pruner", "unit"} {
		if c.Flags().Changed(flag) {
			return cli.Usagef("study create: --%s and --file exclude each other: the file says it", flag)
		}
	}
	f, err := studyfile.Load(o.file)
	if err != nil {
		return fmt.Errorf("study create: %w", missingStudyFile(o.file, err))
	}
	path := f.Journal
	if len(args) > 0 {
		path = args[0]
	}
	st, created, err := a.createFromFile(c.Context(), f, path)
	if err != nil {
		return cli.Failed("study create", path, err)
	}
	if !created && !o.open {
		return cli.Failed("study create", path, alreadyThere(st))
	}
	snap, err := a.existing(c.Context(), path, st.Config.Name)
	if err != nil {
		return cli.Failed("study create", path, err)
	}
	return a.printCreated(path, studyview.SummaryOf(snap, st), studyview.Objectives(st), created, o.asJSON)
}

func alreadyThere(st *study.Study) error {
	return cli.WithHint(&study.ExistsError{Name: st.Config.Name, Study: st.ID}, "--open uses it as it is; --name NAME creates another one")
}

func (a *app) initCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "init [STUDY.yaml]",
		Short: "Write a study file to begin with",
		Long: `Write a complete study file, with a comment for every key, to STUDY.yaml, or
print it. "foldlog study run STUDY.yaml" runs it. A file that is there is left
alone.`,
		Example: "  foldlog study init study.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprint(a.Out(), studyfile.Example)
				return err
			}
			return cli.Failed("study init", args[0], a.initStudyFile(args[0]))
		},
	}
}

func (a *app) initStudyFile(path string) error {
	if !studyfile.Is(path) {
		return cli.Usagef("a study file's name ends in .yaml or .yml")
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = strings.NewReader(studyfile.Example).WriteTo(f)
	if err = errors.Join(err, f.Close()); err == nil {
		a.Notef("wrote %s; change it, then: foldlog study run %s", path, path)
	}
	return err
}
