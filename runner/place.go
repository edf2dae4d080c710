package runner

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// ownNames are the placeholders besides the parameters. A parameter of such a
// name comes first.
var ownNames = []string{"trial", "attempt", "study", "here"}

// values are what the placeholders stand for in one trial.
func (p *prepared) values(t *study.Trial) values {
	v := values{texts: map[string]string{
		"trial":   strconv.FormatUint(t.Number, 10),
		"attempt": strconv.FormatUint(t.Attempt, 10),
		"study":   p.name,
		"here":    absolute(p.Here),
	}, absent: make(map[string]bool)}
	if p.Space != nil {
		for _, s := range p.Space.Params {
			v.absent[s.Name] = true
			delete(v.texts, s.Name)
		}
	}
	for _, param := range t.Params {
		v.texts[param.Name] = param.Text()
	}
	return v
}

// absolute makes a path independent of the working directory, as far as that
// is known.
func absolute(path string) string {
	if _, _, away, _ := remote.Parse(path, ""); away {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// portable is how a path beside the journal is kept in it: relative to its
// directory where it lies below, so that both can be moved together.
func (p *prepared) portable(path string) string {
	path = absolute(path)
	rel, err := filepath.Rel(filepath.Dir(absolute(p.Journal)), path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return filepath.ToSlash(rel)
}

// folder is the name of the study as that of a directory.
func (p *prepared) folder() string { return metrics.EncodeSlug(p.name) }

// runSlug is the slug of the run that a trial's metrics are kept as: the name of
// the study, in which what a slug may not hold is "-", and the trial's number.
func runSlug(name string, number uint64) string {
	end := "-" + strconv.FormatUint(number, 10)
	clean := strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' || r >= 0x7f && r < 0xa0 {
			return '-'
		}
		return r
	}, strings.ToValidUTF8(name, "-"))
	for len(clean)+len(end) > metrics.MaxSlug {
		r := []rune(clean)
		clean = string(r[:len(r)-1])
	}
	return clean + end
}

// LogsPath is where study run keeps the logs of a journal's trials unless it is
// told otherwise.
func LogsPath(journal string) string { return journal + ".logs" }

// StatePath is where study run keeps the checkpoints of a journal's trials unless
// it is told otherwise.
func StatePath(journal string) string { return journal + ".state" }

// RunsPath is the root under which study run keeps the metrics of a journal's
// trials unless it is told otherwise.
func RunsPath(journal string) string { return filepath.Dir(journal) }

// makeDir makes the working directory of a trial, "" for our own.
func (a *attempt) makeDir(v values) (string, error) {
	dir, err := a.dir.expand(v)
	if err != nil || dir == "" {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o777)
}

// environment is what the command finds in its environment.
func (a *attempt) environment(v values) ([]string, error) {
	env := append(os.Environ(),
		"FOLDLOG_PARAMS="+string(study.AppendParams(nil, a.t.Params)),
		"FOLDLOG_STUDY="+a.name,
		"FOLDLOG_TRIAL="+strconv.FormatUint(a.t.Number, 10),
		"FOLDLOG_ATTEMPT="+strconv.FormatUint(a.t.Attempt, 10),
	)
	env = append(env, leftoverEnv(a.Journal)...)
	if a.stateDir != "" {
		env = append(env, "FOLDLOG_STATE_DIR="+a.stateDir)
	}
	for _, t := range a.env {
		text, err := t.expand(v)
		if err != nil {
			return nil, err
		}
		env = append(env, text)
	}
	return env, nil
}
