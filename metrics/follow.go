package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// DefaultPoll is how often [Follower.Follow] looks at its file.
const DefaultPoll = 200 * time.Millisecond

// Follower reads a stream's file while it is written, each event once. It
// holds a torn tail until its newline comes, reports bad lines and goes on,
// and survives that the file is shortened, replaced, rotated or not there yet:
// an [ItemRewritten] says so, and from where on it reads anew.
// Each look costs what is new; memory does not grow. It is for one goroutine.
//
// A file that was rewritten in its place is known by its length, its first and its last
// bytes, so that a change of bytes between those, which leaves everything else, is not
// noticed. What comes and goes between two looks is not seen, nor what is still written to
// a file that was rotated once another lies in its place.
type Follower struct {
	// FS is the file system that has the file, the operating system's if nil; the files
	// of a server (package remote) are another one. It is set before the first Poll.
	FS fsx.FS

	path   string
	reader streamReader
	file   fsx.File
	info   fs.FileInfo // as of the last look
	looked time.Time   // when that was
	known  *known
	buf    []byte
}

// tick is how far apart two changes of a file have times of their own, on the coarsest of
// file systems.
const tick = 2 * time.Second

// NewFollower returns a follower at the beginning of a file, which need not
// exist yet.
func NewFollower(path string) *Follower {
	return &Follower{path: path, known: newKnown(maphash.MakeSeed())}
}

func (f *Follower) fs() fsx.FS {
	if f.FS == nil {
		return fsx.OS
	}
	return f.FS
}

// Poll hands over what has come since the last call, and returns without
// waiting. A file that is not there is no error. What was handed over before
// an error is not repeated.
func (f *Follower) Poll(handle func(*Item)) error {
	f.reader.handle = handle
	for {
		if f.file == nil {
			if ok, err := f.open(); !ok {
				return err
			}
		}
		if err := f.readNew(); err != nil {
			return fmt.Errorf("follow stream: %w", err)
		}
		replaced, err := f.replaced()
		if err != nil || !replaced {
			return err
		}
		// The old file may have grown between the two looks.
		if err := f.readNew(); err != nil {
			return fmt.Errorf("follow stream: %w", err)
		}
		if err := f.change(); err != nil {
			return fmt.Errorf("follow stream: %w", err)
		}
	}
}

// Follow polls until ctx is done, and returns its cause.
func (f *Follower) Follow(ctx context.Context, every time.Duration, handle func(*Item)) error {
	if every <= 0 {
		every = DefaultPoll
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := f.Poll(handle); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// Close closes the file. The torn tail is not handed over.
func (f *Follower) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

func (f *Follower) open() (bool, error) {
	file, err := f.openRegular()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("follow stream: %w", err)
	}
	f.file, f.info = file, nil
	return true, nil
}

// openRegular opens what lies at the path, unless it is a directory or a pipe.
func (f *Follower) openRegular() (fsx.File, error) {
	file, err := f.fs().OpenFile(f.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: f.path, Err: ErrNoFile}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// readNew reads to the end of the open file.
func (f *Follower) readNew() error {
	info, err := f.file.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		// A file that is known by its name alone is gone, and may come again.
		return f.Close()
	}
	if err != nil {
		return err
	}
	if f.unchanged(info) {
		return nil
	}
	f.info, f.looked = info, time.Now()
	if f.buf == nil {
		f.buf = make([]byte, readSize)
	}
	err = f.readOn(info.Size())
	if err != nil {
		f.info = nil // look once more
	}
	return err
}

// unchanged tells whether a file is as it was at the last look, after which another change
// would have had another time.
func (f *Follower) unchanged(info fs.FileInfo) bool {
	return f.info != nil && info.Size() == f.info.Size() && info.Size() == f.known.pos &&
		info.ModTime().Equal(f.info.ModTime()) && f.looked.Sub(info.ModTime()) > tick
}

// readOn reads what is new. Each read begins with the last bytes of those before, so that
// a file that is rewritten between two reads is noticed.
func (f *Follower) readOn(size int64) error {
	same, err := f.known.begins(f.file, size)
	if err != nil {
		return err
	}
	if same {
		if same, err = f.readWhile(); same || err != nil {
			return err
		}
	}
	if err := f.startOver(); err != nil {
		return err
	}
	if same, err = f.readWhile(); !same {
		f.info = nil // it changes as it is read: look once more
	}
	return err
}

// readWhile reads on for as long as the file goes on from what was read.
func (f *Follower) readWhile() (same bool, err error) {
	for {
		n, err := f.file.ReadAt(f.buf, f.known.pos-int64(len(f.known.tail)))
		if err != nil && err != io.EOF {
			return false, err
		}
		more, same := bytes.CutPrefix(f.buf[:n], f.known.tail)
		if !same {
			return false, nil
		}
		f.known.add(more)
		f.reader.write(more)
		if err == io.EOF {
			return true, nil
		}
	}
}

// startOver goes on at the last known place before which the file is what it was.
func (f *Follower) startOver() error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	left, err := f.known.left(f.file, info.Size())
	if err != nil {
		return err
	}
	switch pos, size := f.known.pos, info.Size(); {
	case size >= pos:
		f.rewritten(left, "overwritten")
	case left.pos > 0:
		f.rewritten(left, "shortened from %d to %d bytes", pos, size)
	default:
		f.rewritten(left, "truncated from %d to %d bytes", pos, size)
	}
	return nil
}

// rewritten reports a torn tail that will never end, and then the change, and reads on
// behind what is left.
func (f *Follower) rewritten(left *known, how string, args ...any) {
	f.reader.end()
	err := fmt.Errorf("%w: %s", ErrRewritten, fmt.Sprintf(how, args...))
	f.reader.item = Item{Kind: ItemRewritten, Number: left.lines, Offset: left.pos, Err: err}
	f.reader.handle(&f.reader.item)
	f.known = left
	f.reader.lines.restart(left.pos, left.lines)
}

// replaced tells whether the path names another file than the open one. A path
// that names nothing may be in the middle of a rotation.
func (f *Follower) replaced() (bool, error) {
	info, err := f.fs().Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("follow stream: %w", err)
	}
	return !sameFile(info, f.info), nil
}

// sameFile takes files that only have names, which are those of no operating system,
// as the same; what is in them tells.
func sameFile(a, b fs.FileInfo) bool {
	return a == nil || b == nil || a.Sys() == nil || b.Sys() == nil || os.SameFile(a, b)
}

// change goes over to the file that is now at the path: where it begins with
// everything read so far, as after a copy that replaced it, behind that.
func (f *Follower) change() error {
	file, err := f.openRegular()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	same, err := f.known.isBegunBy(file)
	if err != nil { // the next look finds it again
		file.Close()
		return err
	}
	old := f.file
	f.file, f.info = file, nil
	defer old.Close()
	if !same {
		f.rewritten(newKnown(f.known.sum.Seed()), "replaced")
	}
	return nil
}
