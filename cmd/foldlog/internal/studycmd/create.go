package studycmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/runner/studyfile"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
	"github.com/foldlog/foldlog/study/space"
)

// createOptions are the flags of study create.
type createOptions struct {
	name, unit, space   string
	file                string
	directions, metrics []string
	seed                uint64
	search              searchOptions
	open, asJSON        bool
}

func (a *app) createCmd() *cobra.Command {
	var o createOptions
	c := &cobra.Command{
		Use:        "create PATH|--file STUDY.yaml [--name NAME] [--direction DIRECTION]... [--metric NAME]... [--space FILE]",
		SuggestFor: []string{"new"},
		Short:      "Create a study, and its journal if there is none",
		Long: `Create a study, and the journal at PATH if there is none. Another name on an
existing journal adds a study to it. If there is a study of that name, nothing
is changed and the exit status is 1; with --open it is used as it is, and the
exit status is 0. However many processes do so at once, one study is created.

The name is that of the file without its ending if none is given. There is one
direction for each objective, minimize if none is given. Without --metric the
metric is named "value". A space file, YAML or JSON, declares the parameters that
trials get:

  lr:        {type: float, low: 1e-5, high: 0.1, log: true}
  dropout:   {type: float, low: 0, high: 0.5, step: 0.05}
  layers:    {type: int, low: 1, high: 8}
  optimizer: {type: categorical, choices: [adam, sgd]}
  momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
  use_bn:    {type: bool}

With "when" a trial has a parameter only for some values of others before it: a
value, a list of values, or {low: A, high: B}.

A study file (--file, see "study init") says all of this at once, and where the
journal is unless PATH does.`,
		Example: "  foldlog study create search.atj --direction minimize --metric loss --space space.yaml",
		Args: func(c *cobra.Command, args []string) error {
			if o.file != "" && len(args) == 0 {
				return nil
			}
			return cmdline.Operands("PATH")(c, args)
		},
	}
	o.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error { return a.create(c, &o, args) }
	return c
}

func (o *createOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.file, "file", "", "the study `FILE` that describes the study")
	f.StringVar(&o.name, "name", "", "the `NAME` of the study (default: that of the file)")
	f.StringArrayVar(&o.directions, "direction", nil, "a `DIRECTION`, minimize or maximize; again for each further objective")
	f.StringArrayVar(&o.metrics, "metric", nil, "the `NAME` of an objective; again for each further one")
	f.StringVar(&o.space, "space", "", "the `FILE` that declares the parameters")
	f.Uint64Var(&o.seed, "seed", 0, "the `N` that parameters are drawn from (default: drawn at random)")
	o.search.flags(c)
	f.StringVar(&o.unit, "unit", "Steps", "the `NAME` of what the steps of reports count")
	f.BoolVar(&o.open, "open", false, "use the study if there is one of that name")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	c.RegisterFlagCompletionFunc("direction", cobra.FixedCompletions([]string{"minimize", "maximize"}, cobra.ShellCompDirectiveNoFileComp))
}

func (a *app) create(c *cobra.Command, o *createOptions, args []string) error {
	if o.file != "" {
		return a.createOfFile(c, o, args)
	}
	config, err := o.config(c, args[0])
	if err != nil {
		return err
	}
	if err := o.search.check(config); err != nil {
		return err
	}
	st, snap, created, err := a.createStudy(c.Context(), args[0], config, o.search, o.open)
	if err != nil {
		return cli.Failed("study create", args[0], err)
	}
	if !created {
		a.noteDifferences(c, st, config, o.search)
	}
	if created && !o.asJSON {
		a.noteNames(st)
	}
	return a.printCreated(args[0], studyview.SummaryOf(snap, st), studyview.Objectives(st), created, o.asJSON)
}

// noteNames says what metrics without a name of their own are called.
func (a *app) noteNames(st *study.Study) {
	switch names := st.ObjectiveNames(); {
	case len(st.Config.MetricNames) > 0:
	case len(names) == 1:
		a.Notef(`the metric is named %q; study create --metric NAME gives it a name of its own`, names[0])
	default:
		a.Notef(`the metrics are named %s; study create --metric NAME, once for each, gives them names of their own`, strings.Join(names, ", "))
	}
}

// CreatedStudy is the output of `foldlog study create --json`.
type CreatedStudy struct {
	Created bool              `json:"created"` // false if --open found one
	Study   studyview.Summary `json:"study"`
}

func (a *app) printCreated(path string, s studyview.Summary, objectives string, created, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(a.Out(), CreatedStudy{created, s})
	}
	word := "opened"
	if created {
		word = "created"
	}
	_, err := fmt.Fprintln(a.Out(), cli.Safe(fmt.Sprintf("%s study %q in %s: %s", word, s.Name, path, objectives)))
	return err
}

// nameOfStudy is that of a journal's file without its ending, at a server too.
func nameOfStudy(path string) string {
	return strings.TrimSuffix(filepath.Base(strings.TrimPrefix(path, "server:")), filepath.Ext(path))
}

// directions are those of a study by their names, to minimize each metric without any.
// What says where the names are from.
func directions(what string, names []string, metrics int) (list []study.Direction, err error) {
	for _, name := range names {
		d, err := study.ParseDirection(name)
		if err != nil {
			return nil, cli.Usagef("%s %q: minimize or maximize", what, name)
		}
		list = append(list, d)
	}
	for len(names) == 0 && len(list) < max(1, metrics) {
		list = append(list, study.Minimize)
	}
	if metrics > 0 && metrics != len(list) {
		return nil, cli.Usagef("%s for %s", cli.Plural(int64(metrics), "metric"), cli.Plural(int64(len(list)), "direction"))
	}
	return list, nil
}

