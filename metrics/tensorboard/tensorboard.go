// Package tensorboard reads the scalars of TensorBoard event files.
//
// Such a file is TFRecords: the length of the data (8 bytes, little endian) and the
// masked crc32c of these 8 bytes, the data and its masked crc32c. The data is a
// tensorflow.Event as a protocol buffer.
package tensorboard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/foldlog/foldlog/metrics"
)

var (
	// ErrChecksum is the reason of a record that is not what was written.
	ErrChecksum = errors.New("wrong checksum")
	// ErrTorn is the reason of a last record that is not whole.
	ErrTorn = errors.New("torn last record")
)

// maxRecord is how long a record may be, in bytes. What has no scalars, as images
// and graphs, can be large.
const maxRecord = 256 << 20

// Scalar is one number of an event file.
type Scalar struct {
	Tag      string
	Step     int64
	WallTime float64 // seconds of the Unix epoch, as they are in the file
	Value    metrics.Number
}

// Log is what an event file holds.
type Log struct {
	Scalars []Scalar
	Events  int64   // records that could be read, with or without scalars
	Others  int64   // values that are no scalars: histograms, images, texts
	Bad     []error // of records that were passed over
	Torn    error   // how the file ends early, nil if it does not

	plugins map[string]string // the plugin of a tag, which only its first event has
}

// StartSize is how many bytes of the beginning of a file IsEvents looks at.
const StartSize = 12

// IsEvents tells from the beginning of a file whether it is an event file: the
// length of its first record has the right checksum.
func IsEvents(start []byte) bool {
	if len(start) < StartSize || maskedCRC(start[:8]) != binary.LittleEndian.Uint32(start[8:]) {
		return false
	}
	n := binary.LittleEndian.Uint64(start)
	return n > 0 && n < maxRecord
}

// Find lists the event files under a directory, which have "tfevents" in their names,
// in the order of their paths; names begin with a time.
func Find(dir string) (paths []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), "tfevents") {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

func maskedCRC(b []byte) uint32 {
	crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Read reads a whole event file. A record with a wrong checksum is passed over and
// told in Bad; where a length is wrong nothing after it can be found. The error is
// that of r, with what was read before it.
func Read(r io.Reader) (*Log, error) {
	log := &Log{plugins: map[string]string{}}
	var head [StartSize]byte
	var data []byte
	for offset := int64(0); ; {
		n, err := io.ReadFull(r, head[:])
		switch {
		case err == io.EOF:
			return log, nil
		case err == io.ErrUnexpectedEOF:
			log.Torn = fmt.Errorf("offset %d: %w: %d bytes", offset, ErrTorn, n)
			return log, nil
		case err != nil:
			return log, err
		}
		size := binary.LittleEndian.Uint64(head[:])
		if maskedCRC(head[:8]) != binary.LittleEndian.Uint32(head[8:]) || size > maxRecord {
			log.Bad = append(log.Bad, fmt.Errorf("offset %d: length: %w; the rest of the file cannot be read", offset, ErrChecksum))
			return log, nil
		}
		if data, err = readRecord(r, data, int(size)+4); err == io.EOF || err == io.ErrUnexpectedEOF {
			log.Torn = fmt.Errorf("offset %d: %w: %d of %d bytes", offset, ErrTorn, len(data)+len(head), size+16)
			return log, nil
		} else if err != nil {
			return log, err
		}
		log.record(data[:size], binary.LittleEndian.Uint32(data[size:]), offset)
		offset += int64(size) + 16
	}
}

// readRecord reads n bytes and, if there are fewer, what there is. Memory grows
// with what comes and not with what a length claims.
func readRecord(r io.Reader, buf []byte, n int) ([]byte, error) {
	buf = buf[:0]
	for len(buf) < n {
		step := min(n-len(buf), max(1<<20, len(buf)))
		start := len(buf)
		buf = append(buf, make([]byte, step)...)
		k, err := io.ReadFull(r, buf[start:])
		if err != nil {
			return buf[:start+k], err
		}
	}
	return buf, nil
}

func (l *Log) record(data []byte, crc uint32, offset int64) {
	if maskedCRC(data) != crc {
		l.Bad = append(l.Bad, fmt.Errorf("offset %d: %w", offset, ErrChecksum))
		return
	}
	if err := l.event(data); err != nil {
		l.Bad = append(l.Bad, fmt.Errorf("offset %d: read event: %w", offset, err))
		return
	}
	l.Events++
}

// The fields of the protocol buffers that hold scalars.
const (
	eventWallTime, eventStep, eventSummary        = 1, 2, 5
	summaryValue                                  = 1
	valueTag, valueSimple, valueTensor, valueMeta = 1, 2, 8, 9
	metaPlugin, pluginName                        = 1, 1
	tensorType, tensorShape, tensorContent        = 1, 2, 4
	tensorFloats, tensorDoubles, tensorInts       = 5, 6, 7
	tensorInt64s, tensorBools                     = 10, 11
	tensorHalfs, tensorUint32s, tensorUint64s     = 13, 16, 17
	shapeDim, dimSize                             = 2, 1
)

func (l *Log) event(b []byte) error {
	s := Scalar{}
	var summaries [][]byte
	err := eachField(b, func(f protoField) error {
		switch f.number {
		case eventWallTime:
			s.WallTime = math.Float64frombits(f.bits)
		case eventStep:
			s.Step = int64(f.bits)
		case eventSummary:
			summaries = append(summaries, f.bytes)
		}
		return nil
	})
	for _, summary := range summaries {
		if err == nil {
			err = eachField(summary, func(f protoField) error {
				if f.number == summaryValue {
					return l.value(f.bytes, s)
				}
				return nil
			})
		}
	}
	return err
}

// value reads a Summary.Value.
func (l *Log) value(b []byte, s Scalar) error {
	var tensor []byte
	plugin, found := "", false
	err := eachField(b, func(f protoField) error {
		var err error
		switch f.number {
		case valueTag:
			s.Tag = string(f.bytes)
		case valueSimple:
			s.Value, found = metrics.Float(float64(math.Float32frombits(uint32(f.bits)))), true
		case valueTensor:
			tensor = f.bytes
		case valueMeta:
			plugin, err = pluginOf(f.bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	if plugin != "" {
		l.plugins[s.Tag] = plugin
	}
	if tensor != nil && (l.plugins[s.Tag] == "" || l.plugins[s.Tag] == "scalars") {
		if s.Value, found, err = scalarOf(tensor); err != nil {
			return err
		}
	}
	if !found {
		l.Others++
		return nil
	}
	l.Scalars = append(l.Scalars, s)
	return nil
}

// pluginOf reads the name of the plugin in a SummaryMetadata.
func pluginOf(b []byte) (name string, err error) {
	err = eachField(b, func(f protoField) error {
		if f.number != metaPlugin {
			return nil
		}
		return eachField(f.bytes, func(f protoField) error {
			if f.number == pluginName {
				name = string(f.bytes)
			}
			return nil
		})
	})
	return name, err
}

// protoField is one field of a message: a number in bits, or bytes.
type protoField struct {
	number protowire.Number
	kind   protowire.Type
	bits   uint64
	bytes  []byte
}

// eachField hands every field of a message to fn.
func eachField(b []byte, fn func(protoField) error) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		f := protoField{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.bits, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.bits, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var bits uint32
			bits, n = protowire.ConsumeFixed32(b)
			f.bits = uint64(bits)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := fn(f); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
