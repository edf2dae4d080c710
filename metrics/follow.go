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
// and survives that the file is shortened, replaced, rotated or not there yet.
// Each look costs what is new; memory does not grow. It is for one goroutine.
type Follower struct {
	// FS is the file system that has the file, the operating system's if nil; the files
	// of a server (package remote) are another one. It is set before the first Poll.
	FS fsx.FS

	path   string
	reader streamReader
	file   fsx.File
	info   fs.FileInfo // as of the last look
	pos    int64       // bytes read
	sum    maphash.Hash
	head   []byte // the first bytes read
	tail   []byte // the last bytes read
	buf    []byte
}

// fingerprint is how many bytes at each end tell whether a file is still what
// it was.
const fingerprint = 256

// NewFollower returns a follower at the beginning of a file, which need not
// exist yet.
func NewFollower(path string) *Follower { return &Follower{path: path} }

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
	file, err := f.fs().OpenFile(f.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("follow stream: %w", err)
	}
	f.file, f.info = file, nil
	return true, nil
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
	if f.info != nil && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) && info.Size() == f.pos {
		return nil
	}
	f.info = info
	if err := f.sameContent(info.Size()); err != nil {
		f.info = nil // look once more
		return err
	}
	if f.buf == nil {
		f.buf = make([]byte, readSize)
	}
	for {
		n, err := f.file.ReadAt(f.buf, f.pos)
		f.take(f.buf[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (f *Follower) take(p []byte) {
	f.remember(p)
	f.reader.write(p)
}

// remember keeps what is needed to know the file again.
func (f *Follower) remember(p []byte) {
	f.pos += int64(len(p))
	f.sum.Write(p)
	if room := fingerprint - len(f.head); room > 0 {
		f.head = append(f.head, p[:min(room, len(p))]...)
	}
	f.tail = append(f.tail, p[max(0, len(p)-fingerprint):]...)
	if over := len(f.tail) - fingerprint; over > 0 {
		f.tail = append(f.tail[:0], f.tail[over:]...)
	}
}

// sameContent starts over, or from where the file now ends, if what has been
// read is no longer what the file holds.
func (f *Follower) sameContent(size int64) error {
	if f.pos == 0 {
		return nil
	}
	if size < f.pos {
		same, err := f.beginsWith(f.head[:min(len(f.head), int(min(size, fingerprint)))], 0)
		if err != nil {
			return err
		}
		if size > 0 && same {
			f.rewritten("shortened from %d to %d bytes", f.pos, size)
			return f.rewind(size)
		}
		f.rewritten("truncated from %d to %d bytes", f.pos, size)
		return f.rewind(0)
	}
	same, err := f.beginsWith(f.tail, f.pos-int64(len(f.tail)))
	if err != nil {
		return err
	}
	if !same {
		f.rewritten("overwritten")
		return f.rewind(0)
	}
	return nil
}

// beginsWith tells whether the file has these bytes at an offset.
func (f *Follower) beginsWith(want []byte, off int64) (bool, error) {
	got := make([]byte, len(want))
	n, err := f.file.ReadAt(got, off)
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(got[:n], want), nil
}

// rewind continues at an offset, forgetting a torn tail. What is before it is
// read again, to count its lines and know it later.
func (f *Follower) rewind(to int64) error {
	pos, head, tail, sum := f.pos, f.head, f.tail, f.sum
	f.pos, f.head, f.tail = 0, nil, nil
	f.sum.Reset()
	number := int64(0)
	in := io.NewSectionReader(f.file, 0, to)
	buf := make([]byte, 64<<10)
	for f.pos < to {
		n, err := in.Read(buf)
		f.remember(buf[:n])
		number += int64(bytes.Count(buf[:n], newline))
		if err == io.EOF {
			break
		}
		if err != nil {
			f.pos, f.head, f.tail, f.sum = pos, head, tail, sum
			return err
		}
	}
	f.reader.lines.restart(f.pos, number)
	return nil
}

// rewritten reports a torn tail that will never end, and then the change.
func (f *Follower) rewritten(how string, args ...any) {
	f.reader.end()
	err := fmt.Errorf("%w: %s", ErrRewritten, fmt.Sprintf(how, args...))
	f.reader.item = Item{Kind: ItemRewritten, Number: f.reader.lines.number, Offset: f.pos, Err: err}
	f.reader.handle(&f.reader.item)
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
	file, err := f.fs().OpenFile(f.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	same, err := f.continues(file)
	if err != nil { // the next look finds it again
		file.Close()
		return err
	}
	old := f.file
	f.file, f.info = file, nil
	defer old.Close()
	if same {
		return nil
	}
	f.rewritten("replaced")
	return f.rewind(0)
}

func (f *Follower) continues(file fsx.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() < f.pos {
		return false, err
	}
	var sum maphash.Hash
	sum.SetSeed(f.sum.Seed())
	if _, err := io.Copy(&sum, io.NewSectionReader(file, 0, f.pos)); err != nil {
		return false, err
	}
	return sum.Sum64() == f.sum.Sum64(), nil
}
