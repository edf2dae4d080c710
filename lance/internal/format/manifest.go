package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

// Feature flags of a manifest.
const (
	flagDeletionFiles = 1
	flagV2Deprecated  = 4
	flagTableConfig   = 8
	knownFlags        = flagDeletionFiles | flagV2Deprecated | flagTableConfig
)

// Manifest is one version of a dataset.
type Manifest struct {
	Fields          []Field
	Fragments       []Fragment
	Version         uint64
	Time            time.Time
	ReaderFlags     uint64
	WriterFlags     uint64
	MaxFragment     *uint32
	TransactionFile string
	// Writer is the library and version that wrote it, for people.
	Writer string
	// FileVersion is the data file format, such as "2.0".
	FileVersion string
	Indexes     []Index
	// Inline is the transaction that the manifest holds itself, if it does.
	Inline []byte

	extra      []byte
	indexExtra []byte
}

const manifestFooter = 16

// ErrCorrupt is the cause of every error of bytes that cannot be what they should.
var ErrCorrupt = errors.New("corrupt")

// section returns the length-prefixed message at an offset of a manifest file.
func section(file []byte, off uint64) ([]byte, error) {
	if off > uint64(len(file)) || uint64(len(file))-off < 4 {
		return nil, fmt.Errorf("%w: section at %d of %d bytes", ErrCorrupt, off, len(file))
	}
	n := uint64(binary.LittleEndian.Uint32(file[off:]))
	if n > uint64(len(file))-off-4 {
		return nil, fmt.Errorf("%w: section of %d bytes at %d of %d", ErrCorrupt, n, off, len(file))
	}
	return file[off+4 : off+4+n], nil
}

// ParseManifest reads a manifest file:
//
//	[u32 n | IndexSection]? [u32 n | Transaction]? [u32 n | Manifest] [u64 manifest offset] [u16 0] [u16 2] "LANC"
func ParseManifest(file []byte) (*Manifest, error) {
	if len(file) < manifestFooter || string(file[len(file)-4:]) != "LANC" {
		return nil, fmt.Errorf("%w: manifest does not end as one", ErrCorrupt)
	}
	foot := file[len(file)-manifestFooter:]
	if major, minor := binary.LittleEndian.Uint16(foot[8:]), binary.LittleEndian.Uint16(foot[10:]); major != 0 || minor != 2 {
		return nil, &UnsupportedError{fmt.Sprintf("manifest version %d.%d", major, minor)}
	}
	body, err := section(file[:len(file)-manifestFooter], binary.LittleEndian.Uint64(foot))
	if err != nil {
		return nil, err
	}
	m, err := parseManifestMessage(body, file)
	if err != nil && !errors.As(err, new(*UnsupportedError)) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return m, err
}

