package server

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/metrics"
)

// The stream protocol: a stream is the raw bytes of one file, the end of its last
// whole line is the cursor. An answer follows the sync of what it acknowledges.

type ingestInput struct {
	Slug    string `path:"slug" maxLength:"600" doc:"the run, percent-encoded"`
	Stream  string `path:"id" maxLength:"64" doc:"16 hex digits"`
	Offset  string `query:"offset" required:"true" maxLength:"20" doc:"where the lines begin, in bytes"`
	RawBody []byte `contentType:"application/x-ndjson"`
}

type ingestOutput struct{ Body metrics.Ack }

func (s *Server) registerIngest(api huma.API) {
	op := operation(http.MethodPost, "/api/v1/runs/{slug}/streams/{id}", "append-stream", "Append lines to a stream", "runs")
	op.Description = "The stream protocol: docs/http-api.md. No lines ask for the cursor."
	op.MaxBodyBytes = s.limits.Body
	op.BodyReadTimeout = s.limits.Read
	op.SkipValidateBody = true
	op.Errors = append(op.Errors, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage)
	op.RequestBody = &huma.RequestBody{Description: "whole lines, or nothing"}
	huma.Register(api, op, s.ingest)
	op.RequestBody.Required = false
}

func (s *Server) ingest(ctx context.Context, in *ingestInput) (*ingestOutput, error) {
	if err := metrics.CheckSlug(in.Slug); err != nil {
		return nil, s.answer(err)
	}
	if err := need(ctx, ScopeWrite, "runs/"+in.Slug); err != nil {
		return nil, err
	}
	if err := metrics.CheckStreamID(in.Stream); err != nil {
		return nil, s.answer(err)
	}
	offset, err := parseOffset(in.Offset)
	if err == nil {
		err = checkLines(in.Slug, in.RawBody)
	}
	if err != nil {
		return nil, err
	}
	name := path.Join(metrics.RunsDir, metrics.EncodeSlug(in.Slug), in.Stream+metrics.Extension)
	end, err := s.sink.append(name, offset, in.RawBody)
	if err != nil {
		return nil, s.answer(err)
	}
	if len(in.RawBody) > 0 {
		s.index.now(name)
	}
	return &ingestOutput{metrics.Ack{Run: in.Slug, Stream: in.Stream, Offset: end, Page: s.page(ctx, "/runs/", in.Slug)}}, nil
}

func parseOffset(text string) (int64, error) {
	var n int64
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 1<<58 {
			return 0, problem(http.StatusBadRequest, "the offset is a number of bytes from 0")
		}
		n = 10*n + int64(c-'0')
	}
	if text == "" {
		return 0, problem(http.StatusBadRequest, "the offset is missing")
	}
	return n, nil
}

// checkLines wants whole lines of a length that readers hold, and no open of
// another run: a token for one run must not write into others.
func checkLines(slug string, body []byte) error {
	if len(body) == 0 {
		return nil
	}
	if body[len(body)-1] != '\n' {
		return problem(http.StatusBadRequest, "whole lines at an offset, please")
	}
	var dec metrics.Decoder
	number := 0
	for rest := body; len(rest) > 0; number++ {
		i := bytes.IndexByte(rest, '\n')
		if i > maxLine {
			return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("line %d is longer than %d bytes", number+1, maxLine))
		}
		line := rest[:i]
		rest = rest[i+1:]
		if !bytes.Contains(line, []byte("open")) {
			continue
		}
		var e metrics.Event
		if dec.Decode(line, &e) == nil && e.Kind == metrics.KindOpen && e.Slug != slug {
			return problem(http.StatusUnprocessableEntity, fmt.Sprintf("line %d opens another run", number+1))
		}
	}
	return nil
}

// conflict is the 409 of the protocol.
func conflict(what string, expected int64) error {
	p := problem(http.StatusConflict, what)
	p.Expected = &expected
	return p
}

// sink appends to the files of streams.
type sink struct {
	root  *os.Root
	fs    fsx.FS
	stats *stats
	// wrote hears of every file that has grown.
	wrote func(path string)
	// open makes a stream's file of an opened one; tests make it fail.
	open func(*os.File) streamFile

	mu    sync.Mutex
	files map[string]*sinkFile
	order *list.List // of *sinkFile, the one used last in front
}

