package main

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

// world is where the logs of a kind lie: this machine, buckets that it reaches, or a
// server. The zero value is this machine.
type world struct {
	server *remote.Client // nil on this machine
	ctx    context.Context
}

// fs has the files of logs. What is read of one at a server may be kept while it is
// open.
func (w world) fs() fsx.FS { return w.files(remote.DefaultReadAhead) }

// liveFS is fs for one who goes on reading a file as it changes.
func (w world) liveFS() fsx.FS { return w.files(0) }

func (w world) files(readAhead int64) fsx.FS {
	if w.server == nil {
		return fsx.OS
	}
	return w.server.Files(w.ctx, readAhead)
}

// name is a path in this world as people give it.
func (w world) name(path string) string {
	if w.server == nil {
		return path
	}
	return remote.Address(w.server.Base, path)
}

// logFile is a file that is read from its beginning, or anywhere.
type logFile interface {
	io.ReadCloser
	io.ReaderAt
	Stat() (fs.FileInfo, error)
}

var _ logFile = (*os.File)(nil)

// open opens a file for reading. One of this machine may be a pipe.
func (w world) open(path string) (logFile, error) {
	if w.server == nil {
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

// remotePoll is how often one who follows a log at a server looks.
const remotePoll = 500 * time.Millisecond

// poll is how often one who follows a log looks, 0 for the default of its kind.
func (w world) poll() time.Duration {
	if w.server == nil {
		return 0
	}
	return remotePoll
}

// names are paths as people give them.
func (w world) names(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = w.name(path)
	}
	return names
}

// follower follows a stream.
func (w world) follower(path string) *metrics.Follower {
	f := metrics.NewFollower(path)
	if w.server != nil {
		f.FS = w.liveFS()
	}
	return f
}
