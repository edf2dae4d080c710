package pipefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

const (
	// MaxBytes bounds a pipeline file: the time that the parser takes for a hostile
	// text grows with the square of its length.
	MaxBytes = 64 << 10
	// maxDepth bounds its nesting.
	maxDepth = 64
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
	// Steps are what is done.
	Steps *pipeline.Pipeline
}

// Error says where a pipeline file is wrong.
type Error struct {
	// File, Line and Column are the place, counted from 1; a line of 0 is unknown.
	File         string
	Line, Column int
	// Err says what is wrong, and Advice what to do, "" if that is plain.
	Err    error
	Advice string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns what is wrong.
func (e *Error) Unwrap() error { return e.Err }

// Hint is the advice, for the command line.
func (e *Error) Hint() string { return e.Advice }

// Load reads a pipeline file. Commands run in its directory.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return Parse(path, text, dir)
}

// Parse reads a pipeline from a text; file is for messages, and commands run in
// dir. Every error is an [*Error].
func Parse(file string, text []byte, dir string) (*File, error) {
	if len(text) > MaxBytes {
		return nil, &Error{File: file, Err: fmt.Errorf("longer than %d bytes", MaxBytes)}
	}
	if line := tooDeep(text); line > 0 {
		return nil, &Error{File: file, Line: line, Column: 1, Err: errors.New("nested too deep")}
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	r := &reader{file: file, dir: dir, nodes: map[pipeline.Node]ast.Node{}}
	switch {
	case len(doc.Docs) > 1:
		return nil, r.failf(doc.Docs[1].Body, "more than one document")
	case len(doc.Docs) == 0 || doc.Docs[0].Body == nil:
		return nil, &Error{File: file, Err: errors.New("it is empty"), Advice: "a pipeline has a name and steps"}
	}
	return r.pipeline(doc.Docs[0].Body)
}

// tooDeep returns the line where a text nests too deep, 0 if none does. It looks
// before the parser does, whose memory grows with the square of the depth, and
// counts every bracket, also one in a text.
func tooDeep(text []byte) int {
	depth, line := 0, 1
	marks, indent, blank := 0, 0, true // of this line: "- ", "? " and spaces before its text
	for _, c := range text {
		switch c {
		case '\n':
			line, marks, indent, blank = line+1, 0, 0, true
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		switch {
		case blank && (c == '-' || c == '?' || c == ':'):
			marks++
		case blank && (c == ' ' || c == '\t'):
			indent++
		default:
			blank = false
		}
		if depth > maxDepth || marks > maxDepth || indent > 8*maxDepth {
			return line
		}
	}
	return 0
}

// syntaxError keeps the parser's first line, which has the place in brackets.
func syntaxError(file string, err error) error {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	e := &Error{File: file}
	if place, rest, ok := strings.Cut(strings.TrimPrefix(msg, "["), "] "); ok {
		line, column, found := strings.Cut(place, ":")
		n, err := strconv.Atoi(line)
		if found && err == nil {
			e.Line, msg = n, rest
			e.Column, _ = strconv.Atoi(column)
		}
	}
	e.Err = errors.New(msg)
	return e
}

// reader turns the parsed text into a pipeline. It remembers where each node of
// the pipeline stands.
type reader struct {
	file, dir string
	nodes     map[pipeline.Node]ast.Node
	depth     int
}

func (r *reader) fail(n ast.Node, err error, advice string) error {
	e := &Error{File: r.file, Err: err, Advice: advice}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		e.Line, e.Column = n.GetToken().Position.Line, n.GetToken().Position.Column
	}
	return e
}

func (r *reader) failf(n ast.Node, format string, args ...any) error {
	return r.fail(n, fmt.Errorf(format, args...), "")
}

// pipeline reads the whole file.
func (r *reader) pipeline(body ast.Node) (*File, error) {
	m, err := r.mapping(body, "a pipeline", "pipeline", "experiment", "items", "steps")
	if err != nil {
		return nil, err
	}
	f := &File{Experiment: DefaultExperiment, Steps: &pipeline.Pipeline{}}
	if f.Pipeline, err = r.name(m, "pipeline", ""); err != nil {
		return nil, err
	}
	if f.Pipeline == "" {
		return nil, r.fail(body, errors.New("the pipeline has no name"), "begin with a line pipeline: NAME")
	}
	if f.Experiment, err = r.name(m, "experiment", DefaultExperiment); err != nil {
		return nil, err
	}
	if f.Items, err = r.text(m, "items"); err != nil {
		return nil, err
	}
	if f.Items != "" && !filepath.IsAbs(f.Items) {
		f.Items = filepath.Join(r.dir, f.Items)
	}
	if m.values["steps"] == nil {
		return nil, r.fail(body, errors.New("the pipeline has no steps"), "list them under steps:")
	}
	if f.Steps.Steps, err = r.steps(m.values["steps"]); err != nil {
		return nil, err
	}
	return f, r.check(f.Steps)
}

// check gives the errors of the pipeline itself their place.
func (r *reader) check(p *pipeline.Pipeline) error {
	err := p.Check()
	var wrong *pipeline.NodeError
	if errors.As(err, &wrong) {
		return r.fail(r.nodes[wrong.Node], wrong.Err, "")
	}
	return err
}

func (r *reader) name(m *mapping, key, unset string) (string, error) {
	name, err := r.text(m, key)
	if err != nil || m.values[key] == nil {
		return unset, err
	}
	if err := datagen.CheckName(name); err != nil {
		return "", r.fail(m.values[key], err, "")
	}
	return name, nil
}
