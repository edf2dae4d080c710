package arrowipc

import "fmt"

// maxDepth bounds how deep columns nest: the Arrow library has no bound.
const maxDepth = 64

// continuation begins the messages of streams, except those of old writers.
const continuation = 0xFFFFFFFF

// checkStream goes through the messages of a stream.
func checkStream(b []byte) error {
	for {
		head := 4
		if len(b) < head {
			return fmt.Errorf("%w: it ends within a message", ErrMalformed)
		}
		n := int64(le.Uint32(b))
		if n == continuation {
			if head = 8; len(b) < head {
				return fmt.Errorf("%w: it ends within a message", ErrMalformed)
			}
			n = int64(le.Uint32(b[4:]))
		}
		if n == 0 {
			return nil
		}
		b = b[head:]
		if n > int64(len(b)) {
			return fmt.Errorf("%w: a message of %d bytes, %d are left", ErrMalformed, n, len(b))
		}
		body, err := checkMessage(b[:n])
		if err != nil {
			return err
		}
		if b = b[n:]; body < 0 || body > int64(len(b)) {
			return fmt.Errorf("%w: a body of %d bytes, %d are left", ErrMalformed, body, len(b))
		}
		if b = b[body:]; len(b) == 0 {
			return nil
		}
	}
}

const fileMagic = "ARROW1"

// checkFile goes through the footer of a file and the messages that it names.
func checkFile(b []byte) error {
	end := len(b) - len(fileMagic) - 4
	if end < 0 || string(b[end+4:]) != fileMagic {
		return fmt.Errorf("%w: it does not end as an Arrow file", ErrMalformed)
	}
	n := int64(le.Uint32(b[end:]))
	if n > int64(end) {
		return fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrMalformed, n, len(b))
	}
	w := walk{b: b[int64(end)-n : end], left: n}
	footer := w.root()
	w.schema(w.child(footer, 1))
	w.metadata(w.child(footer, 4))
	w.blocks(w.child(footer, 2), b)
	w.blocks(w.child(footer, 3), b)
	return w.err
}

// checkMessage goes through a message and returns how long its body is.
func checkMessage(b []byte) (body int64, err error) {
	w := walk{b: b, left: int64(len(b))}
	message := w.root()
	w.metadata(w.child(message, 4))
	if kind := w.field(message, 1); kind != 0 && w.u8(kind) == headerSchema {
		w.schema(w.child(message, 2))
	}
	if at := w.field(message, 3); at != 0 {
		body = int64(w.u64(at))
	}
	return body, w.err
}

// headerSchema is the kind of a message that is a schema.
const headerSchema = 1

// walk goes through a flat buffer. Its tables and strings may be shared: each is counted
// as often as it is named, and all must not be more than the bytes that there are. After an
// error it finds nothing more.
type walk struct {
	b    []byte
	left int64
	err  error
}

func (w *walk) fail(what string) {
	if w.err == nil {
		w.err = fmt.Errorf("%w: %s", ErrMalformed, what)
	}
}

// take counts bytes that are read.
func (w *walk) take(n int64) bool {
	if w.left -= n; w.left < 0 {
		w.fail("its parts are more than its bytes")
	}
	return w.err == nil
}

// has reports whether there are n bytes at a place.
func (w *walk) has(at, n int64) bool {
	if at < 0 || n < 0 || at > int64(len(w.b)) || n > int64(len(w.b))-at {
		w.fail("it points beyond its end")
	}
	return w.err == nil
}

func (w *walk) u8(at int64) byte {
	if !w.has(at, 1) {
		return 0
	}
	return w.b[at]
}

func (w *walk) u16(at int64) int64 {
	if !w.has(at, 2) {
		return 0
	}
	return int64(le.Uint16(w.b[at:]))
}

func (w *walk) u32(at int64) int64 {
	if !w.has(at, 4) {
		return 0
	}
	return int64(le.Uint32(w.b[at:]))
}

func (w *walk) u64(at int64) uint64 {
	if !w.has(at, 8) {
		return 0
	}
	return le.Uint64(w.b[at:])
}

// root is the place of the first table.
func (w *walk) root() int64 { return w.u32(0) }

// field is the place of a field of a table, zero if it is absent.
func (w *walk) field(table int64, n int64) int64 {
	if w.err != nil {
		return 0
	}
	fields := table - int64(int32(w.u32(table)))
	if at := 4 + 2*n; at < w.u16(fields) { // as the library that Arrow uses has it, odd lengths too
		if off := w.u16(fields + at); off != 0 && w.err == nil {
			return table + off
		}
	}
	return 0
}

// child is the place of what a field of a table points at, zero if it is absent.
func (w *walk) child(table int64, n int64) int64 {
	at := w.field(table, n)
	if at == 0 {
		return 0
	}
	return w.follow(at)
}

func (w *walk) follow(at int64) int64 {
	off := w.u32(at)
	if w.err != nil {
		return 0
	}
	return at + off
}

// each calls do with the places of the tables of a vector.
func (w *walk) each(vector int64, do func(table int64)) {
	if vector == 0 {
		return
	}
	n := w.u32(vector)
	for i := range n {
		if !w.take(4) {
			return
		}
		at := w.follow(vector + 4 + 4*i)
		if w.err != nil {
			return
		}
		do(at)
	}
}

// text counts a string.
func (w *walk) text(at int64) {
	if at != 0 && w.err == nil {
		w.take(w.u32(at))
	}
}

func (w *walk) metadata(vector int64) {
	w.each(vector, func(pair int64) {
		w.text(w.child(pair, 0))
		w.text(w.child(pair, 1))
	})
}

func (w *walk) schema(table int64) {
	if table == 0 {
		return
	}
	w.columns(w.child(table, 1), 0)
	w.metadata(w.child(table, 2))
}

func (w *walk) columns(vector int64, depth int) {
	if depth > maxDepth {
		w.fail("columns are nested too deep")
		return
	}
	w.each(vector, func(column int64) {
		w.take(4)
		w.text(w.child(column, 0))
		w.metadata(w.child(column, 6))
		w.kind(column)
		w.columns(w.child(column, 5), depth+1)
	})
}

// The kinds of types that have something of any length: a time zone, numbers of columns.
const (
	kindTimestamp = 10
	kindUnion     = 14
)

func (w *walk) kind(column int64) {
	at, of := w.field(column, 2), w.child(column, 3)
	if at == 0 || of == 0 {
		return
	}
	switch w.u8(at) {
	case kindTimestamp:
		w.text(w.child(of, 1))
	case kindUnion:
		if ids := w.child(of, 1); ids != 0 {
			w.take(4 * w.u32(ids))
		}
	}
}

// blockSize is what a vector of blocks has for each: a place, a length, a gap and the
// length of the body.
const blockSize = 24

// blocks goes through the messages that a footer names.
func (w *walk) blocks(vector int64, file []byte) {
	if vector == 0 {
		return
	}
	n := w.u32(vector)
	for i := range n {
		at := vector + 4 + blockSize*i
		off, size := w.u64(at), w.u32(at+8)
		if !w.take(blockSize) {
			return
		}
		if off > uint64(len(file)) || size > int64(len(file))-int64(off) || size < 8 {
			w.fail("a block beyond the end")
			return
		}
		head := 4
		if le.Uint32(file[off:]) == continuation {
			head = 8
		}
		meta := file[off : int64(off)+size][head:]
		if _, err := checkMessage(meta); err != nil {
			w.err = err
			return
		}
	}
}
