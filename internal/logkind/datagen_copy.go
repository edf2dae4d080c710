package logkind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

// Copy writes the events as they are, blobs too, into a new table without shards, with
// its indexes, and checks that. Events that contradict each other are copied as well.
func (k datagenKind) Copy(ctx context.Context, log, dest string, opts CopyOptions) (CopyStats, error) {
	if opts.Salvage {
		return CopyStats{}, cli.WithHint(errors.New("a datagen log cannot be salvaged"),
			"foldlog verify lists every fault; foldlog cat prints the events before the first one")
	}
	l, err := k.openLog(ctx, log)
	if err != nil {
		return CopyStats{}, err
	}
	v, err := l.View(ctx)
	if err != nil {
		return CopyStats{}, err
	}
	var done CopyStats
	err = intoNewDir(dest, func(dir string) error {
		stages := &copyStages{opts: opts}
		there := World{read: stages.checked}
		store, err := there.store(dir)
		if err != nil {
			return err
		}
		if done.Events, err = v.Copy(ctx, store, stages.copied); err != nil {
			return err
		}
		if _, done.Bytes, _, err = there.treeSize(ctx, dir); err != nil {
			return err
		}
		stages.folding()
		done.Lost = faultsOfCopy(ctx, there, dir)
		return ctx.Err()
	})
	return done, err
}

// copyStages tells how far a copy is which is read two times over: its files, before it
// is there, and then its items. How many bytes a stage takes is known of the first alone,
// so that none of the others gets further than its end.
type copyStages struct {
	opts  CopyOptions
	mu    sync.Mutex
	size  int64 // of what is copied
	done  int64 // of the stage
	stage int64 // 0 copies, 1 reads the files, 2 folds the items
}

// copied is the progress of the copy.
func (s *copyStages) copied(done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.size = done, total
	if s.tell(); done >= total {
		s.enter(1, "checking the files of the copy")
	}
}

// checked counts the bytes that are read back from the copy.
func (s *copyStages) checked(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stage > 0 {
		s.done += n
		s.tell()
	}
}

func (s *copyStages) folding() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(2, "checking its items")
}

func (s *copyStages) enter(stage int64, words string) {
	s.stage, s.done = stage, 0
	if s.opts.Stage != nil {
		s.opts.Stage(words)
	}
	s.tell()
}

func (s *copyStages) tell() {
	if s.opts.Progress != nil {
		s.opts.Progress(s.stage*s.size+min(s.done, s.size), 3*s.size)
	}
}

// faultsOfCopy is the error of a copy whose events are not all sound.
func faultsOfCopy(ctx context.Context, there World, dir string) error {
	l, err := datagen.OpenDirIn(ctx, there.liveFS(), dir, datagen.Options{})
	if err != nil {
		return err
	}
	v, err := l.View(ctx)
	if err != nil {
		return err
	}
	faults := int64(0)
	var first error
	_, err = v.Verify(ctx, func(err error) {
		if faults++; first == nil {
			first = err
		}
	})
	switch {
	case first == nil && err == nil:
		return nil
	case first == nil:
		return fmt.Errorf("everything was copied, and it is damaged: %w", err)
	}
	return cli.WithHint(fmt.Errorf("everything was copied, with %s, the first: %w", cli.Plural(faults, "fault"), first),
		"foldlog verify lists every fault, of the log or of its copy")
}

// intoNewDir lets fill write a directory that becomes dest once it is complete. The name
// that it has before means nothing to anybody, and is in no error.
func intoNewDir(dest string, fill func(dir string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(dest), ".foldlog-cp-")
	if err != nil {
		return ofNewDir("create", dest, err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return ofNewDir("create", dest, err)
	}
	if err := fill(dir); err != nil {
		return err
	}
	return ofNewDir("create", dest, os.Rename(dir, dest))
}

// ofNewDir is an error of a file of the system, said of dest.
func ofNewDir(doing, dest string, err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	case err == nil:
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, dest, err)
}
