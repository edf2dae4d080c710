package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/foldlog/foldlog/internal/fsx"
)

// Builder takes the operations of a journal that is written as a whole: see
// [Build].
type Builder struct {
	ctx  context.Context
	out  *bulk
	next uint64
	line []byte
}

// NextSeq returns the sequence number that the next operation will have.
func (b *Builder) NextSeq() uint64 { return b.next }

// Append adds an operation of that worker and that time, Unix milliseconds. Op
// is the compact JSON object that belongs under "op"; it is copied. An error,
// [*TooLargeError] among them, ends the building.
func (b *Builder) Append(worker, atMillis uint64, op []byte) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	b.line = appendRecord(b.line[:0], b.next, worker, atMillis, op)
	if size := int64(len(b.line)); size > DefaultMaxRecordBytes {
		return &TooLargeError{"record", size, DefaultMaxRecordBytes}
	}
	if bytes.IndexByte(b.line, '\n') != len(b.line)-1 {
		return errors.New("append operation: it is not on one line")
	}
	rec := Record{Line: b.line}
	if err := decodeRecord(b.line[:len(b.line)-1], new(Record)); err != nil {
		return fmt.Errorf("append operation: %w", err)
	}
	b.next++
	return b.out.Apply(&rec)
}

// Build makes a new journal of a history that fill has at hand, with workers and
// times of its own. The journal is at the path, whole and durable, once Build
// returns nil, and is not there at all before and after an error. Of opts it
// heeds FS, Program, Clock and Worker, which are the header's. Where something is
// at the path already it fails with [ErrExist].
func Build(ctx context.Context, path string, opts WriterOptions, fill func(*Builder) error) error {
	o, err := opts.withDefaults()
	if err != nil {
		return err
	}
	if o.FS == fsx.OS && fsx.Writable() != nil {
		return ErrReadOnlyPlatform
	}
	c := &copier{fs: o.FS}
	if c.to, err = newLayout(c.fs, path); err != nil {
		return err
	}
	if err := c.vacant(); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", c.to.head, ErrExist)
	} else if err != nil {
		return err
	}
	header := Header{
		Format: FormatVersion, Program: o.Program,
		CreatedAtMillis: uint64(max(o.Clock().UnixMilli(), 0)), CreatedBy: *o.Worker,
	}
	_, err = c.finish(new(CopyStats), func() error { return c.build(ctx, header, fill) })
	return err
}

func (c *copier) build(ctx context.Context, header Header, fill func(*Builder) error) error {
	snap := &snapshot{header: header, headerLine: appendHeader(nil, header)}
	if len(snap.headerLine) > maxMetaLine {
		return &TooLargeError{"header", int64(len(snap.headerLine)), maxMetaLine}
	}
	name := fmt.Sprintf("%s%016x-%08x-%016x", dataPrefix, header.CreatedBy, 0, random64())
	out, err := newBulk(c.to, name, snap.start())
	if err != nil {
		return err
	}
	c.made = append(c.made, c.to.dataFile(name))
	err = fill(&Builder{ctx: ctx, out: out, next: 1})
	head, closing := out.finish()
	if err = errors.Join(err, closing); err != nil {
		return err
	}
	snap.head = head
	return c.writeHead(snap)
}
