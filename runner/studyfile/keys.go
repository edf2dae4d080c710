package studyfile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/foldlog/foldlog/internal/spacedoc"
	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
)

// keys are the keys of a study file, and how the value of each is taken.
var keys = map[string]func(f *File, n yamldoc.Node) error{
	"name":    func(f *File, n yamldoc.Node) error { return text(n, &f.Study.Name) },
	"journal": func(f *File, n yamldoc.Node) error { return text(n, &f.Journal) },
	"metrics": takeMetrics,
	"unit": func(f *File, n yamldoc.Node) error {
		err := text(n, &f.Study.ResourceUnit)
		r, size := utf8.DecodeRuneInString(f.Study.ResourceUnit)
		f.Study.ResourceUnit = string(unicode.ToUpper(r)) + f.Study.ResourceUnit[size:]
		return err
	},
	"space": func(f *File, n yamldoc.Node) (err error) {
		f.Study.Space, err = spacedoc.FromNode(n)
		return err
	},
	"sampler": func(f *File, n yamldoc.Node) error { return algorithm(n, &f.Sampler) },
	"pruner":  func(f *File, n yamldoc.Node) error { return algorithm(n, &f.Pruner) },
	"seed": func(f *File, n yamldoc.Node) error {
		seed, err := n.Uint()
		f.Study.Seed = &seed
		return err
	},
	"command":       func(f *File, n yamldoc.Node) error { return takeCommand(n, &f.Config.Command) },
	"trials":        func(f *File, n yamldoc.Node) (err error) { f.Config.Trials, err = n.Uint(); return err },
	"retries":       func(f *File, n yamldoc.Node) (err error) { f.Config.Retries, err = n.Uint(); return err },
	"max_failures":  func(f *File, n yamldoc.Node) (err error) { f.MaxFailures, err = n.Uint(); return err },
	"workers":       func(f *File, n yamldoc.Node) error { return count(n, 1024, &f.Workers) },
	"jobs":          func(f *File, n yamldoc.Node) error { return count(n, runner.MaxJobs, &f.Config.Jobs) },
	"timeout":       func(f *File, n yamldoc.Node) error { return duration(n, &f.Timeout) },
	"trial_timeout": func(f *File, n yamldoc.Node) error { return duration(n, &f.Config.TrialTimeout) },
	"grace":         func(f *File, n yamldoc.Node) error { return duration(n, &f.Config.Grace) },
	"stop_grace":    func(f *File, n yamldoc.Node) error { return duration(n, &f.Config.StopGrace) },
	"env":           takeEnv,
	"workdir":       func(f *File, n yamldoc.Node) error { return text(n, &f.Config.Dir) },
	"logs":          func(f *File, n yamldoc.Node) error { return pathOrNone(n, &f.Config.Logs) },
	"log_size":      func(f *File, n yamldoc.Node) error { return size(n, &f.Config.LogBytes) },
	"runs":          func(f *File, n yamldoc.Node) error { return pathOrNone(n, &f.Config.Runs) },
	"state":         func(f *File, n yamldoc.Node) error { return pathOrNone(n, &f.Config.State) },
}

var keyNames []string

func init() { keyNames = slices.Sorted(maps.Keys(keys)) }

func text(n yamldoc.Node, to *string) (err error) {
	*to, err = n.Text()
	return err
}

// takeMetrics reads the objectives: names and directions, in order.
func takeMetrics(f *File, n yamldoc.Node) error {
	list, err := n.Map("a list of metrics")
	if err != nil {
		return hinted(err, "as in: metrics: {loss: minimize}")
	}
	if len(list) == 0 {
		return n.Fail(errors.New("no metric"), "as in: metrics: {loss: minimize}")
	}
	for _, e := range list {
		name, ok := e.Value.Scalar().(string)
		d, err := study.ParseDirection(name)
		if !ok || err != nil {
			return e.Value.Fail(fmt.Errorf("metric %q: want minimize or maximize", e.Key), near(name, "minimize", "maximize"))
		}
		f.Study.MetricNames = append(f.Study.MetricNames, e.Key)
		f.Study.Directions = append(f.Study.Directions, d)
	}
	return nil
}

