package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/foldlog/foldlog/internal/serde"
)

// readSize is how much of a file is read at once, in bytes.
const readSize = 256 << 10

// streamReader makes items of the lines of a stream's file: an event, or a bad
// line with its reason.
type streamReader struct {
	lines  splitter
	dec    Decoder
	item   Item
	handle func(*Item)
}

func (r *streamReader) write(p []byte) { r.lines.write(p, r.line) }

// end reports what is held without a newline.
func (r *streamReader) end() { r.lines.end(r.line) }

func (r *streamReader) line(l line) {
	it := &r.item
	it.Number, it.Offset, it.Line, it.Cut, it.Torn, it.Err = l.number, l.offset, l.text, l.cut, l.torn, nil
	err := r.decode(l)
	if err == nil {
		it.Kind = ItemEvent
		r.handle(it)
		return
	}
	it.Kind, it.Err = ItemBad, err
	glued := gluedEvent(it)
	r.handle(it)
	if glued != nil && r.dec.Decode(glued, &it.Event) == nil {
		it.Kind, it.Line, it.Err = ItemEvent, glued, nil
		r.handle(it)
	}
}

func (r *streamReader) decode(l line) error {
	var err error
	switch {
	case l.cut:
		r.item.Event = Event{}
		err = at(len(l.text), fmt.Errorf("%w: %d bytes", ErrLineTooLong, l.size))
	case l.torn:
		r.item.Event = Event{}
		err = at(len(l.text), ErrTorn)
	default:
		err = r.dec.Decode(l.text, &r.item.Event)
	}
	if err != nil {
		err.(*LineError).Line = l.number
	}
	return err
}

// gluedEvent finds a whole line behind a torn one: a writer that does not
// close the torn line of the process before leaves both on one line.
func gluedEvent(it *Item) []byte {
	if it.Cut || it.Torn || !notJSON(it.Err) {
		return nil
	}
	i := bytes.LastIndex(it.Line, []byte(lineStart))
	if i <= 0 {
		return nil
	}
	return it.Line[i:]
}

// notJSON tells a line that is no JSON from an object with something wrong.
func notJSON(err error) bool {
	for _, reason := range []error{serde.ErrSyntax, serde.ErrUTF8, serde.ErrSurrogate, serde.ErrDepth} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// ReadStream hands every line of a stream to handle, events and bad lines, the
// last one with [ErrTorn] if it has no newline. Memory is bounded by the
// longest line that readers hold. The error is the reader's.
func ReadStream(r io.Reader, handle func(*Item)) error {
	s := streamReader{handle: handle}
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		if err == io.EOF {
			s.end()
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stream: %w", err)
		}
	}
}
