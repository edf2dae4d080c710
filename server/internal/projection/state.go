package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/foldlog/foldlog/metrics"
)

// state is a stream as far as it has been read: everything but the points that
// are in blocks. It exists while the stream is being read or asked for.
type state struct {
	outline metrics.Outline
	id      string
	pos     int64 // bytes of whole lines read
	scanned int64 // how far a line that is too long has been looked at, or 0
	bad     int64
	left    LeftOut
	text    int64 // bytes of what is kept of metadata and annotations
	head    mark  // the first bytes, and those before pos, to know the file again
	tail    mark
	curves  []*curve
	byName  map[string]int
	byRaw   map[rawKey]ref
	// rawBytes are those of the keys of byRaw.
	rawBytes int
	end      ending

	// Of the blocks on disk: up to where they reach in the source, how long
	// their file is, and how many segments had begun there.
	blocksTo, blocksBytes int64
	blocksSegments        int

	loaded  bool // entries has the blocks
	entries [][]entry
	// summaries counts the chunks of entries, each of up to stride points.
	summaries int
	stride    int32
}

// mark is a checksum over bytes at one end of what has been read.
type mark struct {
	Len int64  `json:"len"`
	Sum uint32 `json:"sum"`
}

// markBytes is how many bytes a mark covers at most.
const markBytes = 256

// ending is the points behind the last block, if ok: from there up to to.
type ending struct {
	ok       bool
	to       int64
	segments int // that had begun at to
	grown    []growing
}

type curve struct {
	name   string
	stat   CurveStat
	series []metrics.Metadata
	byMeta map[metrics.Metadata]int32
}

type rawKey struct {
	name string
	meta metrics.Metadata
}

// ref is a curve and one of its series; curve -1 is one that is left out.
type ref struct {
	curve  int32
	series int32
	bare   bool // without the metadata that it has
}

// mostRaw and mostRawBytes bound what remembers spellings of metadata.
const (
	mostRaw      = 1 << 14
	mostRawBytes = 4 << 20
)

func newState() *state {
	return &state{byName: map[string]int{}, byRaw: map[rawKey]ref{}, end: ending{ok: true}, loaded: true, stride: chunkPoints}
}

// refOf finds or makes the curve and series of a metric.
func (s *state) refOf(e *metrics.Event, n *names) ref {
	key := rawKey{e.Name, e.Metadata}
	r, ok := s.byRaw[key]
	if ok {
		return r
	}
	at := s.curveOf(e.Name, n)
	r = ref{curve: int32(at)}
	if at >= 0 {
		r.series, r.bare = s.seriesOf(s.curves[at], e.Metadata)
	}
	if s.rawBytes += len(e.Name) + len(e.Metadata); len(s.byRaw) >= mostRaw || s.rawBytes > mostRawBytes {
		clear(s.byRaw)
		s.rawBytes = 0
	}
	s.byRaw[key] = r
	return r
}

// curveOf is the curve of a name, -1 if it would be one too many.
func (s *state) curveOf(name string, n *names) int {
	if at, ok := s.byName[name]; ok {
		return at
	}
	if len(s.curves) >= MostNames {
		return -1
	}
	id, ok := n.id(name)
	if !ok {
		return -1
	}
	at := len(s.curves)
	s.curves = append(s.curves, &curve{name: n.name(id), stat: CurveStat{Name: id}, byMeta: map[metrics.Metadata]int32{}})
	s.byName[s.curves[at].name] = at
	return at
}

// seriesOf is the series of metadata; bare tells that it is that of no metadata, since
// the curve has too many.
func (s *state) seriesOf(c *curve, m metrics.Metadata) (at int32, bare bool) {
	m = m.Canonical()
	if i, ok := c.byMeta[m]; ok {
		return i, false
	}
	if none := metrics.Metadata("").Canonical(); m != none && (len(c.series) >= MostSeries || !s.takeText(len(m))) {
		at, _ = s.seriesOf(c, none)
		return at, true
	}
	at, m = int32(len(c.series)), metrics.Metadata(strings.Clone(string(m)))
	c.series = append(c.series, m)
	c.byMeta[m] = at
	return at, false
}

