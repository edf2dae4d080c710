// Command benchsearch compares the samplers with Optuna's of the same kind, at
// their defaults: the median over some seeds of what is missing to the optimum
// after 100 and after 300 trials.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/study/sampler"
)

//go:embed peer.py
var optunaScript string

type job struct{ sampler, problems string }

// jobs are the kinds of samplers that are compared, on the problems that they
// are for.
var jobs = []job{
	{"random", "branin hartmann6 rosenbrock10 rastrigin10 conditional zdt1"},
	{"qmc", "branin hartmann6 rosenbrock10 rastrigin10"},
	{"tpe", "branin hartmann6 rosenbrock10 rastrigin10 conditional zdt1"},
	{"tpe:univariate", "branin hartmann6 rosenbrock10 rastrigin10 conditional zdt1"},
	{"cmaes", "branin hartmann6 rosenbrock10 rastrigin10 conditional"},
	{"nsga2", "zdt1"},
}

func main() {
	seeds := flag.Int("seeds", 20, "how many `seeds`")
	python := flag.String("python", "python3", "the `interpreter` that has Optuna; empty leaves Optuna out")
	only := flag.String("sampler", "", "only this `sampler`, with its options")
	flag.Parse()
	if *only != "" {
		jobs = choose(*only)
	}
	if err := run(*seeds, *python); err != nil {
		fmt.Fprintln(os.Stderr, "benchsearch:", err)
		os.Exit(1)
	}
}

// choose is the job of one sampler.
func choose(sampler string) []job {
	for _, j := range jobs {
		if kind(j.sampler) == kind(sampler) {
			return []job{{sampler, j.problems}}
		}
	}
	return nil
}

// key is one comparison, before the mark.
type key struct{ problem, sampler string }

// scores are those of every seed, per mark.
type scores map[key][][]float64

func run(seeds int, python string) error {
	ours, theirs := scores{}, scores{}
	for _, p := range problems() {
		for _, j := range jobs {
			if !slices.Contains(strings.Fields(j.problems), p.name) {
				continue
			}
			k := key{p.name, j.sampler}
			s, err := sampler.Parse(j.sampler)
			if err != nil {
				return err
			}
			for seed := range seeds {
				v, err := play(p, s, uint64(seed))
				if err != nil {
					return fmt.Errorf("%s on %s: %w", k.sampler, k.problem, err)
				}
				ours[k] = append(ours[k], v)
			}
			if python != "" && j.sampler != "qmc" {
				theirs[k] = nil
			}
		}
	}
	if err := askOptuna(theirs, seeds, python); err != nil {
		return err
	}
	printTable(os.Stdout, ours, theirs)
	return nil
}

// askOptuna fills in the scores of Optuna. Kinds that differ in options alone
// are run once.
func askOptuna(theirs scores, seeds int, python string) error {
	if len(theirs) == 0 {
		return nil
	}
	cmd := exec.Command(python, "-c", optunaScript)
	cmd.Stderr = os.Stderr
	cmd.Stdin = strings.NewReader(orders(theirs, seeds))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	results := scores{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r struct {
			Problem, Sampler string
			Scores           []float64
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("output of Optuna: %w", err)
		}
		k := key{r.Problem, r.Sampler}
		results[k] = append(results[k], r.Scores)
	}
	for k := range theirs {
		theirs[k] = results[key{k.problem, kind(k.sampler)}]
	}
	return errors.Join(lines.Err(), cmd.Wait())
}

func kind(sampler string) string {
	name, _, _ := strings.Cut(sampler, ":")
	return name
}

func orders(theirs scores, seeds int) string {
	var b strings.Builder
	done := map[key]bool{}
	for k := range theirs {
		k.sampler = kind(k.sampler)
		if done[k] {
			continue
		}
		done[k] = true
		for seed := range seeds {
			fmt.Fprintf(&b, "[%q, %q, %d]\n", k.problem, k.sampler, seed)
		}
	}
	return b.String()
}

func printTable(w io.Writer, ours, theirs scores) {
	fmt.Fprintf(w, "%-14s%-16s%6s%14s%14s\n", "problem", "sampler", "trials", "foldlog", "optuna")
	for _, p := range problems() {
		for _, j := range jobs {
			k := key{p.name, j.sampler}
			for m, n := range marks {
				if ours[k] == nil {
					continue
				}
				own := median(ours[k], m)
				fmt.Fprintf(w, "%-14s%-16s%6d%14.5g", p.name, j.sampler, n, own)
				if theirs[k] != nil {
					their := median(theirs[k], m)
					fmt.Fprintf(w, "%14.5g  %s", their, verdict(own, their))
				}
				fmt.Fprintln(w)
			}
		}
	}
}

// verdict calls medians within five parts in a hundred the same.
func verdict(own, their float64) string {
	switch {
	case math.Abs(own-their) <= 0.05*math.Abs(their):
		return "same"
	case own < their:
		return "better"
	}
	return "worse"
}

func median(all [][]float64, mark int) float64 {
	var v []float64
	for _, s := range all {
		v = append(v, s[mark])
	}
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}
