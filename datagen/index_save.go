package datagen

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/lance/memwal"
)

// A stored index is a line that names the format, and blocks, each with its length and
// its checksum: a head in JSON, the spellings of tags, and the rows, a chunk in each
// block but the last. So neither writing nor reading one gathers what is in it.

// indexFormat begins a stored index. Bump the number when one that was stored before
// would be misread; it is made anew then.
const indexFormat = "foldlog datagen index 2\n"

var (
	// ErrIndex means that a stored index cannot be used. Make a new one.
	ErrIndex = errors.New("stored index is of no use")
	// ErrIndexMoved means that an index was not stored, since there was news. Store it
	// again later.
	ErrIndexMoved = errors.New("the index changed while it was stored")
)

// indexHead is what is not by item.
type indexHead struct {
	UpTo        map[string]uint64
	Frags       []uint64
	Steps       []storedStep
	Kinds       []storedFailure
	Writers     []storedWriter
	Count       int64
	Versions    uint64
	Items, Tags int
}

type storedStep struct {
	Name             string
	Index, Completed int64
}

type storedFailure struct {
	Step, Kind          string
	Events, First, Last int64
}

type storedWriter struct {
	Name, Run           string
	Events, First, Last int64
}

// Save writes the index so that LoadIndex can go on with it. It needs no more memory than
// for a block. Questions are answered meanwhile, and an update that has news is not kept
// waiting: Save ends with ErrIndexMoved then.
func (x *Index) Save(w io.Writer) error {
	x.steady.Lock()
	defer x.steady.Unlock()
	if err := x.save(&blockWriter{w: w}); err != nil {
		return fmt.Errorf("save index: %w", err)
	}
	return nil
}

