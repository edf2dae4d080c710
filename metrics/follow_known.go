package metrics

import (
	"bufio"
	"bytes"
	"errors"
	"hash/maphash"
	"io"

	"github.com/foldlog/foldlog/internal/fsx"
)

// known is what a follower remembers of the bytes that it has read, to tell what is left
// of them in a file that was rewritten. It has a few ten kilobytes, however long the file.
type known struct {
	pos   int64 // so many bytes
	lines int64 // so many newlines in them
	sum   *maphash.Hash
	head  []byte // the first bytes
	tail  []byte // the last bytes
	marks []mark // ends of lines, the farther back the fewer
}

// mark is the end of a line.
type mark struct {
	pos, lines int64
	sum        uint64 // of everything before
}

const (
	// fingerprint is how many bytes at each end tell whether a file is still what it was.
	fingerprint = 256
	// maxMarks is how many marks there are before half of the older half is forgotten.
	maxMarks = 512
	// pieceMarks is how many ends of lines of one piece are marked, the last ones.
	pieceMarks = 16
)

func newKnown(seed maphash.Seed) *known {
	k := &known{sum: &maphash.Hash{}}
	k.sum.SetSeed(seed)
	return k
}

// add remembers what was read next.
func (k *known) add(p []byte) {
	var ends [pieceMarks]int
	first := len(ends)
	for end := len(p); first > 0; first-- {
		at := bytes.LastIndexByte(p[:end], '\n')
		if at < 0 {
			break
		}
		end, ends[first-1] = at, at+1
	}
	from := 0
	for _, end := range ends[first:] {
		k.skip(p[from:end])
		k.marks = append(k.marks, mark{k.pos, k.lines, k.sum.Sum64()})
		from = end
	}
	k.skip(p[from:])
	if len(k.marks) > maxMarks {
		k.thin()
	}
	if room := fingerprint - len(k.head); room > 0 {
		k.head = append(k.head, p[:min(room, len(p))]...)
	}
	k.tail = append(k.tail, p[max(0, len(p)-fingerprint):]...)
	if over := len(k.tail) - fingerprint; over > 0 {
		k.tail = append(k.tail[:0], k.tail[over:]...)
	}
}

func (k *known) skip(p []byte) {
	k.pos += int64(len(p))
	k.lines += int64(bytes.Count(p, newline))
	k.sum.Write(p)
}

// thin forgets every second mark of the older half.
func (k *known) thin() {
	half := len(k.marks) / 2
	kept := k.marks[:0]
	for i, m := range k.marks {
		if i >= half || i%2 == 1 {
			kept = append(kept, m)
		}
	}
	k.marks = kept
}

// begins tells whether a file of some size can have everything that was read: it is long
// enough and has the first bytes. The last ones are looked at where it is read on.
func (k *known) begins(file fsx.File, size int64) (bool, error) {
	if size < k.pos || k.pos <= fingerprint {
		return size >= k.pos, nil
	}
	got := make([]byte, len(k.head))
	n, err := file.ReadAt(got, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(got[:n], k.head), nil
}

// isBegunBy tells whether a file begins with everything that was read, by reading all of it.
func (k *known) isBegunBy(file fsx.File) (bool, error) {
	info, err := file.Stat()
	if err != nil || info.Size() < k.pos {
		return false, err
	}
	again := newKnown(k.sum.Seed())
	if _, err := io.Copy(again.sum, io.NewSectionReader(file, 0, k.pos)); err != nil {
		return false, err
	}
	return again.sum.Sum64() == k.sum.Sum64(), nil
}

// left is what is known of a file that was rewritten: everything up to the last mark
// before which it is what it was.
func (k *known) left(file fsx.File, size int64) (*known, error) {
	var (
		in   = bufio.NewReaderSize(io.NewSectionReader(file, 0, size), 64<<10)
		sum  = newKnown(k.sum.Seed()).sum
		last mark
		held = 0
	)
	for _, m := range k.marks {
		if _, err := io.CopyN(sum, in, m.pos-last.pos); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if sum.Sum64() != m.sum {
			break
		}
		last = m
		held++
	}
	return k.upTo(file, last, held)
}

// upTo reads a file up to a mark, and knows that much.
func (k *known) upTo(file fsx.File, m mark, marks int) (*known, error) {
	again := newKnown(k.sum.Seed())
	if _, err := io.Copy(addTo{again}, io.NewSectionReader(file, 0, m.pos)); err != nil {
		return nil, err
	}
	if marks == 0 || again.pos != m.pos || again.sum.Sum64() != m.sum {
		return newKnown(k.sum.Seed()), nil // nothing is left, or it changes as it is read
	}
	again.marks = append([]mark(nil), k.marks[:marks]...)
	return again, nil
}

// addTo is a known as something to write to.
type addTo struct{ *known }

// Write implements io.Writer.
func (a addTo) Write(p []byte) (int, error) {
	a.add(p)
	return len(p), nil
}
