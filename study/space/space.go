// Package space reads search spaces that people write, as YAML or JSON:
//
//	lr:        {type: float, low: 1e-5, high: 0.1, log: true}
//	dropout:   {type: float, low: 0, high: 0.5, step: 0.05}
//	layers:    {type: int, low: 1, high: 8}
//	optimizer: {type: categorical, choices: [adam, sgd]}
//	momentum:  {type: float, low: 0, high: 0.99, when: {optimizer: sgd}}
//	use_bn:    {type: bool}
//
// Parameters keep their order. One with "when" is there only for some values of
// parameters before it: a value, a list of values, or {low: A, high: B}; all
// conditions must hold. Errors name the file, line, column and parameter.
package space

import (
	"github.com/foldlog/foldlog/internal/spacedoc"
	"github.com/foldlog/foldlog/internal/yamldoc"
	"github.com/foldlog/foldlog/study"
)

// Error says where a space file is wrong: File, Line and Column are the place, Err the
// reason, and Hint what to do.
type Error = yamldoc.Error

// Load reads a space file. The errors are those of [Parse] and of package os.
func Load(path string) (*study.Space, error) {
	root, err := yamldoc.Load(path)
	return spacedoc.FromDocument(root, err)
}

// Parse reads a space from a text; file is for messages. Every error is an
// [*Error].
func Parse(file string, text []byte) (*study.Space, error) {
	root, err := yamldoc.Parse(file, text)
	return spacedoc.FromDocument(root, err)
}
