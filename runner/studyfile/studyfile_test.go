package studyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

func TestTheExampleHasEveryKey(t *testing.T) {
	f, err := Parse("dir/study.yaml", []byte(Example))
	if err != nil {
		t.Fatal(err)
	}
	if f.Study.Name != "digits" || f.Sampler != "tpe:startup=20" || f.Pruner != "median:warmup=10" || *f.Study.Seed != 7 ||
		f.Workers != 2 || f.Timeout != 12*time.Hour || f.Journal != filepath.Join("dir", "digits.atj") {
		t.Errorf("file %+v", f)
	}
	want := runner.Config{
		Command: []string{"python3", "{here}/train.py", "--lr", "{lr}", "--layers", "{layers}", "--optimizer", "{optimizer}", "--momentum={momentum:-0}"},
		Trials:  100, Jobs: 2, Retries: 1, Grace: time.Minute, TrialTimeout: 30 * time.Minute, StopGrace: 5 * time.Second,
		Dir: "dir/work/{trial}", Env: []string{"OMP_NUM_THREADS=2", "RUN_NAME={study}-{trial}"}, Here: "dir", Journal: "dir/digits.atj",
		Logs: "dir/digits.atj.logs", LogBytes: 16 << 20, Runs: "dir", State: "dir/digits.atj.state",
	}
	if diff := cmp.Diff(want, f.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if n := len(f.Study.Space.Params); n != 6 || f.Study.Space.Params[2].When == nil {
		t.Errorf("%d parameters", n)
	}
	for _, key := range keyNames {
		if !strings.Contains(Example, "\n"+key+":") && !strings.Contains(Example, "\n# "+key+":") && key != "unit" {
			t.Errorf("the example has no %q", key)
		}
	}
}

func TestTheGuideShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../../docs/guide/workers.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```yaml\n"+Example+"```") {
		t.Error("docs/guide/workers.md does not show runner/studyfile/example.yaml")
	}
}

func TestTheExampleRuns(t *testing.T) {
	f, err := Parse("study.yaml", []byte(strings.Replace(Example, "python3", "sh", 1)))
	if err != nil {
		t.Fatal(err)
	}
	st := study.NewMemory(study.MemoryOptions{})
	if _, _, err := study.OpenOrCreate(t.Context(), st, f.Study); err != nil {
		t.Fatal(err)
	}
	if err := f.Config.Check(st.Snapshot()); err != nil {
		t.Error(err)
	}
}