// mostSinkFiles is how many files are kept open.
const mostSinkFiles = 512

// streamFile is what an append needs of a file. Sync makes content and size durable.
type streamFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

type osStream struct{ *os.File }

func (f osStream) Sync() error { return datasync(f.File) }

// sinkFile is one stream that is being written to. A file that somebody else has
// changed is looked at anew.
type sinkFile struct {
	path string
	at   *list.Element
	refs int // requests that hold it, under sink.mu

	mu      sync.Mutex
	file    streamFile
	info    fs.FileInfo
	size    int64 // of the file
	end     int64 // of its last whole line
	broken  bool  // what is on the disk is not known
	named   bool  // the names of the file and of its directories are durable
	syncing sync.Mutex
	synced  int64
	found   int64 // the end of the last whole line when the file was opened
}

func newSink(root *os.Root, stats *stats, wrote func(string)) *sink {
	return &sink{root: root, fs: fsx.InRoot(root), stats: stats, wrote: wrote, open: func(f *os.File) streamFile { return osStream{f} }, files: map[string]*sinkFile{}, order: list.New()}
}

// append puts whole lines at an offset of a stream and returns its end. What is
// there already is compared and passed over.
func (s *sink) append(name string, offset int64, lines []byte) (int64, error) {
	f := s.hold(name)
	defer s.release(f)
	f.mu.Lock()
	end, err := s.write(f, offset, lines)
	file := f.file
	f.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if err := s.sync(f, file, end); err != nil {
		return 0, err
	}
	return end, nil
}

func (s *sink) hold(name string) *sinkFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[name]
	if f == nil {
		f = &sinkFile{path: name}
		f.at = s.order.PushFront(f)
		s.files[name] = f
	}
	s.order.MoveToFront(f.at)
	f.refs++
	s.evict()
	return f
}

// evict lets go of files that nobody holds.
func (s *sink) evict() {
	for at := s.order.Back(); at != nil && len(s.files) > mostSinkFiles; {
		f := at.Value.(*sinkFile)
		at = at.Prev()
		if f.refs == 0 {
			s.forget(f)
		}
	}
}

func (s *sink) forget(f *sinkFile) {
	s.order.Remove(f.at)
	delete(s.files, f.path)
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
}

func (s *sink) release(f *sinkFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.refs--; f.refs == 0 && (f.broken || f.file == nil) {
		s.forget(f)
	}
}

// close closes every file; all of them are synced.
func (s *sink) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		s.forget(f)
	}
}

func (s *sink) write(f *sinkFile, offset int64, lines []byte) (int64, error) {
	create := len(lines) > 0 && offset == 0
	if err := s.refresh(f, create); err != nil {
		return 0, err
	}
	if len(lines) > 0 && f.file != nil {
		unlock, err := lockFile(s.fs, s.root, f.path)
		if err != nil {
			return 0, err
		}
		defer unlock()
		// Whoever had the lock may have written.
		if err := s.refresh(f, create); err != nil {
			return 0, err
		}
	}
	if offset > f.end {
		return 0, conflict("a gap", f.end)
	}
	overlap := min(f.end-offset, int64(len(lines)))
	same, err := f.holds(lines[:overlap], offset)
	if err != nil {
		return 0, err
	}
	if !same {
		return 0, conflict("other bytes", f.end)
	}
	if !f.named && f.file != nil {
		if err := syncNames(s.fs, s.root, path.Dir(f.path)); err != nil {
			return 0, fmt.Errorf("append to stream: %w", err)
		}
		f.named = true
	}
	if rest := lines[overlap:]; len(rest) > 0 {
		if err := s.extend(f, rest); err != nil {
			return 0, err
		}
		s.stats.ingestBytes.Add(int64(len(rest)))
		s.stats.ingestLines.Add(int64(bytes.Count(rest, []byte{'\n'})))
		s.wrote(f.path)
	}
	return f.end, nil
}

