package tensorboard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
)

// tfRecord frames data as TensorFlow does.
func tfRecord(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, maskedCRC(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, maskedCRC(data))
}

func protoBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func protoVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func protoDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func protoFloat(b []byte, field protowire.Number, v float32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(b, field, protowire.Fixed32Type), math.Float32bits(v))
}

// tfEvent is an Event with one value.
func tfEvent(wall float64, step int64, value []byte) []byte {
	b := protoDouble(nil, eventWallTime, wall)
	b = protoVarint(b, eventStep, uint64(step))
	if value != nil {
		b = protoBytes(b, eventSummary, protoBytes(nil, summaryValue, value))
	}
	return b
}

func simpleValue(tag string, v float32) []byte {
	return protoFloat(protoBytes(nil, valueTag, []byte(tag)), valueSimple, v)
}

func tensorValue(tag, plugin string, tensor []byte) []byte {
	b := protoBytes(nil, valueTag, []byte(tag))
	if plugin != "" {
		b = protoBytes(b, valueMeta, protoBytes(nil, metaPlugin, protoBytes(nil, pluginName, []byte(plugin))))
	}
	return protoBytes(b, valueTensor, tensor)
}

func tensor(dtype uint64, dims ...int) []byte {
	shape := []byte{}
	for _, n := range dims {
		shape = protoBytes(shape, shapeDim, protoVarint(nil, dimSize, uint64(n)))
	}
	return protoBytes(protoVarint(nil, tensorType, dtype), tensorShape, shape)
}

var tfVersion = tfRecord(protoBytes(protoDouble(nil, eventWallTime, 1700000000), 3, []byte("brain.Event:2")))

func tfFile(events ...[]byte) []byte {
	b := bytes.Clone(tfVersion)
	for _, e := range events {
		b = append(b, tfRecord(e)...)
	}
	return b
}

// TestAnEventFileOfTensorFlowIsKnown has the first 12 bytes of the event files
// that TensorFlow and PyTorch write: a version event of 24 bytes.
func TestAnEventFileOfTensorFlowIsKnown(t *testing.T) {
	start := []byte("\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7fK\"")
	if !IsEvents(start) {
		t.Errorf("the crc of the length is %#x", maskedCRC(start[:8]))
	}
	if IsEvents([]byte(`{"step":1,"loss":0.5}`)) || IsEvents(make([]byte, 12)) {
		t.Error("something else is taken for one")
	}
}

// readable is what a log holds, a line for each scalar.
func readable(log *Log) (lines []string) {
	for _, s := range log.Scalars {
		lines = append(lines, fmt.Sprintf("%.1f %d %s %s", s.WallTime, s.Step, s.Tag, s.Value))
	}
	return lines
}

func TestScalarsOfEveryKindAreRead(t *testing.T) {
	double := protoBytes(tensor(dtDouble), tensorContent, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1)))
	packed := protoBytes(tensor(dtFloat, 1), tensorFloats, binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5)))
	int64s := protoBytes(tensor(dtInt64), tensorInt64s, protowire.AppendVarint(nil, 1<<40))
	negative := protoBytes(tensor(dtInt8), tensorContent, []byte{0xfd})
	half := protoVarint(tensor(dtHalf), tensorHalfs, 0x3e00)
	bfloat := protoBytes(tensor(dtBFloat16), tensorContent, []byte{0xc0, 0xbf})
	vector := protoBytes(tensor(dtFloat, 2), tensorContent, make([]byte, 8))
	log, err := Read(bytes.NewReader(tfFile(
		tfEvent(1700000001.5, 1, simpleValue("loss", 0.5)),
		tfEvent(1700000002, 2, simpleValue("loss", float32(math.NaN()))),
		tfEvent(1700000003, 3, tensorValue("double", "scalars", double)),
		tfEvent(1700000003, 4, tensorValue("double", "", double)),
		tfEvent(1700000003, 3, tensorValue("float", "scalars", packed)),
		tfEvent(1700000003, 3, tensorValue("int", "", int64s)),
		tfEvent(1700000003, 3, tensorValue("int8", "", negative)),
		tfEvent(1700000003, 3, tensorValue("half", "", half)),
		tfEvent(1700000003, 3, tensorValue("bfloat", "", bfloat)),
		tfEvent(1700000003, 3, tensorValue("zero", "scalars", tensor(dtFloat))),
		tfEvent(1700000003, 3, tensorValue("vector", "", vector)),
		tfEvent(1700000003, 3, tensorValue("text", "text", double)),
		tfEvent(1700000003, 4, tensorValue("text", "", double)),
		tfEvent(1700000004, -1, protoBytes(protoBytes(nil, valueTag, []byte("image")), 4, []byte("png"))),
	)))
	want := []string{
		"1700000001.5 1 loss 0.5",
		"1700000002.0 2 loss NaN",
		"1700000003.0 3 double 0.1",
		"1700000003.0 4 double 0.1",
		"1700000003.0 3 float 2.5",
		"1700000003.0 3 int 1099511627776",
		"1700000003.0 3 int8 -3",
		"1700000003.0 3 half 1.5",
		"1700000003.0 3 bfloat -1.5",
		"1700000003.0 3 zero 0.0",
	}
	if err != nil || log.Torn != nil || len(log.Bad) > 0 {
		t.Fatal(err, log.Torn, log.Bad)
	}
	if diff := cmp.Diff(want, readable(log)); diff != "" || log.Others != 4 || log.Events != 15 {
		t.Errorf("%d others, %d events\n-want +got:\n%s", log.Others, log.Events, diff)
	}
}

