// Package arrowipc opens Arrow streams and files whose bytes may be hostile. The Arrow
// library takes the sizes that they state for true, and follows what they share as often
// as it is named: here neither takes more memory than the bytes can really hold.
package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrMalformed is the cause of every error of bytes that do not hold together. The Arrow
// library has errors of its own besides, and panics, also when what was read is used.
var ErrMalformed = errors.New("malformed arrow")

var le = binary.LittleEndian

const (
	// mostExpanded is what the buffers of one stream or file are decompressed to at most,
	// in bytes, besides those that are not compressed.
	mostExpanded = 1 << 30
	// soonExpanded is what they always may be, if their bytes can hold it, and expansion
	// how many times their size they may be beyond that; LZ4 knows no more than 255.
	soonExpanded = 64 << 20
	expansion    = 256
	// blockExpansion is what no compression goes beyond: blocks of zstd have four bytes
	// or more, and make 128 KiB or less.
	blockExpansion = 32 << 10
)

// Stream reads an Arrow stream.
func Stream(b []byte) (*ipc.Reader, error) {
	if err := checkStream(b); err != nil {
		return nil, err
	}
	size := int64(len(b))
	return ipc.NewReader(bytes.NewReader(b), options(size, max(soonExpanded, expansion*size))...)
}

// File reads an Arrow file whose rows take not much more than a number of bytes.
func File(b []byte, expected int64) (*ipc.FileReader, error) {
	if err := checkFile(b); err != nil {
		return nil, err
	}
	return ipc.NewFileReader(bytes.NewReader(b), options(int64(len(b)), expected+4096)...)
}

// options bound what the Arrow library takes. A part can be as large as the whole: its own
// limits are lower than what is written.
func options(size, expanded int64) []ipc.Option {
	most := min(expanded, blockExpansion*size, mostExpanded)
	return []ipc.Option{
		ipc.WithAllocator(&bounded{left: 4*size + most}), ipc.WithMetadataSizeLimit(size), ipc.WithBodySizeLimit(size),
	}
}

// bounded is an allocator that panics when too much is taken, as the Arrow library does in
// its readers: who calls it recovers.
type bounded struct {
	memory.GoAllocator
	left int64
}

// Allocate implements memory.Allocator.
func (a *bounded) Allocate(size int) []byte {
	if a.left -= int64(size); size < 0 || a.left < 0 {
		panic(fmt.Errorf("%w: a buffer states %d bytes, more than the data can hold", ErrMalformed, size))
	}
	return a.GoAllocator.Allocate(size)
}

// Reallocate implements memory.Allocator.
func (a *bounded) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	out := a.Allocate(size)
	copy(out, b)
	a.Free(b)
	return out
}

// Free implements memory.Allocator.
func (a *bounded) Free(b []byte) { a.left += int64(cap(b)) }