// near is a hint for a misspelt word, "" if it resembles none.
func near(word string, known ...string) string {
	if best, ok := yamldoc.Near(word, known); ok {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return ""
}

// algorithm reads NAME:OPTION=VALUE,..., or {name: NAME, option: value}.
func algorithm(n yamldoc.Node, to *string) error {
	if !n.IsMap() {
		return text(n, to)
	}
	list, err := n.Map("it")
	if err != nil {
		return err
	}
	name, options := "", []string{}
	for _, e := range list {
		raw, err := e.Value.JSON()
		if err != nil {
			return err
		}
		value := string(raw)
		if s, ok := e.Value.Scalar().(string); ok {
			value = s
		}
		if strings.ContainsAny(e.Key+value, ":,={[") {
			return e.Value.Failf("option %q: want a plain value", e.Key)
		}
		if e.Key == "name" {
			name = value
		} else {
			options = append(options, e.Key+"="+value)
		}
	}
	if name == "" {
		return n.Failf(`"name" is missing`)
	}
	if *to = name; len(options) > 0 {
		*to += ":" + strings.Join(options, ",")
	}
	return nil
}

func takeCommand(n yamldoc.Node, to *[]string) error {
	list, ok := n.Items()
	if !ok || len(list) == 0 {
		return n.Fail(errors.New("want a list: the program, then its arguments"), `as in: command: [python3, train.py, --lr, "{lr}"]; braces want quotes`)
	}
	for _, arg := range list {
		s, err := word(arg)
		if err != nil {
			return err
		}
		*to = append(*to, s)
	}
	return nil
}

// word is a text, or a number or truth value as it is written.
func word(n yamldoc.Node) (string, error) {
	switch v := n.Scalar().(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return "", n.Failf("a text with a zero byte")
		}
		return v, nil
	case nil:
		return "", n.Fail(errors.New("nothing stands here"), `an empty text is ""`)
	}
	if n.IsMap() {
		return "", n.Fail(errors.New("a mapping is no text"), `write "{name}" with its quotes`)
	}
	raw, err := n.JSON()
	if err == nil && raw[0] == '[' {
		err = n.Failf("a list is no text")
	}
	return string(raw), err
}

func takeEnv(f *File, n yamldoc.Node) error {
	list, err := n.Map("it")
	if err != nil {
		return hinted(err, "as in: env: {CUDA_VISIBLE_DEVICES: 0}")
	}
	for _, e := range list {
		value, err := word(e.Value)
		if err != nil {
			return err
		}
		if strings.ContainsAny(e.Key, "={}\x00") {
			return e.At.Failf("%q is no name of a variable", e.Key)
		}
		f.Config.Env = append(f.Config.Env, e.Key+"="+value)
	}
	return nil
}

func count(n yamldoc.Node, most int64, to *int) error {
	i, err := n.Int()
	if err != nil || i < 1 || i > most {
		return n.Failf("want a number from 1 to %d", most)
	}
	*to = int(i)
	return nil
}

func duration(n yamldoc.Node, to *time.Duration) error {
	s, _ := n.Scalar().(string)
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return n.Fail(errors.New("want a time above 0"), "with its unit, as in 30s, 5m or 2h30m")
	}
	*to = d
	return nil
}

// sizes are the units of a number of bytes.
var sizes = []struct {
	unit  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1000}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

func size(n yamldoc.Node, to *int64) error {
	fail := n.Fail(errors.New("want a size"), "with its unit, as in 16MiB")
	s, ok := n.Scalar().(string)
	if !ok {
		return fail
	}
	for _, u := range sizes {
		digits, has := strings.CutSuffix(s, u.unit)
		if !has {
			continue
		}
		i, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || i < 1 || i > math.MaxInt64/u.bytes {
			return fail
		}
		*to = i * u.bytes
		return nil
	}
	return fail
}

// pathOrNone reads a path, or false for none.
func pathOrNone(n yamldoc.Node, to *string) error {
	if n.Scalar() == false {
		*to = ""
		return nil
	}
	if err := text(n, to); err != nil {
		return n.Failf("want a path, or false for none")
	}
	return nil
}

func hinted(err error, hint string) error {
	var e *Error
	if errors.As(err, &e) && e.Advice == "" {
		e.Advice = hint
	}
	return err
}
