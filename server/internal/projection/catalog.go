package projection

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/foldlog/foldlog/metrics"
)

// The catalog is a sequence of records
//
//	length 4 | checksum 4 | kind 1 | payload
//
// over which the checksum and the length go from the kind on. The last record of
// a path counts; a torn or damaged end is cut off.
const (
	recordName = 1 // the next metric name; its number counts from 0
	recordPut  = 2 // digest, then state
	recordDrop = 3 // path
	mostRecord = 256 << 20
)

// catalog is the file of the records. With an empty path it keeps nothing.
type catalog struct {
	path string

	mu    sync.Mutex
	file  *os.File
	end   int64
	live  int64 // bytes of records that count
	named int   // names that have been written
	buf   []byte
}

// found is a record as it was read.
type found struct {
	digest *Digest
	state  place
	size   int64
}

// openCatalog reads a catalog. What is damaged counts as not there.
func openCatalog(path string, n *names) (*catalog, map[string]found, error) {
	c := &catalog{path: path}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open projection: %w", err)
	}
	c.file = f
	records := map[string]found{}
	if c.end, err = c.scan(n, records); err == nil {
		err = f.Truncate(c.end)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open projection: %w", err), f.Close())
	}
	for _, r := range records {
		c.live += r.size
	}
	return c, records, nil
}

func (c *catalog) scan(n *names, records map[string]found) (end int64, err error) {
	r := bufio.NewReaderSize(c.file, 1<<20)
	var buf []byte
	var numbers []uint32
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return end, nil
		}
		length := binary.LittleEndian.Uint32(head[:])
		if length == 0 || length > mostRecord {
			return end, nil
		}
		if cap(buf) < int(length) {
			buf = make([]byte, length+length/2)
		}
		b := buf[:length]
		if _, err := io.ReadFull(r, b); err != nil || checksum(b) != binary.LittleEndian.Uint32(head[4:]) {
			return end, nil
		}
		start := end
		end += 8 + int64(length)
		d := decoder{b: b[1:]}
		switch b[0] {
		case recordName:
			id, ok := n.id(d.text())
			if !ok {
				return end, errCodec
			}
			numbers = append(numbers, id)
			c.named = len(numbers)
		case recordDrop:
			delete(records, d.text())
		case recordPut:
			digest := d.digest(numbers)
			state := place{end - int64(len(d.b)), int64(len(d.b))}
			if d.bad {
				return start, nil
			}
			records[digest.Path] = found{digest, state, end - start}
		}
	}
}

// put writes a record and returns where its state lies. The names it needs go
// before it.
func (c *catalog) put(d *Digest, state []byte, n *names) (place, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return place{}, os.ErrClosed
	}
	c.buf = c.buf[:0]
	all := n.all()
	for _, name := range all[c.named:] {
		c.record(recordName, func(e *encoder) { e.text(name) })
	}
	c.record(recordPut, func(e *encoder) {
		e.digest(d)
		e.b = append(e.b, state...)
	})
	if err := c.flush(); err != nil {
		return place{}, err
	}
	c.named = len(all)
	c.live += int64(len(state)) + 64
	return place{c.end - int64(len(state)), int64(len(state))}, nil
}

func (c *catalog) drop(path string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	c.buf = c.buf[:0]
	c.record(recordDrop, func(e *encoder) { e.text(path) })
	return c.flush()
}

func (c *catalog) record(kind byte, fill func(*encoder)) {
	start := len(c.buf)
	e := encoder{append(c.buf, 0, 0, 0, 0, 0, 0, 0, 0, kind)}
	fill(&e)
	body := e.b[start+8:]
	binary.LittleEndian.PutUint32(e.b[start:], uint32(len(body)))
	binary.LittleEndian.PutUint32(e.b[start+4:], checksum(body))
	c.buf = e.b
}

func (c *catalog) flush() error {
	if _, err := c.file.WriteAt(c.buf, c.end); err != nil {
		return fmt.Errorf("write projection: %w", err)
	}
	c.end += int64(len(c.buf))
	return nil
}

// read returns a stored state.
func (c *catalog) read(p place) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil, os.ErrClosed
	}
	b := make([]byte, p.len)
	if _, err := c.file.ReadAt(b, p.off); err != nil {
		return nil, fmt.Errorf("%w: %w", errCodec, err)
	}
	return b, nil
}

