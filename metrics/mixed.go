package metrics

import (
	"bytes"
	"errors"
)

// ItemKind tells what a line of a mixed output is.
type ItemKind uint8

// What a line of a mixed output can be.
const (
	// ItemText is anything that is none of the others.
	ItemText ItemKind = iota
	// ItemEvent is an event of the stream.
	ItemEvent
	// ItemValues is a JSON object that is no event, or a text with
	// name=value pairs in it; see [Item.Values].
	ItemValues
	// ItemSummary is the summary line of `run --json`.
	ItemSummary
	// ItemBad is an object of one of the four kinds in which something is
	// wrong; Err tells what. In a file, any line that is no event.
	ItemBad
	// ItemRewritten is no line: a followed file was shortened, replaced or
	// overwritten; Err tells how. Offset is where it is read anew, Number the lines before
	// that: what was handed over from there on counts no more, and comes again if it is
	// still in the file.
	ItemRewritten
)

// Item is one line of a mixed output or of a stream's file. Line and Text alias the reader's memory
// and are valid until the function that got the item returns.
type Item struct {
	Kind ItemKind
	// Number counts lines from 1.
	Number int64
	// Offset is where the line begins in its file or output, in bytes.
	Offset int64
	// Line is the line as it came, without its newline and a carriage return
	// before it; its beginning if Cut.
	Line []byte
	// Cut tells that the line is longer than the reader holds.
	Cut bool
	// Torn tells that the output ended without a newline after this line.
	Torn bool
	// Event is the event of an ItemEvent. Its texts stay valid.
	Event Event
	// Values are the members of an ItemValues in order, objects inside
	// flattened with "/" between the names. They are valid like Line.
	Values []Value
	// Err is why an ItemBad is one, a [LineError].
	Err error
}

// Mixed is an [io.Writer] that takes the output of a training process piece by
// piece, in which events may stand between other lines, and hands each line to
// a function as soon as it is complete. It never waits and never fails: what
// is no event is an item too. Memory is bounded by the longest line.
//
// Copy a process's standard output into it, then call Close.
type Mixed struct {
	handle func(*Item)
	lines  splitter
	dec    Decoder
	item   Item
	values []Value
}

// NewMixed returns a Mixed that calls handle for every line, from the
// goroutine that calls Write or Close. Lines longer than maxLine bytes are cut;
// 0 is [MaxLine].
func NewMixed(maxLine int, handle func(*Item)) *Mixed {
	m := &Mixed{handle: handle, dec: Decoder{plain: true}}
	m.lines.limit = maxLine
	return m
}

// Write takes a piece of the output. It takes all of it and returns no error.
func (m *Mixed) Write(p []byte) (int, error) {
	m.lines.write(p, m.line)
	return len(p), nil
}

// Close hands over the last line if it has no newline.
func (m *Mixed) Close() error {
	m.lines.end(m.line)
	return nil
}

func (m *Mixed) line(l line) {
	m.item = Item{Number: l.number, Offset: l.offset, Line: bytes.TrimSuffix(l.text, []byte("\r")), Cut: l.cut, Torn: l.torn}
	m.classify()
	m.handle(&m.item)
}

func (m *Mixed) classify() {
	it := &m.item
	if it.Cut {
		return
	}
	if len(it.Line) == 0 || it.Line[0] != '{' {
		m.pairs()
		return
	}
	err := m.dec.Decode(it.Line, &it.Event)
	switch {
	case err == nil:
		it.Kind = ItemEvent
	case errors.Is(err, ErrKind):
		m.object()
	case m.dec.complete():
		err.(*LineError).Line = it.Number
		it.Kind, it.Err = ItemBad, err
	default:
		m.pairs()
	}
}

// object reads the members of an object that is no event.
func (m *Mixed) object() {
	m.item.Kind = ItemValues
	m.values = m.values[:0]
	for i := range m.dec.members {
		mem := &m.dec.members[i]
		m.values = flatten(m.values, string(mem.key), mem.jsonRaw())
	}
	m.item.Values = m.values
	if isSummary(m.dec.members) {
		m.item.Kind = ItemSummary
	}
}

// isSummary knows the summary by its kind, or by being its only member.
func isSummary(members []member) bool {
	for _, mem := range members {
		if string(mem.key) == "kind" && string(mem.raw) == `"summary"` {
			return true
		}
	}
	return len(members) == 1 && string(members[0].key) == "summary"
}

func (m *Mixed) pairs() {
	m.values = appendPairs(m.values[:0], m.item.Line)
	if len(m.values) > 0 {
		m.item.Kind, m.item.Values = ItemValues, m.values
	}
}
