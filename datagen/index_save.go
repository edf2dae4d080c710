package datagen

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"github.com/foldlog/foldlog/lance/memwal"
)

// indexFormat begins a stored index. Bump the number when one that was stored before
// would be misread; it is made anew then.
const indexFormat = "foldlog datagen index 1\n"

// ErrIndex means that a stored index cannot be used. Make a new one.
var ErrIndex = errors.New("stored index is of no use")

// storedIndex is an index as it is stored: a line of JSON, and then a column for each
// thing, strings one after the other with their lengths.
type storedIndex struct {
	indexHead

	IDs, Roots, Parents, Tags storedTexts
	TagOf                     []uint32

	Last, Created, Ended, Failed, Done, LastAt, CreatedAt, First []int64
	Attempt, FailAttempt, Events, Failures                       []int32
	Step, Failure                                                []uint32
	Sum                                                          []uint64
	Flags                                                        []byte
}

// indexHead is what is not by item.
type indexHead struct {
	UpTo     map[string]uint64
	Frags    []uint64
	Steps    []storedStep
	Kinds    []storedFailure
	Writers  []storedWriter
	Count    int64
	Versions uint64
	// Sizes are the lengths of the columns, in values.
	Sizes []int
}

// columns are pointers to the slices, in the order in which they are stored.
func (s *storedIndex) columns() []any {
	list := []any{}
	for _, t := range []*storedTexts{&s.IDs, &s.Roots, &s.Parents, &s.Tags} {
		list = append(list, &t.Lens, &t.Bytes)
	}
	return append(list, &s.TagOf, &s.Last, &s.Created, &s.Ended, &s.Failed, &s.Done, &s.LastAt, &s.CreatedAt, &s.First,
		&s.Attempt, &s.FailAttempt, &s.Events, &s.Failures, &s.Step, &s.Failure, &s.Sum, &s.Flags)
}

// encodeColumn appends a column and tells its length.
func encodeColumn(b []byte, column any) ([]byte, int, error) {
	var err error
	n := 0
	switch c := column.(type) {
	case *[]byte:
		b, n = append(b, *c...), len(*c)
	case *[]uint32:
		b, err = binary.Append(b, binary.LittleEndian, *c)
		n = len(*c)
	case *[]int32:
		b, err = binary.Append(b, binary.LittleEndian, *c)
		n = len(*c)
	case *[]int64:
		b, err = binary.Append(b, binary.LittleEndian, *c)
		n = len(*c)
	case *[]uint64:
		b, err = binary.Append(b, binary.LittleEndian, *c)
		n = len(*c)
	}
	return b, n, err
}

// decodeColumn reads n values and returns what follows them.
func decodeColumn(b []byte, column any, n int) ([]byte, error) {
	switch c := column.(type) {
	case *[]byte:
		if n < 0 || n > len(b) {
			return nil, ErrIndex
		}
		*c = b[:n]
		return b[n:], nil
	case *[]uint32:
		return decodeValues(b, c, n, 4)
	case *[]int32:
		return decodeValues(b, c, n, 4)
	case *[]int64:
		return decodeValues(b, c, n, 8)
	case *[]uint64:
		return decodeValues(b, c, n, 8)
	}
	return nil, ErrIndex
}

func decodeValues[T any](b []byte, column *[]T, n, width int) ([]byte, error) {
	if n < 0 || n > len(b)/width {
		return nil, ErrIndex
	}
	*column = make([]T, n)
	if _, err := binary.Decode(b, binary.LittleEndian, *column); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	return b[n*width:], nil
}