// line takes the next line, without its newline. It is outside of what the
// format allows where reading goes on: a bad line is counted and passed over.
func (s *state) line(dec *metrics.Decoder, text []byte, n *names) {
	if s.id == "" {
		s.id = metrics.StreamID(text)
	}
	var e metrics.Event
	if err := decodeLine(dec, text, &e); err != nil {
		s.bad++
		if !glued(dec, text, &e) {
			return
		}
	}
	s.outlined(&e, len(text))
	if e.Kind != metrics.KindMetric {
		return
	}
	r := s.refOf(&e, n)
	if r.curve < 0 {
		s.left.Points++
		return
	}
	if r.bare {
		s.left.Metadata++
	}
	v := e.Value.Float64()
	s.curves[r.curve].stat.add(e.Step, v)
	if s.end.ok {
		s.end.add(r, &Point{e.Step, e.TSMS, v, int32(len(s.outline.Segments) - 1), r.series})
	}
}

func decodeLine(dec *metrics.Decoder, text []byte, e *metrics.Event) error {
	if len(text) > metrics.MaxLine {
		return metrics.ErrLineTooLong
	}
	return dec.Decode(bytes.TrimSuffix(text, []byte("\r")), e)
}

var lineStart = []byte(`{"ts_ms":`)

// glued finds a whole event behind the torn line of a killed process that the
// next one has not closed off.
func glued(dec *metrics.Decoder, text []byte, e *metrics.Event) bool {
	i := bytes.LastIndex(text, lineStart)
	return i > 0 && decodeLine(dec, text[i:], e) == nil
}

func (e *ending) add(r ref, p *Point) {
	for int(r.curve) >= len(e.grown) {
		e.grown = append(e.grown, growing{})
	}
	e.grown[r.curve].add(p)
}

// replayLine is line for what has been read before: it makes the points of the
// ending again.
func (s *state) replayLine(dec *metrics.Decoder, text []byte, n *names) {
	var e metrics.Event
	if decodeLine(dec, text, &e) != nil && !glued(dec, text, &e) {
		return
	}
	if e.Kind == metrics.KindOpen && s.end.segments < MostSegments || s.end.segments == 0 {
		s.end.segments++
	}
	if e.Kind != metrics.KindMetric {
		return
	}
	r := s.refOf(&e, n)
	if r.curve < 0 {
		return
	}
	s.end.add(r, &Point{e.Step, e.TSMS, e.Value.Float64(), int32(s.end.segments - 1), r.series})
}

// digest sums the state up.
func (s *state) digest(path string, size, mtime int64) *Digest {
	o := &s.outline
	d := &Digest{
		Path: path, ID: s.id, Slug: o.Slug, Description: metrics.CutText(o.Description, MostDescription), Metadata: listed(o.Metadata),
		Status: o.Status, Interrupted: metrics.CutText(o.Interrupted(), 300), Stage: metrics.CutText(o.Stage(), 300), LeftOut: s.left, Segments: len(o.Segments), Marks: len(o.Marks),
		FirstTSMS: o.FirstTSMS, LastTSMS: o.LastTSMS, Events: o.Events, Metrics: o.Metrics, Bad: s.bad, Bytes: s.pos,
		LastStep: o.LastStep, Stepped: o.Stepped, size: size, mtime: mtime,
	}
	for i := range o.Marks {
		switch m := &o.Marks[i]; m.Class {
		case metrics.NoteCheckpoint:
			d.Checkpoints++
		case metrics.NoteFailed:
			if m.Segment == len(o.Segments)-1 {
				d.Failure = metrics.CutText(m.Error, 300)
			}
		}
	}
	for i := len(o.Segments) - 1; i >= 0; i-- {
		if seg := &o.Segments[i]; seg.Opened {
			d.OpenedTSMS = seg.FirstTSMS
			break
		}
	}
	d.Curves = make([]CurveStat, len(s.curves))
	for i, c := range s.curves {
		d.Curves[i] = c.stat
	}
	return d
}

