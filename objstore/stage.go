package objstore

import (
	"context"

	"github.com/foldlog/foldlog/internal/parallel"
)

// Object is a key and its bytes.
type Object struct {
	Key  string
	Data []byte
}

// Stager is a Store that makes several objects durable at once for less than it would
// take one by one.
type Stager interface {
	// Stage does what the function [Stage] does.
	Stage(ctx context.Context, objects []Object, last Object) (commit func(context.Context) error, err error)
}

// stageWidth is how many objects are written at once where each is a call.
const stageWidth = 16

// Stage writes objects under keys that nothing uses yet, such as those below a random
// directory, and prepares one that makes them count, such as a manifest. When it
// returns the objects are durable; until then a reader may find some of them, or a
// part of one in a local directory, so nothing may name them before. The commit, which
// is called at most once, puts the last object as PutIfAbsent does and returns the
// same errors. After an error of Stage itself nothing counts, though some of the objects
// may have been written.
func Stage(ctx context.Context, s Store, objects []Object, last Object) (commit func(context.Context) error, err error) {
	if st, ok := s.(Stager); ok {
		return st.Stage(ctx, objects, last)
	}
	err = parallel.Each(len(objects), stageWidth, func(i int) error { return s.Put(ctx, objects[i].Key, objects[i].Data) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.PutIfAbsent(ctx, last.Key, last.Data) }, nil
}

// Stage implements [Stager].
func (p *prefixed) Stage(ctx context.Context, objects []Object, last Object) (commit func(context.Context) error, err error) {
	below := make([]Object, len(objects))
	for i, o := range objects {
		below[i] = Object{p.dir + o.Key, o.Data}
	}
	return Stage(ctx, p.store, below, Object{p.dir + last.Key, last.Data})
}
