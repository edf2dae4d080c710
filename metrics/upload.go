package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// uploadBatch is about how many bytes go into one request.
	uploadBatch = 1 << 20
	// smallestBatch is where a server that finds requests too large is given up.
	smallestBatch = 64 << 10
	// overlapBytes is how much of what a server has is compared again, so that
	// a stream that has gone another way is noticed.
	overlapBytes = 16 << 10
	// longestUpload is the longest line that is sent, in bytes.
	longestUpload = 16 << 20
	// maxDetours is how often one stream may turn out to be taken, or to have
	// lost bytes, before it is given up.
	maxDetours = 8
)

// uploader brings a stream at a server up to what a source has.
type uploader struct {
	client    *Client
	src       io.ReaderAt // the whole stream, or what is left of it
	slug      string
	firstLine []byte
	id        string

	known   bool  // where the server is
	cursor  int64 // up to here the server has the same bytes
	had     int64 // bytes that the server has, new ones of ours included
	limit   int   // bytes of a request, 0 is uploadBatch
	detours int
	taken   int // ids of this stream that have other bytes at the server

	events, bytes int64 // that the server did not have before
	ack           Ack
	buf           []byte
}

// identify finds the first line and the slug of the first open. It is false
// while there is none.
func (u *uploader) identify(end int64) (bool, error) {
	if u.slug != "" {
		return true, nil
	}
	var dec Decoder
	var e Event
	buf := make([]byte, chunkSize)
	lines := splitter{}
	for off := int64(0); off < end && u.slug == ""; {
		n, err := u.src.ReadAt(buf[:min(int64(len(buf)), end-off)], off)
		lines.write(buf[:n], func(l line) {
			if l.number == 1 {
				u.firstLine = bytes.Clone(l.text)
			}
			if u.slug == "" && !l.cut && dec.Decode(l.text, &e) == nil && e.Kind == KindOpen {
				u.slug = e.Slug
			}
		})
		off += int64(n)
		if err != nil && (err != io.EOF || n == 0) {
			return false, err
		}
	}
	if u.slug == "" {
		return false, nil
	}
	u.id = StreamID(u.firstLine)
	return true, CheckSlug(u.slug)
}

// sync sends what is before end, which is the end of a line. After an error it
// can be called again.
func (u *uploader) sync(ctx context.Context, end int64) error {
	for {
		err := u.pass(ctx, end)
		var conflict *ConflictError
		if !errors.As(err, &conflict) {
			return err
		}
		if err := u.detour(conflict); err != nil {
			return err
		}
	}
}

func (u *uploader) pass(ctx context.Context, end int64) error {
	if !u.known {
		if err := u.locate(ctx, end); err != nil {
			return err
		}
	}
	for u.cursor < end {
		lines, err := u.read(end)
		if err != nil {
			return err
		}
		ack, err := u.client.Append(ctx, u.slug, u.id, u.cursor, lines)
		if u.smaller(err) {
			continue
		}
		if err == nil && ack.Offset < u.cursor+int64(len(lines)) {
			err = fmt.Errorf("read answer: %w: it has only %d bytes", ErrAway, ack.Offset)
		}
		if err != nil {
			return err
		}
		u.acknowledged(lines, ack)
		u.tell(end)
	}
	return nil
}

func (u *uploader) tell(end int64) {
	if u.client.Progress != nil {
		u.client.Progress(u.cursor, end)
	}
}

func (u *uploader) acknowledged(lines []byte, ack Ack) {
	after := u.cursor + int64(len(lines))
	if fresh := min(after-u.had, int64(len(lines))); fresh > 0 {
		u.events += int64(bytes.Count(lines[int64(len(lines))-fresh:], newline))
		u.bytes += fresh
		u.had = after
	}
	u.cursor, u.ack = after, ack
}

// smaller halves the requests of a server that finds them too large.
func (u *uploader) smaller(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) || status.Status != http.StatusRequestEntityTooLarge || u.batch() <= smallestBatch {
		return false
	}
	u.limit = u.batch() / 2
	return true
}

func (u *uploader) batch() int {
	if u.limit > 0 {
		return u.limit
	}
	return uploadBatch
}

// locate asks for the server's offset and steps back by the overlap.
func (u *uploader) locate(ctx context.Context, end int64) error {
	ack, err := u.client.Append(ctx, u.slug, u.id, end, nil)
	u.had, u.ack = ack.Offset, ack
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		u.had, err = conflict.Expected, nil
	}
	if err != nil {
		return err
	}
	u.cursor = u.overlapStart(min(u.had, end))
	u.known = true
	return nil
}

// overlapStart is the beginning of a line a little before at.
func (u *uploader) overlapStart(at int64) int64 {
	from := max(0, at-overlapBytes)
	if from == 0 {
		return 0
	}
	buf := make([]byte, at-from)
	n, _ := u.src.ReadAt(buf, from)
	if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
		return from + int64(i) + 1
	}
	return at
}

// detour goes back to what the server has or, where that is another stream, on
// under another id: the same one each time, so that sending again finds it.
func (u *uploader) detour(conflict *ConflictError) error {
	if u.detours++; u.detours > maxDetours {
		return conflict
	}
	if conflict.Expected < u.cursor {
		u.cursor, u.had = conflict.Expected, conflict.Expected
		return nil
	}
	u.taken++
	u.id = StreamID(fmt.Appendf(bytes.Clone(u.firstLine), "#%d", u.taken))
	u.known, u.cursor = false, 0
	return nil
}

// read returns whole lines at the cursor: a batch, or one longer line.
func (u *uploader) read(end int64) ([]byte, error) {
	for size := int64(u.batch()); ; size *= 2 {
		size = min(size, end-u.cursor)
		if int64(cap(u.buf)) < size {
			u.buf = make([]byte, size)
		}
		buf := u.buf[:size]
		n, err := u.src.ReadAt(buf, u.cursor)
		if int64(n) < size {
			return nil, fmt.Errorf("read lines at %d: %w", u.cursor, orEOF(err))
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return buf[:i+1], nil
		}
		if size == end-u.cursor || size >= longestUpload {
			return nil, fmt.Errorf("read lines at %d: %w", u.cursor, ErrLineTooLong)
		}
	}
}

func orEOF(err error) error {
	if err == nil || err == io.EOF {
		return fmt.Errorf("%w: it is shorter than it was", ErrRewritten)
	}
	return err
}

// LastLineEnd is the offset behind the last newline before size: where the whole
// lines of a stream end. It is 0 without one.
func LastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, chunkSize)
	for size > 0 {
		from := max(0, size-int64(len(buf)))
		n, err := r.ReadAt(buf[:size-from], from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		size = from
	}
	return 0, nil
}
