package projection

import (
	"errors"
	"fmt"
	"os"

	"github.com/foldlog/foldlog/metrics"
)

// Query says which points of a curve are wanted, as [metrics.Query] does.
type Query struct {
	// Where is what the metadata must have, by [metrics.Metadata.Matches].
	Where map[string]string
	// Ranged limits the points to those with From <= step (or time) <= To.
	Ranged   bool
	Axis     metrics.Axis
	From, To int64
	// Points is how many points there may be, 0 any number; less than
	// [metrics.MinPoints] counts as that.
	Points int
	// NewestOnly leaves the older copies of repeated steps out.
	NewestOnly bool
}

// Reading is the points of a query in stream order. Segments and series count
// through all streams of the run.
type Reading struct {
	Points []Point
	// Older marks copies that a newer segment has repeated.
	Older []bool
	// Series are the metadata of the curve's series.
	Series []metrics.Metadata
	// Total is how many points the query has; Sampled tells that there are
	// fewer here.
	Total   int64
	Sampled bool
}

// Position is how far a stream had been read: where following it goes on.
type Position struct {
	ID     string
	Offset int64 // bytes of whole lines
}

// Read returns the points of several names of a run as of one moment, nil for a
// name that it does not have, and what that moment was.
func (s *Store) Read(run *Run, names []string, q Query) ([]*Reading, []Position, error) {
	r, at, err := s.read(run, names, q)
	for try := range 2 {
		missing := errors.Is(err, os.ErrNotExist)
		if !missing && !errors.Is(err, errCodec) && !errors.Is(err, errAnew) {
			break
		}
		// The projection of a stream is damaged, or was made anew meanwhile.
		if err = s.rebuild(run, errors.Is(err, errCodec) || missing && try > 0); err == nil {
			r, at, err = s.read(run, names, q)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read curves: %w", err)
	}
	return r, at, nil
}

func (s *Store) rebuild(run *Run, force bool) error {
	for _, d := range run.Streams {
		st := s.stream(d.Path)
		if st == nil {
			continue
		}
		if force {
			st.mu.Lock()
			st.restart()
			st.mu.Unlock()
		}
		for more := true; more; {
			var err error
			if more, err = st.catchUp(); err != nil && !errors.Is(err, errRemoved) {
				return err
			}
		}
	}
	return nil
}

func (s *Store) stream(path string) *stream {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.streams[path]
}

func (s *Store) read(run *Run, names []string, q Query) ([]*Reading, []Position, error) {
	readings := make([]*Reading, len(names))
	selections := make([]selection, len(names))
	var positions []Position
	segments := int32(0)
	for _, d := range run.Streams {
		st := s.stream(d.Path)
		if st == nil {
			continue
		}
		parts, pos, began, err := st.parts(names)
		if err != nil {
			return nil, nil, err
		}
		positions = append(positions, Position{d.ID, pos})
		for i, p := range parts {
			if p == nil {
				continue
			}
			if readings[i] == nil {
				readings[i] = &Reading{}
			}
			p.segments, p.series = segments, int32(len(readings[i].Series))
			readings[i].Series = append(readings[i].Series, p.metadata...)
			selections[i].parts = append(selections[i].parts, p)
		}
		segments += int32(began)
	}
	for i, r := range readings {
		if r == nil {
			continue
		}
		sel := &selections[i]
		sel.query, sel.want = q, wanted(r.Series, q.Where)
		err := sel.run(r)
		sel.close()
		if err != nil {
			return nil, nil, err
		}
	}
	return readings, positions, nil
}

// errAnew means that a stream is being read from its beginning, and that nothing of it is
// there yet.
var errAnew = errors.New("the stream is being read anew")

func wanted(series []metrics.Metadata, where map[string]string) []bool {
	if len(where) == 0 {
		return nil
	}
	want := make([]bool, len(series))
	for i, m := range series {
		want[i] = m.Matches(where)
	}
	return want
}

// part is one curve of one stream as it was at one moment: entries of blocks, and
// the ending. It does not change.
type part struct {
	metadata         []metrics.Metadata
	entries          []entry
	path             string // of the blocks
	segments, series int32  // where those of the stream begin in the run's
	file             *os.File
}

// parts takes hold of curves, nil for one that the stream does not have. It returns
// how far the stream has been read, and how many segments there are.
func (s *stream) parts(names []string) (parts []*part, pos int64, segments int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts = make([]*part, len(names))
	switch {
	case s.digest == nil && s.published != nil && !s.gone:
		return nil, 0, 0, errAnew
	case s.digest == nil || s.gone:
		return parts, 0, 0, nil
	}
	pos, segments = s.digest.Bytes, s.digest.Segments
	for i, name := range names {
		id, ok := s.store.names.find(name)
		if !ok || s.digest.Curve(id) == nil {
			continue
		}
		if err := s.wakeForReading(); err != nil {
			return nil, 0, 0, err
		}
		if at, ok := s.state.byName[name]; ok {
			parts[i] = s.part(at)
		}
	}
	return parts, pos, segments, nil
}

// part takes hold of one curve.
func (s *stream) part(at int) *part {
	st := s.state
	p := &part{metadata: st.curves[at].series[:len(st.curves[at].series):len(st.curves[at].series)], path: s.pointsPath()}
	if at < len(st.entries) {
		p.entries = append(p.entries, st.entries[at]...)
	}
	if at < len(st.end.grown) && len(st.end.grown[at].steps) > 0 {
		g := &st.end.grown[at]
		chunks := joined(g.chunks, st.stride)
		p.entries = append(p.entries, entry{n: int32(len(g.steps)), series: mixed, chunks: chunks, memory: &columns{
			steps: g.steps[:len(g.steps):len(g.steps)], times: g.times[:len(g.times):len(g.times)],
			values: g.values[:len(g.values):len(g.values)], series: g.series[:len(g.series):len(g.series)],
		}})
	}
	return p
}

func (s *stream) wakeForReading() error {
	if s.state == nil || !s.state.end.ok {
		f, err := s.store.open(s.path)
		if err != nil {
			return fmt.Errorf("read stream: %w", err)
		}
		defer f.Close()
		if err := s.wake(f); err != nil {
			return err
		}
	}
	return s.loadBlocks()
}

// columns reads the points of an entry.
func (p *part) columns(e *entry) (*columns, error) {
	if e.memory != nil {
		return e.memory, nil
	}
	if p.file == nil {
		f, err := os.Open(p.path)
		if err != nil {
			return nil, err
		}
		p.file = f
	}
	return readColumns(p.file, e)
}

// Outline is a run's stream without its points.
type Outline struct {
	Digest  *Digest
	Outline metrics.Outline
}

// Outlines returns what the streams of a run say about its course, in their
// order.
func (s *Store) Outlines(run *Run) ([]Outline, error) {
	var list []Outline
	for _, d := range run.Streams {
		st := s.stream(d.Path)
		if st == nil {
			continue
		}
		o, err := st.outline()
		if errors.Is(err, errCodec) {
			if err = s.rebuild(run, true); err == nil {
				o, err = st.outline()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("read run: %w", err)
		}
		list = append(list, o)
	}
	return list, nil
}

func (s *stream) outline() (Outline, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.digest == nil {
		return Outline{}, fmt.Errorf("stream %s: %w", s.path, ErrNotFound)
	}
	if s.state == nil {
		st, err := s.load()
		if err != nil {
			return Outline{}, err
		}
		return Outline{s.digest, st.outline}, nil
	}
	o := s.state.outline
	o.Segments = append([]metrics.Segment(nil), o.Segments...)
	o.Marks = o.Marks[:len(o.Marks):len(o.Marks)]
	return Outline{s.digest, o}, nil
}

// Events reads the events of a stream from an offset at the beginning of a line to
// where the digest ends, but not much more than most bytes, and returns the offset
// to go on from, which is from itself where the file has become shorter. Lines that are
// no events are passed over. It takes no lock: what it reads is the file.
func (s *Store) Events(d *Digest, from, most int64, handle func(*metrics.Event)) (next int64, err error) {
	f, err := s.open(d.Path)
	if err != nil {
		return from, fmt.Errorf("read events: %w", err)
	}
	defer f.Close()
	dec := s.decoders.Get().(*metrics.Decoder)
	defer s.decoders.Put(dec)
	var e metrics.Event
	next = from
	line := func(text []byte, after int64) {
		next = after
		if text != nil && (decodeLine(dec, text, &e) == nil || glued(dec, text, &e)) {
			handle(&e)
		}
	}
	var scanned int64
	for end := from; ; {
		end = min(d.Bytes, end+max(most, metrics.MaxLine+1))
		before := scanned
		err = eachLine(f, from, end, &scanned, line, func() {})
		// A line that is too long takes several turns.
		if err != nil || next > from || end == d.Bytes || scanned == before {
			return next, err
		}
	}
}
