package metrics

import "bytes"

// line is one line without its newline; text is valid until the next one.
type line struct {
	text   []byte
	number int64 // from 1
	offset int64 // of its first byte in the stream
	size   int64 // its bytes, with the newline and all that was cut
	cut    bool  // only the beginning is in text
	torn   bool  // no newline came
}

// splitter cuts a byte stream into lines and holds no more than one of them.
type splitter struct {
	limit  int // 0 is MaxLine
	number int64
	offset int64 // of the line that is held
	held   []byte
	lost   int64 // bytes of the held line that were dropped
}

func (s *splitter) most() int {
	if s.limit > 0 {
		return s.limit
	}
	return MaxLine
}

// write hands over every line that p completes. Lines that lie whole in p are
// not copied.
func (s *splitter) write(p []byte, handle func(line)) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.hold(p)
			return
		}
		text := p[:end]
		if len(s.held) > 0 || s.lost > 0 {
			s.hold(text)
			text = s.held
		} else if len(text) > s.most() {
			text, s.lost = text[:s.most()], int64(len(text)-s.most())
		}
		s.emit(text, 1, handle)
		p = p[end+1:]
	}
}

func (s *splitter) hold(p []byte) {
	room := min(len(p), s.most()-len(s.held))
	s.held = append(s.held, p[:room]...)
	s.lost += int64(len(p) - room)
}

func (s *splitter) emit(text []byte, newline int64, handle func(line)) {
	s.number++
	size := int64(len(text)) + s.lost + newline
	l := line{text: text, number: s.number, offset: s.offset, size: size, cut: s.lost > 0, torn: newline == 0}
	s.offset += size
	s.lost = 0
	s.held = s.held[:0]
	handle(l)
}

// end hands over what is held as a torn line.
func (s *splitter) end(handle func(line)) {
	if s.pending() > 0 {
		s.emit(s.held, 0, handle)
	}
}

// pending is how many bytes of an incomplete line have come.
func (s *splitter) pending() int64 { return int64(len(s.held)) + s.lost }

// restart forgets what is held and continues at an offset with a line number.
func (s *splitter) restart(offset, number int64) {
	s.held, s.lost, s.offset, s.number = s.held[:0], 0, offset, number
}
