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

// Position is how far a stream has been read, in bytes: where following it goes
// on.
type Position struct {
	Stream string // path
	ID     string
	Offset int64
}

// Read returns the points of one name of a run.
func (s *Store) Read(run *Run, name string, q Query) (*Reading, error) {
	r, err := s.read(run, name, q)
	if errors.Is(err, errCodec) || errors.Is(err, os.ErrNotExist) {
		// The projection of a stream is damaged, or was made anew meanwhile.
		if err = s.rebuild(run, errors.Is(err, errCodec)); err == nil {
			r, err = s.read(run, name, q)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read curve: %w", err)
	}
	return r, nil
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
			if more, err = st.catchUp(); err != nil {
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

func (s *Store) read(run *Run, name string, q Query) (*Reading, error) {
	r := &Reading{}
	sel := selection{query: q}
	defer sel.close()
	segments := int32(0)
	for _, d := range run.Streams {
		st := s.stream(d.Path)
		if st == nil {
			continue
		}
		p, err := st.part(name)
		if err != nil {
			return nil, err
		}
		if p != nil {
			p.segments, p.series = segments, int32(len(r.Series))
			r.Series = append(r.Series, p.metadata...)
			sel.parts = append(sel.parts, p)
		}
		segments += int32(d.Segments)
	}
	sel.want = wanted(r.Series, q.Where)
	return r, sel.run(r)
}

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

// part takes hold of a curve. It is nil if the stream has none of that name.
func (s *stream) part(name string) (*part, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.digest == nil {
		return nil, nil
	}
	id, ok := s.store.names.find(name)
	if !ok || s.digest.Curve(id) == nil {
		return nil, nil
	}
	if err := s.wakeForReading(); err != nil {
		return nil, err
	}
	st := s.state
	at, ok := st.byName[name]
	if !ok {
		return nil, nil
	}
	p := &part{metadata: st.curves[at].series[:len(st.curves[at].series):len(st.curves[at].series)], path: s.pointsPath()}
	if at < len(st.entries) {
		p.entries = append(p.entries, st.entries[at]...)
	}
	if at < len(st.end.grown) && len(st.end.grown[at].steps) > 0 {
		g := &st.end.grown[at]
		chunks := append([]chunk(nil), g.chunks...)
		p.entries = append(p.entries, entry{n: int32(len(g.steps)), series: mixed, chunks: chunks, memory: &columns{
			steps: g.steps[:len(g.steps):len(g.steps)], times: g.times[:len(g.times):len(g.times)],
			values: g.values[:len(g.values):len(g.values)], series: g.series[:len(g.series):len(g.series)],
		}})
	}
	return p, nil
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