// refresh opens the file, and looks whether it is what it was.
func (s *sink) refresh(f *sinkFile, create bool) error {
	info, err := s.root.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if f.file != nil {
			f.file.Close()
			f.file = nil
		}
		f.size, f.end, f.synced, f.found = 0, 0, 0, 0
		if !create {
			return nil
		}
		return s.create(f)
	case err != nil:
		return fmt.Errorf("append to stream: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("append to stream: %w", fs.ErrPermission)
	case f.file == nil || f.broken || !os.SameFile(info, f.info) || info.Size() < f.size:
		return s.reopen(f)
	case info.Size() == f.size:
		return nil
	}
	// Another server has appended: who waits for a sync of the file goes on waiting.
	end, err := metrics.LastLineEnd(f.file, info.Size())
	if err != nil {
		return fmt.Errorf("append to stream: %w", err)
	}
	f.size, f.end, f.found = info.Size(), end, end
	return nil
}

func (s *sink) reopen(f *sinkFile) error {
	if f.file != nil {
		f.file.Close()
		f.file = nil
	}
	file, err := s.root.OpenFile(f.path, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("append to stream: %w", err)
	}
	info, err := file.Stat()
	if err == nil {
		f.size = info.Size()
		f.end, err = metrics.LastLineEnd(file, f.size)
	}
	if err != nil {
		return fmt.Errorf("append to stream: %w", errors.Join(err, file.Close()))
	}
	// Whoever wrote this need not have synced it, nor its name.
	f.file, f.info, f.synced, f.found, f.broken, f.named = s.open(file), info, 0, f.end, false, false
	return nil
}

// create makes the file and its directory.
func (s *sink) create(f *sinkFile) error {
	if err := s.root.MkdirAll(path.Dir(f.path), 0o755); err != nil {
		return fmt.Errorf("append to stream: %w", err)
	}
	file, err := s.root.OpenFile(f.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("append to stream: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("append to stream: %w", errors.Join(err, file.Close()))
	}
	f.file, f.info, f.broken, f.named = s.open(file), info, false, false
	return nil
}

// holds tells whether the file has these bytes at an offset.
func (f *sinkFile) holds(want []byte, off int64) (bool, error) {
	buf := make([]byte, min(len(want), 256<<10))
	for len(want) > 0 {
		n := min(len(buf), len(want))
		if _, err := f.file.ReadAt(buf[:n], off); err != nil {
			return false, fmt.Errorf("compare stream: %w", err)
		}
		if !bytes.Equal(buf[:n], want[:n]) {
			return false, nil
		}
		want, off = want[n:], off+int64(n)
	}
	return true, nil
}

// extend writes lines behind the last whole one. What is there of a line that was
// never finished was never acknowledged: it is written over. If the disk takes
// not all of it, nothing of it stays.
func (s *sink) extend(f *sinkFile, lines []byte) error {
	if f.size > f.end {
		if err := f.file.Truncate(f.end); err != nil {
			return fmt.Errorf("append to stream: %w", err)
		}
		f.size = f.end
	}
	if n, err := f.file.WriteAt(lines, f.end); err != nil || n < len(lines) {
		if err == nil {
			err = io.ErrShortWrite
		}
		f.broken = f.file.Truncate(f.end) != nil
		return fmt.Errorf("append to stream: %w", err)
	}
	f.end += int64(len(lines))
	f.size = f.end
	return nil
}

// sync makes everything up to end durable, in the file that it was written to. Requests
// that wait for the same file share a sync. After a failed one nobody knows what the
// disk has: the file is cut back to what was durable before, or was there when it was
// opened, and none who waited is answered for; clients send the rest again.
func (s *sink) sync(f *sinkFile, file streamFile, end int64) error {
	f.syncing.Lock()
	defer f.syncing.Unlock()
	f.mu.Lock()
	lost, done, upTo := f.file != file || f.broken, f.synced >= end, f.end
	f.mu.Unlock()
	switch {
	case file == nil: // nothing was written
		return nil
	case lost:
		return errLostStream
	case done:
		return nil
	}
	s.stats.ingestSyncs.Add(1)
	err := file.Sync()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.file != file:
		return errLostStream
	case err == nil:
		f.synced = upTo
		return nil
	}
	f.broken = true
	return fmt.Errorf("sync stream: %w", errors.Join(err, file.Truncate(max(f.synced, f.found))))
}

// errLostStream is of lines that were written to a file of which nobody knows what
// became of them.
var errLostStream = problem(http.StatusServiceUnavailable, "the stream's file has failed or was replaced meanwhile: send the lines again")
