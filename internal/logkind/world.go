package logkind

import (
	"context"
	"io"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

// World is where the logs of a kind lie: this machine, buckets that it reaches, or a
// server. The zero value is this machine.
type World struct {
	Server *remote.Client // nil on this machine
	ctx    context.Context
	read   func(n int64) // is told the bytes that are read of files; nil is nobody
}

// fs has the files of logs. What is read of one at a server may be kept while it is
// open.
func (w World) fs() fsx.FS { return w.files(remote.DefaultReadAhead) }

// liveFS is fs for one who goes on reading a file as it changes.
func (w World) liveFS() fsx.FS { return w.files(0) }

func (w World) files(readAhead int64) fsx.FS {
	files := fsx.OS
	if w.Server != nil {
		files = w.Server.Files(w.ctx, readAhead)
	}
	if w.read != nil {
		files = watchedFS{files, w.read}
	}
	return files
}

// NameOf is a path in this world as people give it.
func (w World) NameOf(path string) string {
	if w.Server == nil {
		return path
	}
	return remote.Address(w.Server.Base, path)
}

// File is a file that is read from its beginning, or anywhere.
type File interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

var _ File = (*os.File)(nil)

// Open opens a file for reading. One of this machine may be a pipe.
func (w World) Open(path string) (File, error) {
	if w.Server == nil {
		return os.Open(path)
	}
	f, err := w.fs().OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return remoteFile{io.NewSectionReader(f, 0, math.MaxInt64), f}, nil
}

// remoteFile is a file at a server.
type remoteFile struct {
	io.Reader
	fsx.File
}

// RemotePoll is how often one who follows a log at a server looks.
const RemotePoll = 500 * time.Millisecond

// poll is how often one who follows a log looks, 0 for the default of its kind.
func (w World) poll() time.Duration {
	if w.Server == nil {
		return 0
	}
	return RemotePoll
}

// names are paths as people give them.
func (w World) names(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = w.NameOf(path)
	}
	return names
}

// Follower follows a stream.
func (w World) Follower(path string) *metrics.Follower {
	f := metrics.NewFollower(path)
	if w.Server != nil {
		f.FS = w.liveFS()
	}
	return f
}
