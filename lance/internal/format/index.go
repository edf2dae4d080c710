package format

import (
	"bytes"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// Type URLs of index details.
const (
	BTreeDetails  = "/lance.table.BTreeIndexDetails"
	memWALDetails = "/lance.table.MemWalIndexDetails"
)

// MemWALName is the name of the system index that carries the state of the shards.
const MemWALName = "__lance_mem_wal"

// IndexFile is one file of an index, relative to its directory.
type IndexFile struct {
	Path string
	Size int64
}

// Index is an entry of the manifest's index section.
type Index struct {
	UUID           UUID
	Fields         []int32
	Name           string
	DatasetVersion uint64
	// Fragments are the ids that the index covers; nil if it does not say.
	Fragments  *roaring.Bitmap
	DetailsURL string
	Details    []byte
	Version    uint64
	CreatedMS  uint64
	Files      []IndexFile
	extra      []byte
	// raw is the message that the entry was read from; Changed drops it.
	raw []byte
}

const maxIndexBitmap = 64 << 20

// parseIndex reads an IndexMetadata message.
func parseIndex(b []byte) (Index, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return Index{}, fmt.Errorf("index: %w", err)
	}
	x := Index{raw: b}
	for f := range fields.All() {
		var err error
		switch f.Num {
		case 1:
			x.UUID, err = parseUUIDMessage(f.B)
		case 3:
			x.Name = string(f.B)
		case 4:
			x.DatasetVersion = f.V
		case 5:
			x.Fragments, err = parseBitmap(f.B)
		case 6:
			x.DetailsURL, x.Details, err = wire.ParseAny(f.B)
		case 7:
			x.Version = f.V
		case 8:
			x.CreatedMS = f.V
		case 10:
			x.Files, err = parseIndexFile(x.Files, f.B)
		case 2:
		default:
			x.extra = append(x.extra, f.Raw...)
		}
		if err != nil {
			return x, fmt.Errorf("index %q: %w", x.Name, err)
		}
	}
	if !fields.Has(1) {
		return x, fmt.Errorf("index %q: %w: no uuid", x.Name, wire.ErrMalformed)
	}
	if x.Fields, err = ints32(fields, 2); err != nil {
		return x, fmt.Errorf("index %q: %w", x.Name, err)
	}
	return x, nil
}

func parseUUIDMessage(b []byte) (u UUID, err error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return u, err
	}
	v, _ := fields.Get(1)
	if len(v.B) != len(u) {
		return u, fmt.Errorf("%w: uuid of %d bytes", wire.ErrMalformed, len(v.B))
	}
	copy(u[:], v.B)
	return u, nil
}

// Message returns the UUID message.
func (u UUID) Message() []byte { return wire.Builder(nil).Bytes(1, u[:]) }

// parseBitmap reads a portable Roaring bitmap, which may be hostile.
func parseBitmap(b []byte) (bm *roaring.Bitmap, err error) {
	if len(b) > maxIndexBitmap {
		return nil, fmt.Errorf("%w: fragment bitmap of %d bytes", wire.ErrMalformed, len(b))
	}
	return ReadBitmap(b)
}

// ReadBitmap reads and checks a portable Roaring bitmap.
func ReadBitmap(b []byte) (*roaring.Bitmap, error) {
	bm := roaring.New()
	if _, err := bm.ReadFrom(bytes.NewReader(b)); err != nil {
		return nil, fmt.Errorf("%w: bitmap: %v", wire.ErrMalformed, err)
	}
	if err := bm.Validate(); err != nil {
		return nil, fmt.Errorf("%w: bitmap: %v", wire.ErrMalformed, err)
	}
	return bm, nil
}

func parseIndexFile(files []IndexFile, b []byte) ([]IndexFile, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, err
	}
	path, _ := fields.Get(1)
	return append(files, IndexFile{Path: string(path.B), Size: int64(fields.Uint(2))}), nil
}

// Changed returns a copy that is written from its fields.
func (x Index) Changed() Index {
	x.raw = nil
	return x
}

// Message returns the IndexMetadata message.
func (x Index) Message() []byte {
	if x.raw != nil {
		return x.raw
	}
	m := wire.Builder(nil).Bytes(1, x.UUID.Message()).Packed(2, uints(x.Fields)).String(3, x.Name).Uint(4, x.DatasetVersion)
	if x.Fragments != nil {
		b, _ := x.Fragments.ToBytes() // fails only if a writer does
		m = m.Bytes(5, b)
	}
	if x.DetailsURL != "" {
		m = m.Bytes(6, wire.Any(x.DetailsURL, x.Details))
	}
	m = m.UintAlways(7, x.Version).UintAlways(8, x.CreatedMS)
	for _, f := range x.FileMessages() {
		m = m.Bytes(10, f)
	}
	return m.Raw(x.extra)
}

// FileMessages returns the IndexFile messages.
func (x Index) FileMessages() [][]byte {
	var out [][]byte
	for _, f := range x.Files {
		out = append(out, wire.Builder(nil).String(1, f.Path).Uint(2, uint64(f.Size)))
	}
	return out
}
