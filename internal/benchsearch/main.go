// Command benchsearch compares the samplers with Optuna's of the same kind, at
// their defaults: the median over some seeds of what is missing to the optimum
// after 100 and after 300 trials. Both are given the same functions, in this
// process.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/study/sampler"
)

type job struct{ sampler, problems string }

const single = "branin hartmann6 rosenbrock10 rastrigin10 conditional network kernel"

// jobs are the kinds of samplers that are compared, on the problems that they
// are for. Optuna's quasi-random sampler does not scramble by default.
var jobs = []job{
	{"random", single + " zdt1"},
	{"qmc", single + " zdt1"},
	{"qmc:plain", single + " zdt1"},
	{"tpe", single + " zdt1"},
	{"cmaes", single},
	{"nsga2", "zdt1"},
}

// options are the flags.
type options struct {
	seeds, first uint64
	python       string
	samplers     string
	problems     string
	cache        string
	markdown     bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seeds, "seeds", 20, "how many `seeds`")
	flag.Uint64Var(&o.first, "first", 0, "the first `seed`")
	flag.StringVar(&o.python, "python", "python3", "the `interpreter` that has Optuna; empty leaves Optuna out")
	flag.StringVar(&o.samplers, "sampler", "", "only these `samplers`, with their options, separated by spaces")
	flag.StringVar(&o.problems, "problem", "", "only these `problems`, separated by spaces")
	flag.StringVar(&o.cache, "cache", "", "the `file` that keeps Optuna's scores (default: in the user's cache folder)")
	flag.BoolVar(&o.markdown, "markdown", false, "print a table in Markdown")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "benchsearch:", err)
		os.Exit(1)
	}
}

// chosen are the jobs of some samplers, whose options may differ.
func chosen(samplers string) ([]job, error) {
	if samplers == "" {
		return jobs, nil
	}
	var list []job
	for _, s := range strings.Fields(samplers) {
		i := slices.IndexFunc(jobs, func(j job) bool { return j.sampler == kind(s) })
		if i < 0 {
			return nil, fmt.Errorf("sampler %q is not compared", s)
		}
		list = append(list, job{s, jobs[i].problems})
	}
	return list, nil
}

func kind(sampler string) string {
	name, _, _ := strings.Cut(sampler, ":")
	return name
}

func run(o options) error {
	list, err := chosen(o.samplers)
	if err != nil {
		return err
	}
	var other *peer
	if o.python != "" {
		if o.cache == "" {
			dir, err := os.UserCacheDir()
			if err != nil {
				return err
			}
			o.cache = filepath.Join(dir, "foldlog", "benchsearch.jsonl")
		}
		if other, err = newPeer(o.python, o.cache); err != nil {
			return err
		}
		defer other.close()
	}
	t := table{markdown: o.markdown}
	t.head(other)
	for _, p := range problems() {
		if o.problems != "" && !slices.Contains(strings.Fields(o.problems), p.name) {
			continue
		}
		for _, j := range list {
			if !slices.Contains(strings.Fields(j.problems), p.name) {
				continue
			}
			ours, theirs, err := compare(o, p, j.sampler, other)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", j.sampler, p.name, err)
			}
			t.rows(p.name, j.sampler, ours, theirs)
		}
	}
	t.foot()
	return nil
}

// compare plays a problem with every seed. The scores are by seed and mark;
// theirs are nil without Optuna.
func compare(o options, p problem, text string, other *peer) (ours, theirs [][]float64, err error) {
	s, err := sampler.Parse(text)
	if err != nil {
		return nil, nil, err
	}
	if ours, err = playAll(o, p, s); err != nil || other == nil {
		return ours, nil, err
	}
	for seed := o.first; seed < o.first+o.seeds; seed++ {
		v, err := other.play(p, kind(text), seed)
		if err != nil {
			return nil, nil, err
		}
		theirs = append(theirs, v)
	}
	return ours, theirs, nil
}

// playAll plays a problem with a sampler of ours, as many seeds at once as there
// are processors.
func playAll(o options, p problem, s sampler.Sampler) ([][]float64, error) {
	scores, errs := make([][]float64, o.seeds), make([]error, o.seeds)
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	for i := range o.seeds {
		free <- struct{}{}
		all.Go(func() {
			scores[i], errs[i] = play(p, s, o.first+i)
			<-free
		})
	}
	all.Wait()
	return scores, errors.Join(errs...)
}
