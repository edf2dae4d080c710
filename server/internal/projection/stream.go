package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

const (
	// blockSource is how many bytes of the source make a block.
	blockSource = 1 << 20
	// blockLeast is from how many bytes on the ending of a stream that has come
	// to rest becomes a block.
	blockLeast = 64 << 10
	// readBytes is how much of a stream is read at once.
	readBytes = 1 << 20
	// turnBytes is how much is read before others may look at the stream.
	turnBytes = 16 << 20
)

// stream is one file.
type stream struct {
	path  string
	store *Store

	mu     sync.Mutex // over what follows
	state  *state     // nil while nobody needs it
	digest *Digest    // of the state, nil before there is one
	// published is what readers have; after a restart it is older than digest.
	published *Digest
	record    place // of the state in the catalog
	dirty     bool  // the record is older than the state
	used      time.Time
	stored    time.Time
	gone      bool
}

// place is where a stored state lies in the catalog, Len 0 if there is none.
type place struct{ off, len int64 }

func (s *stream) pointsPath() string {
	sum := sha256.Sum256([]byte(s.path))
	name := hex.EncodeToString(sum[:12])
	return filepath.Join(s.store.dir, "points", name[:2], name[2:])
}

// catchUp reads what has come, at most a turn of it, and publishes what is new.
// More tells that there is more to read.
func (s *stream) catchUp() (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false, errRemoved
	}
	f, err := s.store.open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("read stream: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("read stream: %w", err)
	}
	size, mtime := info.Size(), info.ModTime().UnixNano()
	if d := s.digest; d != nil && d.size == size && d.mtime == mtime {
		return false, nil
	}
	if err := s.prepare(f, size); err != nil {
		return false, err
	}
	end := min(size, max(s.state.pos, s.state.scanned)+turnBytes)
	if end < size {
		mtime = 0
	}
	return end < size, s.advance(f, size, end, mtime)
}

// advance reads up to an offset and publishes what is new. After a fault the state is
// ahead of what readers have, and is given up.
func (s *stream) advance(f io.ReaderAt, size, end, mtime int64) error {
	err := s.readTo(f, end)
	if err == nil {
		err = s.state.remember(f)
	}
	if err != nil {
		s.restart()
		return err
	}
	s.dirty, s.used = true, time.Now()
	d := s.state.digest(s.path, size, mtime)
	d.Slug = s.store.slug(s.path, d.Slug)
	s.publish(d)
	return nil
}

// prepare brings the state back to where it was, or begins anew where the file
// is not what was read.
func (s *stream) prepare(f *os.File, size int64) error {
	if err := s.wake(f); err != nil {
		s.restart()
		return nil
	}
	same, err := s.state.knows(f, size)
	if err != nil {
		return err
	}
	if !same {
		s.restart()
	}
	return nil
}

// wake loads the state, and reads the ending again.
func (s *stream) wake(f *os.File) error {
	s.used = time.Now()
	if s.state == nil {
		st, err := s.load()
		if err != nil {
			return err
		}
		s.state = st
	}
	if s.state.end.ok {
		return nil
	}
	return s.replay(f)
}

func (s *stream) load() (*state, error) {
	if s.record.len == 0 {
		if s.digest != nil {
			return nil, errCodec
		}
		return newState(), nil
	}
	b, err := s.store.catalog.read(s.record)
	if err != nil {
		return nil, err
	}
	return restore(b, s.digest, &s.store.names)
}

// restart forgets the stream.
func (s *stream) restart() {
	s.store.anew.Add(1)
	os.Remove(s.pointsPath())
	s.state, s.digest, s.record = newState(), nil, place{}
}

// readTo reads lines up to an offset of the file.
func (s *stream) readTo(f io.ReaderAt, end int64) error {
	st := s.state
	dec := s.store.decoders.Get().(*metrics.Decoder)
	defer s.store.decoders.Put(dec)
	return eachLine(f, st.pos, end, &st.scanned, func(text []byte, after int64) {
		if text == nil {
			st.bad++
		} else {
			st.line(dec, text, &s.store.names)
		}
		st.pos = after
	}, func() {
		if st.end.ok {
			st.end.to, st.end.segments = st.pos, len(st.outline.Segments)
			s.sealAt(blockSource)
		}
	})
}

// replay makes the points behind the last block again.
func (s *stream) replay(f *os.File) error {
	st := s.state
	st.end = ending{to: st.blocksTo, segments: st.blocksSegments}
	dec := s.store.decoders.Get().(*metrics.Decoder)
	defer s.store.decoders.Put(dec)
	var scanned int64
	err := eachLine(f, st.blocksTo, st.pos, &scanned, func(text []byte, after int64) {
		if text != nil {
			st.replayLine(dec, text, &s.store.names)
		}
		st.end.to = after
	}, func() { s.sealAt(blockSource) })
	if err != nil {
		return err
	}
	st.end.ok = st.end.to == st.pos
	if !st.end.ok {
		return errCodec
	}
	return nil
}

