package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
)

// logRef is the place of a datagen log.
type logRef struct {
	root, pipeline, experiment string
	server                     *remote.Client // nil for a root that is no server
	instead                    error          // what the operand names if it is the path of another log
}

// store is what the log lies in.
func (r logRef) store() (objstore.Store, error) {
	if r.server == nil {
		return datagen.OpenRoot(r.root)
	}
	_, dir, _, err := remote.Parse(r.root, "")
	return objstore.Prefix(r.server.Store(), dir), err
}

// isURL tells roots that are no directories.
func isURL(root string) bool {
	return strings.HasPrefix(root, "s3://") || strings.HasPrefix(root, "http://") || strings.HasPrefix(root, "https://")
}

// String is the path of the log.
func (r logRef) String() string {
	path := datagen.Path(r.pipeline, r.experiment)
	if isURL(r.root) {
		return strings.TrimSuffix(r.root, "/") + "/" + path
	}
	return filepath.Join(r.root, filepath.FromSlash(path))
}

// open opens a log that exists.
func (r logRef) open(ctx context.Context, opts datagen.Options) (*datagen.Log, error) {
	store, err := r.store()
	if err != nil {
		return nil, err
	}
	l, err := datagen.Open(ctx, store, r.pipeline, r.experiment, opts)
	if errors.Is(err, datagen.ErrNoLog) {
		if r.instead != nil {
			return nil, r.instead
		}
		err = cli.WithHint(err, "foldlog datagen init "+r.String()+" makes one, foldlog ls lists those there are")
	}
	return l, err
}

// refAway takes the path of a log in a bucket or at a server apart.
func refAway(path string) (ref logRef, ok bool) {
	root, rest, found := strings.Cut(path, "/"+datagen.Directory+"/")
	names := strings.Split(strings.TrimRight(rest, "/"), "/")
	if !isURL(path) || !found || len(names) != 3 {
		return logRef{}, false
	}
	ref = logRef{root: root, pipeline: names[0], experiment: names[1]}
	return ref, ref.String() == strings.TrimRight(path, "/")
}
