package journal

import (
	"errors"
	"os"

	"github.com/foldlog/foldlog/internal/fsx"
)

// bulkPayload is how much payload a bulk writer puts into an extent.
const bulkPayload = 256 << 10

// bulk writes operation lines, verbatim, into extents of one new data file, for
// whoever has a whole history to write at once. Nothing is published until a
// head names the tip.
type bulk struct {
	f       fsx.File
	name    string
	end     int64
	head    Head
	payload []byte
	ops     uint64
	// failed is the write that failed, as against the source of the lines.
	failed error
}

func newBulk(l layout, name string, start Head) (*bulk, error) {
	f, err := createShared(l.fs, l.dataFile(name), os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &bulk{f: f, name: name, head: start}, nil
}

// Apply adds a record's line. It implements [Applier].
func (b *bulk) Apply(rec *Record) error {
	if len(b.payload) > 0 && len(b.payload)+len(rec.Line) > bulkPayload {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.payload = append(b.payload, rec.Line...)
	b.ops++
	return nil
}

// Reset implements [Applier]; a source that is rewound midway cannot be copied.
func (b *bulk) Reset() { b.ops, b.payload = 0, nil }

func (b *bulk) flush() error {
	if b.ops == 0 {
		return nil
	}
	extent := appendExtentHeader(nil, extentHeader{
		previous: b.head.Tip, first: b.head.Ops + 1, last: b.head.Ops + b.ops,
		start: b.head.Bytes, payloadLen: int64(len(b.payload)), checksum: checksum(b.payload),
	})
	extent = append(extent, b.payload...)
	if b.failed = fsx.WriteFull(b.f, extent, b.end); b.failed != nil {
		return b.failed
	}
	b.head = Head{
		Tip:   &Pointer{File: b.name, Offset: b.end, Len: int64(len(extent))},
		Ops:   b.head.Ops + b.ops,
		Bytes: b.head.Bytes + uint64(len(b.payload)),
	}
	b.end += int64(len(extent))
	b.payload, b.ops = b.payload[:0], 0
	return nil
}

// finish writes what is left and makes the file's content durable.
func (b *bulk) finish() (Head, error) {
	err := b.flush()
	if err == nil {
		err = b.f.Sync()
	}
	return b.head, errors.Join(err, b.f.Close())
}
