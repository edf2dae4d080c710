// Package studyfile reads a whole study from one YAML file: what varies, how it is
// searched, and how its trials are run. [Example] is a complete one with a comment
// for every key. Errors name the file, line and column of the key.
package studyfile

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/runner"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// Example is a complete study file.
//
//go:embed example.yaml
var Example string

// Error says where a file is wrong.
type Error = yamldoc.Error

// File is a study file. Paths in it are relative to its directory; here they are
// joined to that.
type File struct {
	// Path is the file itself.
	Path string
	// Journal is where the study is kept, a path or the address of one at a server:
	// the file's name with .atj if the file does not say.
	Journal string
	// Study is the study's configuration. The name is that of the file if the
	// file does not say; Seed is nil then.
	Study study.Config
	// Sampler and Pruner are the texts of both, "" for the defaults.
	Sampler, Pruner string
	// Config is how trials are run. Study, Space and Metrics are left to the
	// study, Journal is as above. Command is nil if the file has none. Logs, State
	// and Runs are those of the journal, as study run has them without a file,
	// unless the file says otherwise.
	Config runner.Config
	// Workers is the number of processes, 0 if the file does not say.
	Workers int
	// Timeout ends the run, 0 never.
	Timeout time.Duration
	// MaxFailures is how many failed trials in a row end the run, 0 for never,
	// [runner.DefaultMaxFailures] if the file does not say.
	MaxFailures uint64

	root yamldoc.Node
	at   map[string]yamldoc.Node // keys
}

// Is tells by its name whether a path is that of a study file.
func Is(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".yaml" || ext == ".yml"
}

// Looks tells by its keys whether the file at path is meant to be a study file, faulty or
// not. What cannot be read is none.
func Looks(path string) bool {
	root, err := yamldoc.Load(path)
	if err != nil {
		return false
	}
	list, err := root.Map("a study file")
	return err == nil && slices.ContainsFunc(list, func(e yamldoc.Entry) bool {
		return e.Key == "metrics" || e.Key == "space" || e.Key == "command"
	})
}

// Load reads a study file. The errors are those of [Parse] and of package os.
func Load(path string) (*File, error) {
	root, err := yamldoc.Load(path)
	if err != nil {
		return nil, err
	}
	return read(path, root)
}

// Parse reads the text of a study file that would be at path. Every error is an
// [*Error].
func Parse(path string, text []byte) (*File, error) {
	root, err := yamldoc.Parse(path, text)
	if err != nil {
		return nil, err
	}
	return read(path, root)
}

func read(path string, root yamldoc.Node) (*File, error) {
	f := &File{Path: path, root: root, at: make(map[string]yamldoc.Node)}
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	f.Study.Name, f.Study.ResourceUnit = name, "Steps"
	f.Config.Here, f.MaxFailures = filepath.Dir(path), runner.DefaultMaxFailures
	list, err := root.Map("a study file")
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		take, ok := keys[e.Key]
		if !ok {
			return nil, e.At.Fail(fmt.Errorf("a study file has no %q", e.Key), yamldoc.Nearest(e.Key, keyNames))
		}
		f.at[e.Key] = e.At
		if err := take(f, e.Value); err != nil {
			return nil, placed(e.Key, e.Value, err)
		}
	}
	f.place()
	return f, f.check()
}

// placed names the key that an error is about.
func placed(key string, n yamldoc.Node, err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return n.Fail(fmt.Errorf("%q: %w", key, err), "")
	}
	if key != "space" {
		e.Err = fmt.Errorf("%q: %w", key, e.Err)
	}
	return err
}

// place gives what the file leaves open, and finds its paths.
func (f *File) place() {
	if f.Journal == "" {
		f.Journal = f.Study.Name
		if strings.ContainsAny(f.Journal, `/\`) {
			f.Journal = strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))
		}
		f.Journal += ".atj"
	}
	beside := f.join(f.Journal)
	if _, at, away, _ := remote.Parse(f.Journal, "http://server"); away {
		beside = f.join(path.Base("/" + at))
	} else {
		f.Journal = beside
	}
	f.Config.Journal = f.Journal
	for _, p := range []struct {
		key   string
		path  *string
		usual string
	}{
		{"logs", &f.Config.Logs, runner.LogsPath(beside)},
		{"state", &f.Config.State, runner.StatePath(beside)},
		{"runs", &f.Config.Runs, runner.RunsPath(beside)},
	} {
		switch _, said := f.at[p.key]; {
		case !said:
			*p.path = p.usual
		case *p.path != "":
			*p.path = f.join(*p.path)
		}
	}
	f.Config.Dir = f.workdir()
}

// join makes a path relative to the file's directory.
func (f *File) join(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.Path), name)
}

// workdir is where the command runs: beside the file, wherever it is started
// from. It may have placeholders.
func (f *File) workdir() string {
	dir := strings.NewReplacer("{", "{{", "}", "}}").Replace(filepath.Dir(f.Path))
	switch path := f.Config.Dir; {
	case path == "" && dir == ".":
		return ""
	case filepath.IsAbs(path) || strings.HasPrefix(path, "{here}"):
		return path
	default:
		return filepath.Join(dir, path)
	}
}

// check refuses what does not fit together.
func (f *File) check() error {
	if len(f.Study.Directions) == 0 {
		return f.root.Fail(errors.New(`"metrics" is missing`), "say what the command prints and what is better, as in: metrics: {loss: minimize}")
	}
	if f.Sampler != "" {
		s, err := sampler.Parse(f.Sampler)
		if err == nil {
			err = sampler.Check(s, f.Study)
		}
		if err != nil {
			return f.At("sampler", err)
		}
	}
	if f.Pruner != "" {
		p, err := pruner.Parse(f.Pruner)
		if err == nil {
			err = pruner.Check(p, f.Study)
		}
		if err != nil {
			return f.At("pruner", err)
		}
	}
	return nil
}

// At is an [*Error] at a key, or at the beginning of the file if it does not have
// it.
func (f *File) At(key string, err error) error {
	n, ok := f.at[key]
	if !ok {
		n = f.root
	}
	var wrong *runner.ConfigError
	if errors.As(err, &wrong) {
		return n.Fail(err, "")
	}
	return n.Fail(fmt.Errorf("%q: %w", key, err), "")
}

// Explain places an error of [runner.Config.Check] at the key that it is about.
func (f *File) Explain(err error) error {
	var wrong *runner.ConfigError
	if errors.As(err, &wrong) && slices.Contains(keyNames, wrong.Field) {
		return f.At(wrong.Field, err)
	}
	return err
}
