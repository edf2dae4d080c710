package main

import (
	"context"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// find returns the log at a path or an address, or an error that begins with what was
// being done.
func (a *app) find(ctx context.Context, doing, path string) (logkind.Located, error) {
	at, err := a.Finder.Find(ctx, path)
	return at, cli.Failed(doing, path, err)
}