func TestAFileCutAtEveryByteHasWhatIsWhole(t *testing.T) {
	file := tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5)), tfEvent(1700000002, 2, simpleValue("loss", 0.25)))
	one := len(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	for cut := len(tfVersion); cut <= len(file); cut++ {
		log, err := Read(bytes.NewReader(file[:cut]))
		if err != nil || len(log.Bad) > 0 {
			t.Fatalf("cut at %d: %v, %v", cut, err, log.Bad)
		}
		want := 0
		if cut >= one {
			want++
		}
		if cut >= len(file) {
			want++
		}
		whole := cut == len(tfVersion) || cut == one || cut == len(file)
		if len(log.Scalars) != want || (log.Torn == nil) != whole {
			t.Errorf("cut at %d: %d scalars, want %d; torn: %v", cut, len(log.Scalars), want, log.Torn)
		}
	}
}

func TestDamagedRecordsArePassedOver(t *testing.T) {
	file := tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5)), tfEvent(1700000002, 2, simpleValue("loss", 0.25)), tfEvent(1700000003, 3, simpleValue("loss", 0.125)))
	second := len(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	for _, tc := range []struct {
		name    string
		flip    int
		scalars int
		want    string
	}{
		{"data", second + 14, 2, "wrong checksum"},
		{"length", second, 1, "length: wrong checksum; the rest of the file cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			damaged := bytes.Clone(file)
			damaged[tc.flip] ^= 1
			log, err := Read(bytes.NewReader(damaged))
			if err != nil || len(log.Bad) != 1 || len(log.Scalars) != tc.scalars {
				t.Fatalf("%v, %v, %d scalars", err, log.Bad, len(log.Scalars))
			}
			if want := fmt.Sprintf("offset %d: %s", second, tc.want); log.Bad[0].Error() != want || !errors.Is(log.Bad[0], ErrChecksum) {
				t.Errorf("%v, want %s", log.Bad[0], want)
			}
		})
	}
}

func TestFilesAreFoundUnderADirectory(t *testing.T) {
	found, err := Find("testdata")
	want := []string{filepath.Join("testdata", "runs", "train", "events.out.tfevents.2"), filepath.Join("testdata", "runs", "val", "events.out.tfevents.1")}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("%v, %v, want %v", found, err, want)
	}
	if _, err := Find(filepath.Join("testdata", "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// TestTheFilesOfTheTests holds what other packages import in their tests.
func TestTheFilesOfTheTests(t *testing.T) {
	for path, want := range map[string][]byte{
		"testdata/runs/val/events.out.tfevents.1":   tfFile(tfEvent(1700000001, 1, simpleValue("loss", 1))),
		"testdata/runs/train/events.out.tfevents.2": tfFile(tfEvent(1700000002, 1, simpleValue("loss", 2))),
	} {
		if os.Getenv("FOLDLOG_BLESS") == "1" {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v, %q", path, err, got)
		}
	}
}

func TestRecordsThatClaimToBeHugeCostNoMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, maxRecord)
	file := append(bytes.Clone(tfVersion), binary.LittleEndian.AppendUint32(head, maskedCRC(head))...)
	log, err := Read(bytes.NewReader(append(file, "some"...)))
	if err != nil || log.Torn == nil {
		t.Errorf("%v, torn: %v", err, log.Torn)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	f.Add(tfFile(tfEvent(1, 1, tensorValue("x", "scalars", tensor(dtFloat, 1)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Read(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		// What is inside a record that is framed well must not be trusted either.
		inner, err := Read(bytes.NewReader(tfRecord(data)))
		if err != nil || inner.Events+int64(len(inner.Bad)) != 1 {
			t.Fatalf("%v, %d events, %v", err, inner.Events, inner.Bad)
		}
	})
}