func parseManifestMessage(body, file []byte) (*Manifest, error) {
	fields, err := wire.Parse(body)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := m.checkFlags(fields.Uint(9)); err != nil {
		return nil, err
	}
	m.Fields, m.Fragments = room[Field](fields, 1, leastField), room[Fragment](fields, 2, leastFragment)
	for x := range fields.All() {
		if err := m.set(x, file); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// room makes a list for the messages of a field, which are counted, lest it is copied while
// it grows. None that is accepted has fewer than least bytes with its tag; for more of them
// no room is made.
func room[T any](m wire.Message, num, least int) []T {
	return make([]T, 0, min(m.Count(num), len(m)/least))
}

// The bytes that a message has at least which parses, with its tag and length.
const (
	leastField    = 5  // a name
	leastFragment = 4  // rows
	leastFile     = 5  // a path
	leastIndex    = 22 // a uuid
)

// checkFlags refuses what a reader must not guess.
func (m *Manifest) checkFlags(flags uint64) error {
	if unknown := flags &^ knownFlags; unknown != 0 {
		return &UnsupportedError{fmt.Sprintf("reader feature flags %#x", unknown)}
	}
	return nil
}

// Writable refuses what a writer must not touch.
func (m *Manifest) Writable() error {
	if unknown := m.WriterFlags &^ knownFlags; unknown != 0 {
		return &UnsupportedError{fmt.Sprintf("writer feature flags %#x", unknown)}
	}
	if m.FileVersion != "2.0" {
		return &UnsupportedError{fmt.Sprintf("writing data format %q", m.FileVersion)}
	}
	return nil
}

func (m *Manifest) set(x wire.Field, file []byte) (err error) {
	switch x.Num {
	case 1:
		var f Field
		if f, err = ParseField(x.B); err == nil {
			m.Fields = append(m.Fields, f)
		}
	case 2:
		var f Fragment
		if f, err = parseFragment(x.B); err == nil {
			m.Fragments = append(m.Fragments, f)
		}
	case 3:
		m.Version = x.V
	case 6:
		err = m.setIndexes(file, x.V)
	case 7:
		var ts wire.Message
		if ts, err = wire.Parse(x.B); err == nil {
			m.Time = time.Unix(int64(ts.Uint(1)), int64(ts.Uint(2)))
		}
	case 9:
		m.ReaderFlags = x.V
	case 10:
		m.WriterFlags = x.V
	case 11:
		m.MaxFragment = new(uint32(x.V))
	case 12:
		m.TransactionFile = string(x.B)
	case 13:
		var w wire.Message
		if w, err = wire.Parse(x.B); err == nil {
			lib, _ := w.Get(1)
			ver, _ := w.Get(2)
			m.Writer = string(lib.B) + " " + string(ver.B)
		}
	case 15:
		err = m.setDataFormat(x.B)
	case 21:
		m.Inline, err = section(file, x.V)
	case 4, 8: // a version's own auxiliary data and tag, which the next must not inherit
	default:
		m.extra = append(m.extra, x.Raw...)
	}
	return err
}

func (m *Manifest) setDataFormat(b []byte) error {
	fields, err := wire.Parse(b)
	if err != nil {
		return err
	}
	kind, _ := fields.Get(1)
	version, _ := fields.Get(2)
	if string(kind.B) != "lance" {
		return &UnsupportedError{fmt.Sprintf("data format %q", kind.B)}
	}
	m.FileVersion = string(version.B)
	return nil
}

func (m *Manifest) setIndexes(file []byte, off uint64) error {
	b, err := section(file, off)
	if err != nil {
		return err
	}
	fields, err := wire.Parse(b)
	if err != nil {
		return err
	}
	m.Indexes, m.indexExtra = room[Index](fields, 1, leastIndex), nil // the last section counts
	for f := range fields.All() {
		if f.Num != 1 {
			m.indexExtra = append(m.indexExtra, f.Raw...)
			continue
		}
		x, err := parseIndex(f.B)
		if err != nil {
			return err
		}
		m.Indexes = append(m.Indexes, x)
	}
	return nil
}

// Clone returns a copy whose slices may be changed.
func (m *Manifest) Clone() *Manifest {
	c := *m
	c.Fragments = slices.Clone(m.Fragments)
	c.Indexes = slices.Clone(m.Indexes)
	return &c
}

// NextFragment returns the first fragment id that was never used. Older releases of Lance
// leave the highest one out while it is zero.
func (m *Manifest) NextFragment() uint64 {
	next := uint64(0)
	if m.MaxFragment != nil {
		next = uint64(*m.MaxFragment) + 1
	}
	for _, f := range m.Fragments {
		next = max(next, f.ID+1)
	}
	return next
}

// Reserve takes n fragment ids and returns the first.
func (m *Manifest) Reserve(n uint64) (first uint64, err error) {
	first = m.NextFragment()
	if n == 0 {
		return first, nil
	}
	last := first + n - 1
	if last > math.MaxUint32 || last < first {
		return 0, fmt.Errorf("%d fragments after %d: their ids do not fit 32 bits", n, first)
	}
	m.MaxFragment = new(uint32(last))
	return first, nil
}

// Index returns the entries with a name.
func (m *Manifest) Index(name string) []Index {
	var out []Index
	for _, x := range m.Indexes {
		if x.Name == name {
			out = append(out, x)
		}
	}
	return out
}

// WriterName and WriterVersion go into every manifest.
const (
	WriterName    = "foldlog"
	WriterVersion = "1.0.0"
)

// File returns the manifest file.
func (m *Manifest) File() []byte {
	var out []byte
	p := wire.Builder(nil)
	for _, f := range m.Fields {
		p = f.Append(p, 1)
	}
	deletions := uint64(0)
	for _, f := range m.Fragments {
		p = p.Bytes(2, f.Message())
		if f.Deletion != nil {
			deletions = flagDeletionFiles
		}
	}
	p = p.Uint(3, m.Version)
	if len(m.Indexes) > 0 || len(m.indexExtra) > 0 {
		p = p.UintAlways(6, uint64(len(out)))
		s := wire.Builder(nil)
		for _, x := range m.Indexes {
			s = s.Bytes(1, x.Message())
		}
		out = appendSection(out, s.Raw(m.indexExtra))
	}
	p = p.Bytes(7, wire.Builder(nil).Uint(1, uint64(m.Time.Unix())).Uint(2, uint64(m.Time.Nanosecond())))
	p = p.Uint(9, m.ReaderFlags&^flagDeletionFiles|deletions).Uint(10, m.WriterFlags&^flagDeletionFiles|deletions)
	if m.MaxFragment != nil {
		p = p.UintAlways(11, uint64(*m.MaxFragment))
	}
	p = p.String(12, m.TransactionFile)
	p = p.Bytes(13, wire.Builder(nil).String(1, WriterName).String(2, WriterVersion))
	p = p.Bytes(15, wire.Builder(nil).String(1, "lance").String(2, m.FileVersion)).Raw(m.extra)
	pos := uint64(len(out))
	out = appendSection(out, p)
	out = binary.LittleEndian.AppendUint64(out, pos)
	out = binary.LittleEndian.AppendUint16(out, 0)
	out = binary.LittleEndian.AppendUint16(out, 2)
	return append(out, "LANC"...)
}

func appendSection(out, message []byte) []byte {
	out = binary.LittleEndian.AppendUint32(out, uint32(len(message)))
	return append(out, message...)
}
