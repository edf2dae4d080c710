package main

import (
	"io/fs"

	"github.com/foldlog/foldlog/internal/cli"
)

// hintRules says what to do about the errors that the packages below this one
// return. It is the only place that knows: a package gives its errors a type
// or a sentinel, and a line here gives the advice. The first match wins.
func hintRules() []cli.HintRule {
	return []cli.HintRule{
		{Match: cli.Is(fs.ErrNotExist), Hint: "check the path; foldlog ls ROOT lists the logs under a root"},
		{Match: cli.Is(fs.ErrPermission), Hint: "check the owner and the mode of the file and of its directory"},
	}
}
