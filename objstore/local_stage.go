package objstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/parallel"
)

var _ Stager = (*Local)(nil)

// stage is a batch of objects on its way to disk: files under their own names, for
// nobody looks for them yet, and a temporary one that is linked at the end. Every file
// and every directory that changed is synced once, all at the same time, so that the
// file system can settle them together.
type stage struct {
	l     *Local
	files []fsx.File
	made  []string // files, to remove after a failure
	dirs  []string // to be synced
	named []string // directories whose names are durable then
	last  *localWriter
}

// Stage implements [Stager].
func (l *Local) Stage(ctx context.Context, objects []Object, last Object) (commit func(context.Context) error, err error) {
	s := &stage{l: l}
	if err := s.write(ctx, objects, last); err != nil {
		s.drop()
		return nil, err
	}
	return func(ctx context.Context) error {
		return wrap("put if absent", last.Key, s.commit(ctx, last))
	}, nil
}

func (s *stage) write(ctx context.Context, objects []Object, last Object) (err error) {
	if s.last, err = s.l.create(ctx, last.Key); err != nil {
		return wrap("put if absent", last.Key, err)
	}
	if _, err := s.last.Write(last.Data); err != nil {
		return err
	}
	for _, o := range objects {
		if err := s.create(ctx, o); err != nil {
			return wrap("put", o.Key, err)
		}
	}
	return wrap("put", last.Key, s.sync())
}

func (s *stage) create(ctx context.Context, o Object) error {
	if err := errors.Join(ctx.Err(), CheckKey(o.Key)); err != nil {
		return err
	}
	name := s.l.path(o.Key)
	if err := s.mkdir(filepath.Dir(name)); err != nil {
		return err
	}
	f, err := s.l.fs.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return ErrExists
	}
	if err != nil {
		return err
	}
	s.files, s.made = append(s.files, f), append(s.made, name)
	s.touch(filepath.Dir(name))
	return fsx.WriteFull(f, o.Data, 0)
}

func (s *stage) touch(dir string) {
	if !slices.Contains(s.dirs, dir) {
		s.dirs = append(s.dirs, dir)
	}
}

// mkdir makes a directory and its parents; those that hold a name which may be new are
// synced later.
func (s *stage) mkdir(dir string) error {
	if slices.Contains(s.dirs, dir) {
		return nil
	}
	if err := s.l.mkdir(dir); err != nil {
		return err
	}
	named := s.l.settled.missing(s.l.root, dir)
	for _, d := range named {
		s.touch(filepath.Dir(d))
	}
	s.named = append(s.named, named...)
	return nil
}

// sync makes everything durable and closes the files.
func (s *stage) sync() error {
	syncs := make([]func() error, 0, len(s.files)+len(s.dirs)+1)
	if s.l.sync {
		syncs = append(syncs, s.last.file.Sync)
		for _, f := range s.files {
			syncs = append(syncs, f.Sync)
		}
		for _, dir := range s.dirs {
			syncs = append(syncs, func() error { return s.l.fs.SyncDir(dir) })
		}
	}
	err := parallel.Each(len(syncs), stageWidth, func(i int) error { return syncs[i]() })
	if err == nil {
		s.l.settled.add(s.named)
	}
	return errors.Join(err, s.close())
}

func (s *stage) close() error {
	errs := make([]error, 0, len(s.files))
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	s.files = nil
	return errors.Join(errs...)
}

// commit links the last file into place.
func (s *stage) commit(ctx context.Context, last Object) error {
	defer s.last.Abort()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.last.closeFile(); err != nil {
		return err
	}
	return s.last.link(ctx, last.Data)
}

// drop removes what a failed stage has made, as far as that can be done.
func (s *stage) drop() {
	_ = s.close()
	for _, name := range s.made {
		_ = s.l.fs.Remove(name)
	}
	if s.last != nil {
		_ = s.last.Abort()
	}
}
