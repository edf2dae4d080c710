package pipefile

import (
	"errors"
	"path/filepath"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/internal/yamldoc"
)

// DefaultExperiment is the experiment of a file that names none.
const DefaultExperiment = "main"

// File is what a pipeline file says.
type File struct {
	// Pipeline and Experiment name the log.
	Pipeline, Experiment string
	// Items is the path of the sources, relative to the file's directory unless
	// absolute, "" if the file does not say.
	Items string
	// Key is the member that is the key of an item, whose line is then an object
	// with the fields themselves; "" if the lines have keys, fields and tags.
	Key string
	// Steps are what is done.
	Steps *pipeline.Pipeline
}

// Error says where a pipeline file is wrong.
type Error = yamldoc.Error

// Load reads a pipeline file. Commands run in its directory.
func Load(path string) (*File, error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	root, err := yamldoc.Load(path)
	return read(root, err, dir)
}

// Parse reads a pipeline from a text; file is for messages, and commands run in
// dir. Every error is an [*Error].
func Parse(file string, text []byte, dir string) (*File, error) {
	root, err := yamldoc.Parse(file, text)
	return read(root, err, dir)
}

func read(root yamldoc.Node, err error, dir string) (*File, error) {
	var wrong *Error
	switch {
	case errors.Is(err, yamldoc.ErrEmpty) && errors.As(err, &wrong):
		wrong.Advice = "a pipeline has a name and steps"
		return nil, err
	case err != nil:
		return nil, err
	}
	r := &reader{dir: dir, nodes: map[pipeline.Node]*yamldoc.Node{}}
	return r.pipeline(&root)
}

// reader turns the parsed text into a pipeline. It remembers where each node of
// the pipeline stands.
type reader struct {
	dir   string
	nodes map[pipeline.Node]*yamldoc.Node
}

// pipeline reads the whole file.
func (r *reader) pipeline(body *yamldoc.Node) (*File, error) {
	m, err := r.mapping(body, "a pipeline", "pipeline", "experiment", "items", "key", "steps")
	if err != nil {
		return nil, err
	}
	f := &File{Experiment: DefaultExperiment, Steps: &pipeline.Pipeline{}}
	if f.Pipeline, err = r.name(m, "pipeline", ""); err != nil {
		return nil, err
	}
	if f.Pipeline == "" {
		return nil, body.Fail(errors.New("the pipeline has no name"), "begin with a line pipeline: NAME")
	}
	if f.Experiment, err = r.name(m, "experiment", DefaultExperiment); err != nil {
		return nil, err
	}
	if f.Items, err = r.text(m, "items"); err != nil {
		return nil, err
	}
	if f.Key, err = r.text(m, "key"); err != nil {
		return nil, err
	}
	if f.Items != "" && !filepath.IsAbs(f.Items) {
		f.Items = filepath.Join(r.dir, f.Items)
	}
	if m.values["steps"] == nil {
		return nil, body.Fail(errors.New("the pipeline has no steps"), "list them under steps:")
	}
	if f.Steps.Steps, err = r.steps(m.values["steps"]); err != nil {
		return nil, err
	}
	return f, r.check(body, f.Steps)
}

// check gives the errors of the pipeline itself their place.
func (r *reader) check(body *yamldoc.Node, p *pipeline.Pipeline) error {
	err := p.Check()
	var wrong *pipeline.NodeError
	if !errors.As(err, &wrong) {
		return err
	}
	if n := r.nodes[wrong.Node]; n != nil {
		body = n
	}
	return body.Fail(wrong.Err, "")
}

func (r *reader) name(m *mapping, key, unset string) (string, error) {
	name, err := r.text(m, key)
	if err != nil || m.values[key] == nil {
		return unset, err
	}
	if err := datagen.CheckName(name); err != nil {
		return "", m.values[key].Fail(err, "")
	}
	return name, nil
}