// wasteful tells that most of the file counts no more.
func (c *catalog) wasteful() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file != nil && c.end > 64<<20 && c.end > 3*c.live
}

func (c *catalog) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}

// rewrite replaces the file by one that has only the given streams. The caller holds
// their locks.
func (c *catalog) rewrite(streams []*stream, n *names) error {
	fresh, _, err := openCatalog(filepath.Join(filepath.Dir(c.path), "catalog.new"), &names{})
	if err != nil {
		return err
	}
	fresh.named = 0
	if err := fresh.file.Truncate(0); err != nil {
		return errors.Join(err, fresh.close())
	}
	fresh.end, fresh.live = 0, 0
	moved := make([]place, len(streams))
	for i, s := range streams {
		b, err := s.kept(c)
		if b != nil && err == nil {
			moved[i], err = fresh.put(s.digest, b, n)
		}
		if err != nil {
			return errors.Join(err, fresh.close())
		}
	}
	if err := os.Rename(filepath.Join(filepath.Dir(c.path), "catalog.new"), c.path); err != nil {
		return errors.Join(err, fresh.close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.file
	c.file, c.end, c.live, c.named = fresh.file, fresh.end, fresh.live, fresh.named
	for i, s := range streams {
		if s.record = moved[i]; s.record.len > 0 {
			s.dirty = false
		}
	}
	return old.Close()
}

// kept is the state that belongs to a stream's digest, nil if there is none to keep.
func (s *stream) kept(c *catalog) ([]byte, error) {
	switch {
	case s.gone || s.digest == nil:
		return nil, nil
	case s.dirty && s.state != nil:
		return s.state.store()
	case s.dirty || s.record.len == 0:
		return nil, nil
	}
	return c.read(s.record)
}

func (e *encoder) digest(d *Digest) {
	for _, text := range [...]string{d.Path, d.ID, d.Slug, d.Description, string(d.Metadata), d.Interrupted, d.Stage, d.Failure} {
		e.text(text)
	}
	e.uint(uint64(d.Status))
	for _, v := range [...]int64{int64(d.Segments), int64(d.Marks), int64(d.Checkpoints), d.FirstTSMS, d.LastTSMS, d.OpenedTSMS,
		d.LastStep, d.Events, d.Metrics, d.Bad, d.Bytes, d.size, d.mtime} {
		e.int(v)
	}
	stepped := uint64(0)
	if d.Stepped {
		stepped = 1
	}
	e.uint(stepped)
	left := d.LeftOut
	for _, v := range left.fields() {
		e.int(*v)
	}
	e.uint(uint64(len(d.Curves)))
	for i := range d.Curves {
		c := &d.Curves[i]
		e.uint(uint64(c.Name))
		e.uint(uint64(c.Count))
		e.uint(uint64(c.NonFinite))
		e.int(c.LastStep)
		e.float(c.Last)
		e.float(c.Min)
		e.float(c.Max)
	}
}

// digest reads a digest; numbers are those of the names in this process.
func (d *decoder) digest(numbers []uint32) *Digest {
	g := &Digest{}
	var meta string
	for _, text := range [...]*string{&g.Path, &g.ID, &g.Slug, &g.Description, &meta, &g.Interrupted, &g.Stage, &g.Failure} {
		*text = d.text()
	}
	g.Metadata = metrics.Metadata(meta)
	g.Status = metrics.Status(d.uint())
	var segments, marks, checkpoints int64
	for _, v := range [...]*int64{&segments, &marks, &checkpoints, &g.FirstTSMS, &g.LastTSMS, &g.OpenedTSMS,
		&g.LastStep, &g.Events, &g.Metrics, &g.Bad, &g.Bytes, &g.size, &g.mtime} {
		*v = d.int()
	}
	g.Stepped = d.uint() == 1
	for _, v := range g.LeftOut.fields() {
		*v = d.int()
	}
	g.Segments, g.Marks, g.Checkpoints = int(segments), int(marks), int(checkpoints)
	g.Curves = make([]CurveStat, d.count())
	for i := range g.Curves {
		name := d.uint()
		if name >= uint64(len(numbers)) {
			d.fail()
			return g
		}
		g.Curves[i] = CurveStat{Name: numbers[name], Count: uint32(d.uint()), NonFinite: uint32(d.uint()),
			LastStep: d.int(), Last: d.float(), Min: d.float(), Max: d.float()}
	}
	if g.Status > metrics.StatusFailed {
		d.fail()
	}
	return g
}