func TestAFileSaysLittle(t *testing.T) {
	f, err := Parse("tune.yml", []byte("metrics: {loss: minimize, accuracy: Maximize}\nsampler: {name: nsga2, population: 8}\nlogs: false\nruns: /data\nunit: epochs"))
	if err != nil {
		t.Fatal(err)
	}
	want := study.Config{Name: "tune", Directions: []study.Direction{study.Minimize, study.Maximize}, MetricNames: []string{"loss", "accuracy"}, ResourceUnit: "Epochs"}
	if diff := cmp.Diff(want, f.Study); diff != "" || f.Sampler != "nsga2:population=8" {
		t.Errorf("sampler %s, study (-want +got):\n%s", f.Sampler, diff)
	}
	if diff := cmp.Diff(runner.Config{Here: ".", Journal: "tune.atj", Runs: "/data", State: "tune.atj.state"}, f.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestFaultsHaveTheirPlaceAndAHint(t *testing.T) {
	for name, c := range map[string]struct{ text, want, hint string }{
		"empty":                      {"", "f.yaml: nothing in it", ""},
		"a list":                     {"- a", "f.yaml:1:1: a study file must be a mapping", ""},
		"an unknown key":             {"metrics: {l: minimize}\ntrails: 3", `f.yaml:2:1: a study file has no "trails"`, `did you mean "trials"?`},
		"a key twice":                {"seed: 1\nseed: 2", `f.yaml:2:1: "seed" stands twice`, ""},
		"no metrics":                 {"seed: 1", `f.yaml:1:1: "metrics" is missing`, "metrics: {loss: minimize}"},
		"a misspelt direction":       {"metrics:\n  loss: minimise", `f.yaml:2:9: "metrics": metric "loss": want minimize or maximize`, `did you mean "minimize"?`},
		"a direction":                {"metrics:\n  loss: down", `f.yaml:2:9: "metrics": metric "loss": want minimize or maximize`, ""},
		"metrics as a list":          {"metrics: [loss]", `f.yaml:1:10: "metrics": a list of metrics must be a mapping`, "metrics: {loss"},
		"a parameter":                {"space:\n  x: {type: float, low: 3, high: 1}", `f.yaml:2:25: parameter "x": "low" is above "high"`, ""},
		"a type":                     {"space:\n  x: {type: flaot}", `f.yaml:2:13: parameter "x": type "flaot"`, `did you mean "float"?`},
		"a command as a text":        {"command: python train.py", `f.yaml:1:10: "command": want a list`, "as in: command"},
		"braces without quotes":      {"command: [echo, {lr}]", `f.yaml:1:17: "command": a mapping is no text`, "with its quotes"},
		"a time without unit":        {"timeout: 30", `f.yaml:1:10: "timeout": want a time`, "30s"},
		"a time below 0":             {"grace: -3s", `f.yaml:1:8: "grace": want a time`, "30s"},
		"a size without unit":        {"log_size: 30", `f.yaml:1:11: "log_size": want a size`, "16MiB"},
		"too many workers":           {"workers: 0", `f.yaml:1:10: "workers": want a number from 1 to 1024`, ""},
		"a budget below 0":           {"trials: -1", `f.yaml:1:9: "trials": want a whole number`, ""},
		"a sampler":                  {"metrics: {l: minimize}\nsampler: magic", `f.yaml:2:1: "sampler": sampler: invalid: unknown name "magic"`, ""},
		"a sampler's option":         {"metrics: {l: minimize}\nsampler:\n  name: tpe\n  x: [1]", `f.yaml:4:6: "sampler": option "x": want a plain value`, ""},
		"a sampler of one objective": {"metrics: {a: minimize, b: minimize}\nsampler: cmaes", `f.yaml:2:1: "sampler": invalid: sampler cmaes works on one objective`, ""},
		"a pruner":                   {"metrics: {a: minimize, b: minimize}\npruner: median", `f.yaml:2:1: "pruner": `, ""},
		"a variable":                 {"env: {A: [1]}", `f.yaml:1:10: "env": a list is no text`, ""},
		"logs":                       {"logs: true", `f.yaml:1:7: "logs": want a path, or false`, ""},
		"YAML":                       {"name: a\nspace: [1", "f.yaml:2:8: while parsing a flow", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.want) || !strings.Contains(e.Hint(), c.hint) {
				t.Errorf("error %v, want %s (hint %s)", err, c.want, c.hint)
			}
			if c.hint == "" && e != nil && e.Hint() != "" && e.Line > 0 {
				t.Logf("hint %s", e.Hint())
			}
		})
	}
}

func TestFaultsOfTheRunHaveTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a placeholder": {"command: [echo, \"{lr}\"]", "f.yaml:3:1: the command names {lr}"},
		"a directory":   {"workdir: \"runs/{lr}\"\ncommand: [echo]", "f.yaml:3:1: the working directory names {lr}"},
		"a variable":    {"command: [echo]\nenv: {A: \"{\"}", `f.yaml:4:1: variable "A": a { begins`},
		"a program":     {"command: [no-such-program]", "f.yaml:3:1: the command cannot be run"},
		"a short grace": {"command: [echo]\ngrace: 1ms", "f.yaml:4:1: grace of 1ms"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse("f.yaml", []byte("metrics: {l: minimize}\nspace: {x: {type: bool}}\n"+c.text))
			if err != nil {
				t.Fatal(err)
			}
			st := study.NewMemory(study.MemoryOptions{})
			if _, _, err := study.OpenOrCreate(t.Context(), st, f.Study); err != nil {
				t.Fatal(err)
			}
			if err := f.Explain(f.Config.Check(st.Snapshot())); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Example))
	f.Add([]byte("metrics: {a: minimize}\ncommand: [a, 1, true]\nspace: {x: {type: int, low: 1, high: 2}, y: {type: bool, when: {x: 2}}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f.yaml", text)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error %T: %v", err, err)
		}
		if err == nil && len(file.Study.Directions) == 0 {
			t.Error("a study without an objective")
		}
	})
}
