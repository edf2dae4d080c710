package memwal

import (
	"errors"
	"fmt"

	"github.com/foldlog/foldlog/lance"
)

// The causes of errors, for errors.Is. Those of packages lance and objstore pass
// through.
var (
	// ErrFenced: another process has claimed the shard. The writer cannot be used any
	// more; what it acknowledged is safe.
	ErrFenced = errors.New("shard was claimed by another")
	// ErrSealed: the shard takes no more rows.
	ErrSealed = errors.New("shard is sealed")
	// ErrClosed: the writer was closed.
	ErrClosed = errors.New("writer is closed")
	// ErrUnsure: an answer was lost, and only claiming the shard again shows whether
	// the rows arrived. The writer cannot be used any more. Appending the same keys
	// again is harmless.
	ErrUnsure = errors.New("outcome of an append is unknown")
	// ErrNoKey: the table has no primary key of strings.
	ErrNoKey = errors.New("table has no primary key of strings")
)

// inGeneration names the generation of an error, and its file as the table knows it.
func inGeneration(id ID, number uint64, dir string, err error) error {
	if err == nil {
		return nil
	}
	where := fmt.Sprintf("generation %d of shard %s", number, id)
	var c *lance.CorruptError
	if errors.As(err, &c) {
		return &lance.CorruptError{Path: dir + "/" + c.Path, Err: fmt.Errorf("%s: %w", where, c.Err)}
	}
	return fmt.Errorf("%s: %s: %w", dir, where, err)
}

func (src *source) named(err error) error {
	if src.dir == "" { // the base
		return err
	}
	return inGeneration(src.shard, src.generation, src.dir, err)
}