// sealAt makes a block of the ending once it covers that many bytes. Where the
// disk takes none the ending is given up, to be read again when it is needed.
func (s *stream) sealAt(least int64) {
	st := s.state
	if st.end.to-st.blocksTo < least || s.store.dir == "" {
		return
	}
	if err := s.seal(); err != nil {
		s.store.log.Warn("projection not written", "stream", s.path, "err", err)
		if st.end.ok && st.end.to-st.blocksTo > 16*blockSource {
			st.end = ending{to: st.blocksTo, segments: st.blocksSegments}
		}
	}
}

func (s *stream) seal() error {
	st := s.state
	block, entries := encodeBlock(st.blocksTo, st.end.to, st.end.grown)
	path := s.pointsPath()
	if st.blocksBytes == 0 {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(block, st.blocksBytes)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	for i := range entries {
		entries[i].offset += st.blocksBytes
	}
	if st.loaded {
		st.index(entries, s.store.mostSummaries)
	}
	st.blocksTo, st.blocksBytes, st.blocksSegments = st.end.to, st.blocksBytes+int64(len(block)), st.end.segments
	st.end.grown = make([]growing, len(st.end.grown))
	s.dirty = true
	return nil
}

// mostStride is how many points a summary stands for at most.
const mostStride = 1 << 20

// index takes the entries of the next block, and joins summaries if they are too many.
func (s *state) index(entries []entry, most int) {
	for _, e := range entries {
		for e.curve >= len(s.entries) {
			s.entries = append(s.entries, nil)
		}
		if s.stride > chunkPoints {
			e.chunks = joined(e.chunks, s.stride)
		}
		s.entries[e.curve] = append(s.entries[e.curve], e)
		s.summaries += len(e.chunks)
	}
	if s.summaries <= most || s.stride >= mostStride {
		return
	}
	s.stride *= 2
	s.summaries = 0
	for _, list := range s.entries {
		for i := range list {
			list[i].chunks = joined(list[i].chunks, s.stride)
			s.summaries += len(list[i].chunks)
		}
	}
}

// loadBlocks reads what the blocks say about themselves.
func (s *stream) loadBlocks() error {
	st := s.state
	if st.loaded {
		return nil
	}
	f, err := os.Open(s.pointsPath())
	if err != nil {
		return fmt.Errorf("%w: %w", errCodec, err)
	}
	defer f.Close()
	st.entries, st.summaries, st.stride = nil, 0, chunkPoints
	var at, reached int64
	for at < st.blocksBytes {
		from, to, next, entries, err := readBlock(f, at, len(st.curves))
		if err != nil {
			return err
		}
		if from != reached {
			return errCodec
		}
		st.index(entries, s.store.mostSummaries)
		at, reached = next, to
	}
	if at != st.blocksBytes || reached != st.blocksTo {
		return errCodec
	}
	st.loaded = true
	return nil
}

// eachLine hands over every whole line between two offsets, with the offset
// behind it, and calls pause after each piece that was read. A line that is
// longer than readers hold is handed over as nil. Scanned remembers how far such
// a line has been looked at while it has no end.
func eachLine(f io.ReaderAt, from, end int64, scanned *int64, line func(text []byte, after int64), pause func()) error {
	buf := make([]byte, min(readBytes+metrics.MaxLine, max(end-from, 0)))
	for from < end {
		at := max(from, *scanned)
		if at >= end {
			return nil
		}
		n, err := f.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		if n == 0 {
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("read stream: %w", err)
		}
		piece := buf[:n]
		if *scanned > from {
			i := bytes.IndexByte(piece, '\n')
			if i < 0 {
				*scanned = at + int64(n)
				if at+int64(n) >= end {
					return nil
				}
				continue
			}
			from, *scanned = at+int64(i)+1, 0
			line(nil, from)
			continue
		}
		used := 0
		for {
			i := bytes.IndexByte(piece[used:], '\n')
			if i < 0 {
				break
			}
			text := piece[used : used+i]
			used += i + 1
			line(text, from+int64(used))
		}
		from += int64(used)
		pause()
		if used == 0 {
			if err != nil && err != io.EOF {
				return fmt.Errorf("read stream: %w", err)
			}
			if n > metrics.MaxLine {
				*scanned = at + int64(n)
				continue
			}
			return nil
		}
	}
	return nil
}