type storedTexts struct {
	Lens  []uint32
	Bytes []byte
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

func (t *storedTexts) add(s string) {
	t.Lens = append(t.Lens, uint32(len(s)))
	t.Bytes = append(t.Bytes, s...)
}

// all are the texts, which share memory.
func (t *storedTexts) all() ([]string, error) {
	list, rest := make([]string, len(t.Lens)), string(t.Bytes)
	for i, n := range t.Lens {
		if int(n) > len(rest) {
			return nil, ErrIndex
		}
		list[i], rest = rest[:n], rest[n:]
	}
	return list, nil
}

const (
	flagChild = 1 << iota
	flagTorn
	flagFiltered
)

// Save writes the index so that LoadIndex can go on with it.
func (x *Index) Save(w io.Writer) error {
	x.updating.Lock()
	defer x.updating.Unlock()
	x.mu.RLock()
	defer x.mu.RUnlock()
	b, err := x.stored().encode()
	if err != nil {
		return fmt.Errorf("save index: %w", err)
	}
	_, err = w.Write(b)
	return err
}

func (s *storedIndex) encode() ([]byte, error) {
	var body []byte
	var err error
	for _, column := range s.columns() {
		n := 0
		if body, n, err = encodeColumn(body, column); err != nil {
			return nil, err
		}
		s.Sizes = append(s.Sizes, n)
	}
	head, err := json.Marshal(&s.indexHead)
	if err != nil {
		return nil, err
	}
	b := append(append(append([]byte(indexFormat), head...), '\n'), body...)
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), nil
}

func (s *storedIndex) decode(b []byte) error {
	head, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return ErrIndex
	}
	if err := json.Unmarshal(head, &s.indexHead); err != nil {
		return fmt.Errorf("%w: %w", ErrIndex, err)
	}
	columns := s.columns()
	if len(s.Sizes) != len(columns) {
		return ErrIndex
	}
	for i, column := range columns {
		var err error
		if rest, err = decodeColumn(rest, column, s.Sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (x *Index) stored() *storedIndex {
	s := &storedIndex{indexHead: indexHead{UpTo: map[string]uint64{}, Count: x.sum.events, Versions: x.version}}
	for id, n := range x.upTo {
		s.UpTo[id.String()] = n
	}
	for id := range x.frags {
		s.Frags = append(s.Frags, id)
	}
	for _, t := range x.tags {
		s.Tags.add(t)
	}
	for n := range uint32(len(x.rows)) {
		s.row(&x.rows[n], x.sum.at(n))
	}
	x.sum.steps.each(func(_ int, n stepName, c *stepCount) {
		s.Steps = append(s.Steps, storedStep{n.name, c.index, c.completed})
	})
	x.sum.failures.each(func(_ int, n failureName, c *failureCount) {
		s.Kinds = append(s.Kinds, storedFailure{n.step, n.kind, c.events, c.first, c.last})
	})
	x.sum.writers.each(func(_ int, n writerName, c *writerCount) {
		s.Writers = append(s.Writers, storedWriter{n.name, c.run, c.events, c.first, c.last})
	})
	return s
}

// row adds a row. A root that is the item itself is stored as nothing.
func (s *storedIndex) row(row *indexRow, at *itemState) {
	s.IDs.add(row.id)
	root := row.root
	if root == row.id {
		root = ""
	}
	s.Roots.add(root)
	s.Parents.add(row.parent)
	s.TagOf = append(s.TagOf, row.tags)
	s.Last, s.Created, s.Ended = append(s.Last, at.last), append(s.Created, at.created), append(s.Ended, at.ended)
	s.Failed, s.Done = append(s.Failed, at.failed), append(s.Done, at.life.step)
	s.LastAt, s.CreatedAt, s.First = append(s.LastAt, at.lastAt), append(s.CreatedAt, at.createdAt), append(s.First, at.first)
	s.Attempt, s.FailAttempt = append(s.Attempt, at.attempt), append(s.FailAttempt, at.failAttempt)
	s.Events, s.Failures = append(s.Events, at.events), append(s.Failures, at.failures)
	s.Step, s.Failure, s.Sum = append(s.Step, at.step), append(s.Failure, at.failure), append(s.Sum, at.sum)
	var flags byte
	if at.child {
		flags |= flagChild
	}
	if at.torn {
		flags |= flagTorn
	}
	if at.filtered {
		flags |= flagFiltered
	}
	s.Flags = append(s.Flags, flags)
}

// LoadIndex reads an index that was saved of this log. It is [ErrIndex] for anything
// else; an index of another log, whatever its contents, is the caller's to prevent.
func (l *Log) LoadIndex(b []byte) (*Index, error) {
	body, ok := bytes.CutPrefix(b, []byte(indexFormat))
	if !ok || len(body) < 4 {
		return nil, ErrIndex
	}
	if end := len(b) - 4; crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrIndex)
	}
	var s storedIndex
	if err := s.decode(body[:len(body)-4]); err != nil {
		return nil, err
	}
	x := l.NewIndex()
	if err := x.restore(&s); err != nil {
		return nil, err
	}
	return x, nil
}