// config is the study that the flags describe.
func (o *createOptions) config(c *cobra.Command, path string) (study.Config, error) {
	config := study.Config{Name: o.name, ResourceUnit: capitalized(o.unit), MetricNames: o.metrics}
	if config.Name == "" {
		config.Name = nameOfStudy(path)
	}
	var err error
	if config.Directions, err = directions("--direction", o.directions, len(o.metrics)); err != nil {
		return config, err
	}
	for i, name := range o.metrics {
		switch {
		case name == "":
			return config, cli.Usagef("--metric is empty")
		case slices.Contains(o.metrics[:i], name):
			return config, cli.Usagef("--metric %q stands twice", name)
		}
		if of, direction, _ := strings.Cut(name, ":"); direction == "minimize" || direction == "maximize" {
			return config, cli.WithHint(cli.Usagef("--metric %q: a name has no direction in it", name), "--metric "+of+" --direction "+direction)
		}
	}
	seed := o.seed
	if !c.Flags().Changed("seed") {
		seed = rand.Uint64N(1 << 53)
	}
	config.Seed = &seed
	if o.space == "" {
		return config, nil
	}
	if config.Space, err = space.Load(o.space); err != nil {
		return config, spaceFailed(o.space, err)
	}
	return config, nil
}

// capitalized spells a unit as the format's example does.
func capitalized(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// createStudy looks before it writes, so that nothing is changed where there is
// a study of that name, and nothing is made for one that cannot be.
func (a *app) createStudy(ctx context.Context, path string, c study.Config, search searchOptions, open bool) (st *study.Study, snap *study.Snapshot, created bool, err error) {
	if _, _, err := study.OpenOrCreate(ctx, study.NewMemory(study.MemoryOptions{}), c); err != nil {
		return nil, nil, false, err
	}
	if snap, err = a.existing(ctx, path, c.Name); err != nil {
		return nil, nil, false, err
	}
	if snap == nil {
		if snap, created, err = a.openOrCreate(ctx, path, c, search); err != nil {
			return nil, nil, false, err
		}
	}
	st, _ = snap.StudyByName(c.Name)
	if !created && !open {
		return nil, nil, false, alreadyThere(st)
	}
	return st, snap, created, nil
}

// existing is what the journal holds if it holds a study of that name.
func (a *app) existing(ctx context.Context, path, name string) (*study.Snapshot, error) {
	r, err := a.OpenReader(ctx, path)
	if errors.Is(err, fs.ErrNotExist) && !errors.Is(err, journal.ErrHeadMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	snap := r.Snapshot()
	if _, ok := snap.StudyByName(name); ok {
		return snap, nil
	}
	return nil, nil
}

func (a *app) openOrCreate(ctx context.Context, path string, c study.Config, search searchOptions) (snap *study.Snapshot, created bool, err error) {
	j, err := a.CreateJournal(ctx, path)
	if errors.Is(err, journal.ErrExist) {
		j, err = a.OpenJournal(ctx, path, nil)
	}
	if err != nil {
		if dir := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) {
			if _, statErr := os.Stat(dir); statErr != nil {
				err = cli.WithHint(err, "make the directory "+dir+" first")
			}
		}
		return nil, false, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if created, err = search.openOrCreate(ctx, j, c); err != nil {
		return nil, false, err
	}
	return j.Snapshot(), created, nil
}

// noteDifferences says where a study that was opened is not what was asked for.
func (a *app) noteDifferences(c *cobra.Command, st *study.Study, asked study.Config, search searchOptions) {
	var differ []string
	check := func(same bool, flag string) {
		if !same && c.Flags().Changed(flag) {
			differ = append(differ, "--"+flag)
		}
	}
	have := st.Config
	check(fmt.Sprint(have.Directions) == fmt.Sprint(asked.Directions), "direction")
	check(fmt.Sprint(have.MetricNames) == fmt.Sprint(asked.MetricNames), "metric")
	check(have.Seed != nil && *have.Seed == *asked.Seed, "seed")
	check(have.ResourceUnit == asked.ResourceUnit, "unit")
	check(sameSpace(have.Space, asked.Space), "space")
	check(search.sampler == sampler.TextOf(st), "sampler")
	check(search.pruner == pruner.TextOf(st), "pruner")
	if len(differ) > 0 {
		a.Notef("study %q is not as asked for: %s", have.Name, strings.Join(differ, ", "))
	}
}

func sameSpace(a, b *study.Space) bool {
	one, errOne := study.AppendSpace(nil, a)
	other, errOther := study.AppendSpace(nil, b)
	return errOne == nil && errOther == nil && bytes.Equal(one, other)
}

// spaceFailed is why a search space cannot be read.
func spaceFailed(path string, err error) error {
	missing := errors.Is(err, fs.ErrNotExist)
	switch err = cli.Failed("read space", path, err); {
	case missing:
		return cli.WithHint(err, "check the path of the space file; foldlog study create --help says what is in one")
	case studyfile.Looks(path):
		return cli.WithHint(err, "it looks like a whole study file, and no space: foldlog study create --file "+path+", or foldlog study run "+path)
	}
	return err
}
