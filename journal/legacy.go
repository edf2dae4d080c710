package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// catchUpLegacy applies the complete lines that a journal of format 1 to 5, one
// single file, holds beyond the reader's position. A torn last line stays
// behind until its newline is there.
func (r *Reader) catchUpLegacy(m Applier) error {
	if r.snap.size < r.legacyAt {
		r.restart(m)
	}
	f, err := r.l.fs.OpenFile(r.l.head, os.O_RDONLY, 0)
	if err != nil {
		return r.l.missing(err)
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	held := 0
	for at := r.legacyAt; at < r.snap.size; {
		if held == len(buf) {
			if len(buf) >= HardLimit {
				return r.legacyError(&TooLargeError{"record", int64(len(buf)), HardLimit})
			}
			buf = append(buf, make([]byte, len(buf))...)
		}
		n := min(int64(len(buf)-held), r.snap.size-at)
		if err := readFull(f, buf[held:held+int(n)], at); err != nil {
			return fmt.Errorf("read %s: %w", r.l.head, err)
		}
		at += n
		held += int(n)
		used, err := r.applyLines(buf[:held], m)
		if err != nil {
			return err
		}
		held = copy(buf, buf[used:held])
	}
	return nil
}

// applyLines applies the complete lines in b and returns how many bytes they
// were.
func (r *Reader) applyLines(b []byte, m Applier) (used int, err error) {
	var records []Record
	for {
		if bytes.IndexByte(b[used:], '\n') < 0 {
			return used, nil
		}
		records = records[:0]
		n, err := splitRecord(b[used:], r.applied+1, &records)
		if err != nil {
			return used, r.legacyError(err)
		}
		if err := m.Apply(&records[0]); err != nil {
			return used, err
		}
		used += n
		r.news = true
		r.legacyAt += int64(n)
		r.applied++
	}
}

func (r *Reader) legacyError(err error) error {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return err
	}
	return &CorruptError{Path: r.l.head, Offset: r.legacyAt, Seq: r.applied + 1, Err: err}
}