func (x *Index) save(w *blockWriter) error {
	if _, err := io.WriteString(w.w, indexFormat); err != nil {
		return err
	}
	head, err := json.Marshal(x.head())
	if err == nil {
		err = w.block(head)
	}
	if err != nil {
		return err
	}
	var b spillWriter
	for tags := range slices.Chunk(x.tags, chunk) {
		b = b[:0]
		for _, t := range tags {
			b.text(t)
		}
		if err := w.block(b); err != nil {
			return err
		}
	}
	for from := 0; from < x.rows.n; from += chunk {
		if x.wanted.Load() > 0 {
			return ErrIndexMoved
		}
		b = x.appendRows(b[:0], uint32(from), uint32(min(from+chunk, x.rows.n)))
		if err := w.block(b); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) head() *indexHead {
	h := &indexHead{UpTo: map[string]uint64{}, Count: x.sum.events, Versions: x.Version(), Items: x.rows.n, Tags: len(x.tags)}
	for id, n := range x.upTo {
		h.UpTo[id.String()] = n
	}
	h.Frags = slices.Sorted(maps.Keys(x.frags))
	x.sum.steps.each(func(_ int, n stepName, c *stepCount) {
		h.Steps = append(h.Steps, storedStep{n.name, c.index, c.completed})
	})
	x.sum.failures.each(func(_ int, n failureName, c *failureCount) {
		h.Kinds = append(h.Kinds, storedFailure{n.step, n.kind, c.events, c.first, c.last})
	})
	x.sum.writers.each(func(_ int, n writerName, c *writerCount) {
		h.Writers = append(h.Writers, storedWriter{n.name, c.run, c.events, c.first, c.last})
	})
	return h
}

// LoadIndex reads an index of this log that was saved in size bytes. The error is
// [ErrIndex] if the bytes are no index, or that of the reader. An index of another log
// cannot be recognised: the caller must not pass one.
func (l *Log) LoadIndex(r io.Reader, size int64) (*Index, error) {
	format := make([]byte, len(indexFormat))
	if _, err := io.ReadFull(r, format); err != nil || string(format) != indexFormat {
		return nil, errors.Join(ErrIndex, err)
	}
	x := l.NewIndex()
	if err := x.load(&blockReader{r: r, left: size - int64(len(format))}); err != nil {
		return nil, fmt.Errorf("load index: %w", err)
	}
	return x, nil
}

func (x *Index) load(r *blockReader) error {
	b, err := r.block()
	if err != nil {
		return err
	}
	var h indexHead
	if err := json.Unmarshal(b, &h); err != nil {
		return errors.Join(ErrIndex, err)
	}
	if err := x.restore(&h); err != nil {
		return err
	}
	if x.tags, err = r.tags(h.Tags); err != nil {
		return err
	}
	x.tagged = make(map[string]uint32, len(x.tags))
	for i, t := range x.tags {
		x.tagged[t] = uint32(i)
	}
	// A row takes more than rowBytes: what claims more rows than there can be gets no memory.
	if h.Items < 0 || h.Items > math.MaxUint32-1 || int64(h.Items) > r.left/rowBytes {
		return ErrIndex
	}
	x.items.reserve(h.Items)
	for from := 0; from < h.Items; from += chunk {
		if b, err = r.block(); err != nil {
			return err
		}
		if err := x.readRows(b, min(chunk, h.Items-from)); err != nil {
			return err
		}
	}
	if r.left != 0 {
		return ErrIndex
	}
	x.counting()
	return nil
}

// restore takes over what is not by item.
func (x *Index) restore(h *indexHead) error {
	x.version, x.sum.events = h.Versions, h.Count
	for i, st := range h.Steps {
		_, c := restoreGroup(&x.sum.steps, i, stepName{st.Name})
		*c = stepCount{st.Index, st.Completed}
	}
	for i, f := range h.Kinds {
		_, c := restoreGroup(&x.sum.failures, i, failureName{f.Step, f.Kind})
		*c = failureCount{f.Events, f.First, f.Last}
	}
	for i, w := range h.Writers {
		_, c := restoreGroup(&x.sum.writers, i, writerName{w.Name})
		*c = writerCount{w.Run, w.Events, w.First, w.Last}
	}
	for id, n := range h.UpTo {
		shard, err := memwal.ParseID(id)
		if err != nil {
			return errors.Join(ErrIndex, err)
		}
		x.upTo[shard] = n
	}
	x.frags = map[uint64]bool{}
	for _, id := range h.Frags {
		x.frags[id] = true
	}
	return nil
}

// restoreGroup restores a name that items refer to by its number; number 0 comes first.
func restoreGroup[K comparable, V any](g *groups[K, V], i int, name K) (uint32, *V) {
	if i > 0 {
		return g.of(name)
	}
	if g.numbers == nil {
		g.numbers = map[K]uint32{}
		g.names, g.counts = make([]K, 1), []*V{new(V)}
	}
	return 0, g.counts[0]
}

// blockWriter writes blocks, each with its length and checksum before it.
type blockWriter struct{ w io.Writer }

func (w *blockWriter) block(b []byte) error {
	if int64(len(b)) > math.MaxUint32 {
		return fmt.Errorf("a block of %d bytes", len(b))
	}
	var head [8]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(b)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(b, castagnoli))
	if _, err := w.w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.w.Write(b)
	return err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockReader reads blocks of what has so many bytes left.
type blockReader struct {
	r    io.Reader
	left int64
	buf  []byte
}

// block reads the next block, which is good until the one after it.
func (r *blockReader) block() ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return nil, cut(err)
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if r.left -= n + int64(len(head)); r.left < 0 {
		return nil, ErrIndex
	}
	r.buf = slices.Grow(r.buf[:0], int(n))[:n]
	if _, err := io.ReadFull(r.r, r.buf); err != nil {
		return nil, cut(err)
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, fmt.Errorf("%w: a checksum is wrong", ErrIndex)
	}
	return r.buf, nil
}

// cut is the error of a reader that ended too soon.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrIndex
	}
	return err
}

// tags reads so many spellings of tags.
func (r *blockReader) tags(n int) ([]string, error) {
	if n < 1 || int64(n) > r.left {
		return nil, ErrIndex
	}
	tags := make([]string, 0, n)
	for len(tags) < n {
		b, err := r.block()
		if err != nil {
			return nil, err
		}
		texts := spillReader{b: b}
		for range min(chunk, n-len(tags)) {
			tags = append(tags, strings.Clone(texts.text()))
		}
		if texts.bad || len(texts.b) > 0 {
			return nil, ErrIndex
		}
	}
	return tags, nil
}
