package journal

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// foundExtent is an extent that a scan of a data file came upon, published or
// not.
type foundExtent struct {
	ptr Pointer
	extentHeader
}

var scanMark = []byte(`{"magic":"` + extentMagic + `"`)

// scanFile looks through a whole data file for extents with a sound metadata
// line and a sound checksum, skipping what lies between them. It needs no head,
// and memory for one extent at a time.
func (l layout) scanFile(name string, found func(foundExtent)) error {
	f, err := l.fs.OpenFile(l.dataFile(name), os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	buf := make([]byte, 256<<10)
	for at := int64(0); at < size; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		if n == 0 {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		mark := bytes.Index(buf[:n], scanMark)
		if mark < 0 {
			if at+int64(n) >= size {
				return nil
			}
			at += int64(max(n-len(scanMark), 1))
			continue
		}
		at += int64(mark)
		length := int64(0)
		if e, ok := extentAt(f, at, size); ok {
			e.ptr.File = name
			found(e)
			length = e.ptr.Len
		}
		at += max(length, 1)
	}
	return nil
}

// extentAt reads a whole sound extent at an offset.
func extentAt(f io.ReaderAt, at, size int64) (foundExtent, bool) {
	meta := make([]byte, min(maxMetaLine, size-at))
	if readFull(f, meta, at) != nil {
		return foundExtent{}, false
	}
	end := bytes.IndexByte(meta, '\n')
	if end < 0 {
		return foundExtent{}, false
	}
	e, err := decodeExtentHeader(meta[:end])
	start := at + int64(end) + 1
	if err != nil || e.check() != nil || e.payloadLen > size-start {
		return foundExtent{}, false
	}
	if end := make([]byte, 1); readFull(f, end, start+e.payloadLen-1) != nil || end[0] != '\n' {
		return foundExtent{}, false
	}
	sum, err := checksumAt(f, start, e.payloadLen)
	if err != nil || sum != e.checksum {
		return foundExtent{}, false
	}
	return foundExtent{Pointer{Offset: at, Len: int64(end) + 1 + e.payloadLen}, e}, true
}

// checksumAt sums a stretch of a file in pieces.
func checksumAt(f io.ReaderAt, at, n int64) (uint64, error) {
	sum := uint64(fnvOffset)
	buf := make([]byte, min(n, 256<<10))
	for n > 0 {
		piece := buf[:min(n, int64(len(buf)))]
		if err := readFull(f, piece, at); err != nil {
			return 0, err
		}
		sum = addChecksum(sum, piece)
		at += int64(len(piece))
		n -= int64(len(piece))
	}
	return sum, nil
}

// scanAll scans every data file.
func (l layout) scanAll(found func(foundExtent)) error {
	names, err := l.dataFiles()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := l.scanFile(name, found); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