// stored is the part of a state that a record keeps and a digest lacks.
type stored struct {
	Outline        metrics.Outline      `json:"outline"`
	Series         [][]metrics.Metadata `json:"series"` // of each curve
	Head           mark                 `json:"head"`
	Tail           mark                 `json:"tail"`
	BlocksTo       int64                `json:"blocks_to"`
	BlocksBytes    int64                `json:"blocks_bytes"`
	BlocksSegments int                  `json:"blocks_segments"`
	Text           int64                `json:"text"`
}

func (s *state) store() ([]byte, error) {
	st := stored{Outline: s.outline, Head: s.head, Tail: s.tail, BlocksTo: s.blocksTo,
		BlocksBytes: s.blocksBytes, BlocksSegments: s.blocksSegments, Text: s.text, Series: make([][]metrics.Metadata, len(s.curves))}
	for i, c := range s.curves {
		st.Series[i] = c.series
	}
	b, err := json.Marshal(&st)
	if err != nil {
		return nil, fmt.Errorf("spell state of stream: %w", err)
	}
	return b, nil
}

// restore is the reverse of store, with the digest that was stored beside it.
func restore(b []byte, d *Digest, n *names) (*state, error) {
	var st stored
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, fmt.Errorf("%w: %w", errCodec, err)
	}
	if len(st.Series) != len(d.Curves) || st.BlocksTo > d.Bytes {
		return nil, errCodec
	}
	s := newState()
	s.outline, s.id, s.pos, s.bad, s.head, s.tail = st.Outline, d.ID, d.Bytes, d.Bad, st.Head, st.Tail
	s.blocksTo, s.blocksBytes, s.blocksSegments = st.BlocksTo, st.BlocksBytes, st.BlocksSegments
	s.left, s.text = d.LeftOut, st.Text
	s.loaded = st.BlocksBytes == 0
	s.end = ending{ok: st.BlocksTo == d.Bytes, to: st.BlocksTo, segments: st.BlocksSegments}
	for i, list := range st.Series {
		c := &curve{name: n.name(d.Curves[i].Name), stat: d.Curves[i], series: list, byMeta: map[metrics.Metadata]int32{}}
		for j, m := range list {
			c.byMeta[m] = int32(j)
		}
		s.byName[c.name] = i
		s.curves = append(s.curves, c)
	}
	return s, nil
}

// remember takes the marks of a file that has been read up to pos.
func (s *state) remember(f io.ReaderAt) error {
	var err error
	if s.head.Len < markBytes {
		s.head, err = markOf(f, 0, min(s.pos, markBytes))
	}
	if err == nil {
		n := min(s.pos, markBytes)
		s.tail, err = markOf(f, s.pos-n, n)
	}
	return err
}

// knows tells whether a file still holds what has been read of it.
func (s *state) knows(f io.ReaderAt, size int64) (bool, error) {
	if size < s.pos {
		return false, nil
	}
	for _, m := range [...]struct {
		mark
		at int64
	}{{s.head, 0}, {s.tail, s.pos - s.tail.Len}} {
		now, err := markOf(f, m.at, m.Len)
		if err != nil || now != m.mark {
			return false, err
		}
	}
	return true, nil
}

func markOf(f io.ReaderAt, at, n int64) (mark, error) {
	b := make([]byte, n)
	if k, err := f.ReadAt(b, at); k < len(b) {
		return mark{}, fmt.Errorf("read mark: %w", err)
	}
	return mark{n, checksum(b)}, nil
}
