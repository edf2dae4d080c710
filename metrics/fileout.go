package metrics

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

// appendFile is the part of os.File that a jsonl target needs.
type appendFile interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Sync() error
	Stat() (os.FileInfo, error)
}

func openAppend(path string) (appendFile, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
}

// Back-off between tries, doubling from the first to the last.
const (
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// writerOutput writes chunks to a file or pipe from a goroutine of its own. A
// disk that is full is tried again, every other error ends it.
type writerOutput struct {
	target Target
	queue  *queue
	w      io.Writer
	file   appendFile // nil for a pipe
	path   string
	synced bool // file is a regular one, which is made durable
	named  bool // its name is durable
	onEnd  func()

	stop chan struct{} // closed at the deadline: no more tries
	gone chan struct{} // closed when the goroutine has ended

	dead bool // no write will succeed; the goroutine's

	mu       sync.Mutex
	report   TargetReport
	inHand   int64 // events of the chunk that is being written
	lastErr  error
	unsynced bool // what was written may not last
}

func newFileOutput(t Target, opts EmitterOptions) (*writerOutput, error) {
	file, err := opts.openFile(t.Path)
	if errors.Is(err, fs.ErrNotExist) { // of its directory: nothing has gone that was there
		return nil, &TargetError{t.String(), "open", err}
	}
	if err != nil {
		return nil, &TargetError{t.String(), "open", diagnose(err)}
	}
	if err := closeTornLine(file); err != nil {
		file.Close()
		return nil, &TargetError{t.String(), "open", diagnose(err)}
	}
	o := newWriterOutput(t, opts, file)
	o.file, o.path = file, t.Path
	info, err := file.Stat()
	o.synced = err == nil && info.Mode().IsRegular()
	go o.loop()
	return o, nil
}

func newStdoutOutput(t Target, opts EmitterOptions) *writerOutput {
	var w io.Writer = os.Stdout
	end := func() {}
	if t.Stdout != nil {
		w = t.Stdout
	} else {
		// Without this a closed pipe would end the process.
		end = pipeErrors()
	}
	o := newWriterOutput(t, opts, w)
	o.onEnd = end
	go o.loop()
	return o
}

func newWriterOutput(t Target, opts EmitterOptions, w io.Writer) *writerOutput {
	return &writerOutput{target: t, queue: newQueue(opts.QueueBytes, opts.Patience), w: w, onEnd: func() {},
		stop: make(chan struct{}), gone: make(chan struct{}), report: TargetReport{Target: t.String()}}
}

// closeTornLine ends the line that a crash has left without its newline, so
// that no record is glued to it.
func closeTornLine(f appendFile) error {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 || !info.Mode().IsRegular() {
		return err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = f.Write(newline)
	return err
}

func (o *writerOutput) put(c *chunk)   { o.queue.put(c) }
func (o *writerOutput) filtered() bool { return o.target.DropNonFinite }

func (o *writerOutput) loop() {
	defer close(o.gone)
	defer o.onEnd()
	for {
		c, ok := o.queue.next()
		if !ok {
			return
		}
		o.mu.Lock()
		o.inHand += c.events
		o.mu.Unlock()
		o.write(c)
		o.queue.done(c)
	}
}

// write tries until the chunk is written, the target is dead, or the run ends.
func (o *writerOutput) write(c *chunk) {
	pos, wait := 0, firstBackoff
	for pos < len(c.b) && !o.dead {
		n, err := o.w.Write(c.b[pos:])
		if err == nil && n < len(c.b)-pos {
			err = io.ErrShortWrite
		}
		pos += n
		if err == nil {
			break
		}
		end := o.ownEnd()
		if !o.again("write", err, wait) {
			break
		}
		wait = min(2*wait, lastBackoff)
		if o.size() != end {
			pos = o.closeOwnTorn(c.b, pos)
		}
	}
	o.count(c, pos)
	if c.sync && o.synced && !o.dead {
		o.sync()
	}
}

// sync makes the file durable and, the first time, its name.
func (o *writerOutput) sync() {
	if err := o.file.Sync(); err != nil {
		o.fail("sync", err)
	}
	if o.named {
		return
	}
	o.named = true
	if err := fsx.OS.SyncDir(filepath.Dir(o.path)); err != nil && !fsx.IsUnsupported(err) {
		o.fail("sync", err)
	}
}

// count is how many whole lines were written. Part of the line after them may
// have been: the next process closes it.
func (o *writerOutput) count(c *chunk, pos int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sent := int64(bytes.Count(c.b[:pos], newline))
	o.report.Sent += sent
	o.report.Bytes += int64(pos)
	o.report.Dropped += c.events - sent
	o.inHand -= c.events
}

// again waits before another try; false is that there is none.
func (o *writerOutput) again(op string, err error, wait time.Duration) bool {
	o.fail(op, err)
	if o.dead = !passing(err); o.dead {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-o.stop:
		return false
	case <-timer.C:
	}
	o.mu.Lock()
	o.report.Retries++
	o.mu.Unlock()
	return true
}

func (o *writerOutput) fail(op string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lastErr = &TargetError{o.report.Target, op, diagnose(err)}
	o.unsynced = o.unsynced || op == "sync"
}

// passing tells a failure that may pass: a full disk can be made room on.
func passing(err error) bool {
	err = diagnose(err)
	return errors.Is(err, ErrDiskFull) || errors.Is(err, io.ErrShortWrite)
}

// ownEnd is where what this process has written last ends in the file, whatever another one
// has written behind it since; where the system does not tell that, it is the size.
func (o *writerOutput) ownEnd() int64 {
	if f, ok := o.file.(io.Seeker); ok {
		if at, err := f.Seek(0, io.SeekCurrent); err == nil {
			return at
		}
	}
	return o.size()
}

func (o *writerOutput) size() int64 {
	if o.file == nil {
		return 0
	}
	info, err := o.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// closeOwnTorn starts the line at pos anew if another process has written
// behind its beginning meanwhile.
func (o *writerOutput) closeOwnTorn(b []byte, pos int) int {
	start := bytes.LastIndexByte(b[:pos], '\n') + 1
	if start == pos {
		return pos
	}
	if _, err := o.w.Write(newline); err != nil {
		return pos
	}
	return start
}

// drainTime is what a target gets after the deadline to notice it.
const drainTime = 200 * time.Millisecond

func (o *writerOutput) close(deadline time.Time) TargetReport {
	o.queue.close()
	ended := waitUntil(o.gone, deadline)
	close(o.stop)
	if !ended {
		ended = waitUntil(o.gone, time.Now().Add(drainTime))
	}
	if ended && o.file != nil {
		o.closeFile()
	}
	dropped, waiting := o.queue.lost()
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.report
	r.Dropped += dropped + waiting + o.inHand
	if r.Err = o.lastErr; r.Dropped == 0 && !o.unsynced {
		r.Err = nil
	} else if r.Err == nil {
		r.Err = &TargetError{r.Target, "write", ErrSlow}
	}
	return r
}

func (o *writerOutput) closeFile() {
	if o.dead || !o.synced {
		// What is lost has been counted.
		o.file.Close()
		return
	}
	mine, err := o.file.Stat()
	there, gone := os.Stat(o.path)
	if err == nil && (gone != nil || !os.SameFile(mine, there)) {
		o.fail("sync", ErrGone)
	}
	if err := o.file.Close(); err != nil {
		o.fail("sync", err)
	}
}

func waitUntil(c <-chan struct{}, deadline time.Time) bool {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}