// whole tells whether every column has a value for each row.
func (s *storedIndex) whole() bool {
	n := len(s.IDs.Lens)
	for _, m := range []int{len(s.Roots.Lens), len(s.Parents.Lens), len(s.TagOf), len(s.Last), len(s.Created), len(s.Ended), len(s.Failed), len(s.Done),
		len(s.LastAt), len(s.CreatedAt), len(s.First), len(s.Attempt), len(s.FailAttempt), len(s.Events), len(s.Failures), len(s.Step),
		len(s.Failure), len(s.Sum), len(s.Flags)} {
		if m != n {
			return false
		}
	}
	return len(s.Tags.Lens) > 0
}

func (x *Index) restore(s *storedIndex) error {
	ids, err1 := s.IDs.all()
	roots, err2 := s.Roots.all()
	parents, err3 := s.Parents.all()
	tags, err4 := s.Tags.all()
	if err := errors.Join(err1, err2, err3, err4); err != nil || !s.whole() {
		return ErrIndex
	}
	x.groups(s)
	x.tags, x.tagged = tags, make(map[string]uint32, len(tags))
	for i, t := range tags {
		x.tagged[t] = uint32(i)
	}
	x.rows, x.version, x.sum.events = make([]indexRow, len(ids)), s.Versions, s.Count
	x.sum.index = make(map[itemHash]uint32, len(ids))
	for i, id := range ids {
		if x.sum.number(hashItem(id)) != uint32(i) || int(s.TagOf[i]) >= len(tags) ||
			int(s.Step[i]) >= max(1, len(x.sum.steps.names)) || int(s.Failure[i]) >= max(1, len(x.sum.failures.names)) {
			return ErrIndex
		}
		x.rows[i] = indexRow{id: id, root: roots[i], parent: parents[i], tags: s.TagOf[i], touched: s.Versions}
		if roots[i] == "" {
			x.rows[i].root = id
		}
		s.state(i, x.sum.at(uint32(i)), &x.rows[i])
	}
	for id, n := range s.UpTo {
		shard, err := memwal.ParseID(id)
		if err != nil {
			return ErrIndex
		}
		x.upTo[shard] = n
	}
	x.frags = map[uint64]bool{}
	for _, id := range s.Frags {
		x.frags[id] = true
	}
	return nil
}

func (s *storedIndex) state(i int, at *itemState, row *indexRow) {
	if at.place = hashItem(row.id).lo; row.parent != "" || row.root != row.id {
		at.place = placeOf(row.root, row.parent)
	}
	at.life = life{last: s.Last[i], created: s.Created[i], ended: s.Ended[i], failed: s.Failed[i], step: s.Done[i], lastAt: s.LastAt[i],
		createdAt: s.CreatedAt[i], attempt: s.Attempt[i], failAttempt: s.FailAttempt[i], filtered: s.Flags[i]&flagFiltered != 0}
	at.events, at.failures, at.step, at.failure = s.Events[i], s.Failures[i], s.Step[i], s.Failure[i]
	at.sum, at.first = s.Sum[i], s.First[i]
	at.child, at.torn = s.Flags[i]&flagChild != 0, s.Flags[i]&flagTorn != 0
}

// groups restores the names that items refer to, and their counts, number 0 first.
func (x *Index) groups(s *storedIndex) {
	for i, st := range s.Steps {
		_, c := restoreGroup(&x.sum.steps, i, stepName{strings.Clone(st.Name)})
		*c = stepCount{st.Index, st.Completed}
	}
	for i, f := range s.Kinds {
		_, c := restoreGroup(&x.sum.failures, i, failureName{f.Step, f.Kind})
		*c = failureCount{f.Events, f.First, f.Last}
	}
	for i, w := range s.Writers {
		_, c := restoreGroup(&x.sum.writers, i, writerName{w.Name})
		*c = writerCount{w.Run, w.Events, w.First, w.Last}
	}
}

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
