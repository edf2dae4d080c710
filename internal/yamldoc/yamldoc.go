// Package yamldoc reads YAML files that people write, JSON among them, as plain
// values with their places: one document, text keys that stand once, no anchors,
// aliases or tags.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

const (
	// MaxBytes bounds a file.
	MaxBytes = 1 << 20
	// maxDepth bounds its nesting.
	maxDepth = 64
	// maxKey bounds its keys, which messages repeat.
	maxKey = 1 << 10
)

// Error says where a file is wrong.
type Error struct {
	// File, Line and Column are the place, both counted from 1, 0 if unknown.
	File         string
	Line, Column int
	// Err says what is wrong, Advice what to do, "" without.
	Err    error
	Advice string
}

// Hint is the advice.
func (e *Error) Hint() string { return e.Advice }

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Line == 0:
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	case e.Column == 0:
		return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Node is a value in a file.
type Node struct {
	file string
	n    *yaml.Node
}

// Load reads a file of at most MaxBytes. Its errors are those of Parse and of
// package os.
func Load(path string) (Node, error) {
	f, err := os.Open(path)
	if err != nil {
		return Node{}, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return Node{}, err
	}
	return Parse(path, b)
}

// Parse reads a text; file is for messages. Every error is an [*Error], of a text
// with nothing in it around ErrEmpty.
func Parse(file string, text []byte) (Node, error) {
	if len(text) > MaxBytes {
		return Node{}, &Error{File: file, Err: fmt.Errorf("longer than %d bytes", MaxBytes)}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return Node{}, syntaxError(file, err)
	}
	var docs []*yaml.Node
	for len(docs) < 2 {
		n := new(yaml.Node)
		err := loader.Load(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Node{}, syntaxError(file, err)
		}
		docs = append(docs, n)
	}
	switch {
	case len(docs) == 0 || len(docs[0].Content) == 0 || docs[0].Content[0].Kind == 0 || isEmpty(docs[0].Content[0]):
		return Node{}, &Error{File: file, Err: ErrEmpty}
	case len(docs) > 1:
		return Node{}, Node{file, docs[1].Content[0]}.Failf("more than one document")
	}
	root := Node{file, docs[0].Content[0]}
	return root, root.plain(0)
}

// ErrEmpty means a file with nothing in it.
var ErrEmpty = errors.New("nothing in it")

func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && n.Value == ""
}

// plain refuses what is not a plain value: an alias could make a small file huge.
func (n Node) plain(depth int) error {
	switch {
	case depth > maxDepth:
		return n.Failf("nested too deep")
	case n.n.Kind == yaml.AliasNode || n.n.Anchor != "":
		return n.Failf("anchors and aliases are not plain values")
	case n.n.Style&yaml.TaggedStyle != 0:
		return n.Failf("a tag (%.40s) makes it no plain value", n.n.Tag)
	}
	for _, c := range n.n.Content {
		if err := (Node{n.file, c}).plain(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// syntaxError takes the library's error apart: where the thing began that is
// wrong, or where that was noticed.
func syntaxError(file string, err error) error {
	e := &Error{File: file, Err: err}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		return e
	}
	at, msg := load.ContextMark, load.Message
	if at.Line == 0 {
		at = load.Mark
	}
	if load.ContextMsg != "" {
		msg = load.ContextMsg + ": " + msg
	}
	e.Line, e.Column, e.Err = max(at.Line, 1), at.Column, errors.New(strings.ReplaceAll(msg, "\n", " "))
	return e
}

// Failf is an [*Error] at the node.
func (n Node) Failf(format string, args ...any) error { return n.Fail(fmt.Errorf(format, args...), "") }

// Fail is an [*Error] at the node; the hint may be empty.
func (n Node) Fail(err error, hint string) error {
	e := &Error{File: n.file, Err: err, Advice: hint}
	if n.n != nil {
		e.Line, e.Column = n.n.Line, n.n.Column
	}
	return e
}
