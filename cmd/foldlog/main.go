// Foldlog keeps what happens in machine-learning experiments as durable,
// append-only event logs, and folds them into states, curves and best trials.
//
// This command is thin: each file is one command, which parses its flags, makes one call,
// and renders the answer. The verbs that work on any log are here and go through
// internal/logkind; those for one kind of log are in the packages below internal.
package main

import (
	"context"
	"os"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

func main() {
	os.Exit(run(logkind.Kinds()))
}

// run is this process as one command line.
func run(kinds []logkind.Kind) int {
	cli.CatchClosedPipe()
	ctx, stop := cli.Interruptible(context.Background())
	defer stop()
	return execute(ctx, cli.System(), kinds, os.Args[1:])
}
