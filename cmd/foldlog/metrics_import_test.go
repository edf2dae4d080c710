package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	if !isTFEvents(start) {
		t.Errorf("the crc of the length is %#x", maskedCRC(start[:8]))
	}
	if isTFEvents([]byte(`{"step":1,"loss":0.5}`)) || isTFEvents(make([]byte, 12)) {
		t.Error("something else is taken for one")
	}
}

func importing(t *testing.T, files map[string][]byte, args ...string) result {
	t.Helper()
	texts := map[string]string{}
	for name, data := range files {
		texts[name] = string(data)
	}
	return foldlog(t, t.Context(), texts, append([]string{"metrics", "import"}, args...)...)
}

func TestImportReadsScalarsOfEveryKind(t *testing.T) {
	double := protoBytes(tensor(dtDouble), tensorContent, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.1)))
	packed := protoBytes(tensor(dtFloat, 1), tensorFloats, binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5)))
	int64s := protoBytes(tensor(dtInt64), tensorInt64s, protowire.AppendVarint(nil, 1<<40))
	negative := protoBytes(tensor(dtInt8), tensorContent, []byte{0xfd})
	half := protoVarint(tensor(dtHalf), tensorHalfs, 0x3e00)
	bfloat := protoBytes(tensor(dtBFloat16), tensorContent, []byte{0xc0, 0xbf})
	vector := protoBytes(tensor(dtFloat, 2), tensorContent, make([]byte, 8))
	got := importing(t, map[string][]byte{"events.out.tfevents.1": tfFile(
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
	)}, "events.out.tfevents.1", "--slug", "tb", "--running")
	want := []string{
		`{"ts_ms":1700000001500,"kind":"open","slug":"tb","description":"","metadata":{}}`,
		`{"ts_ms":1700000001500,"step":1,"kind":"metric","name":"loss","value":0.5,"metadata":{}}`,
		`{"ts_ms":1700000002000,"step":2,"kind":"metric","name":"loss","value":"NaN","metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"double","value":0.1,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":4,"kind":"metric","name":"double","value":0.1,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"float","value":2.5,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"int","value":1099511627776,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"int8","value":-3,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"half","value":1.5,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"bfloat","value":-1.5,"metadata":{}}`,
		`{"ts_ms":1700000003000,"step":3,"kind":"metric","name":"zero","value":0.0,"metadata":{}}`,
		"",
	}
	if diff := cmp.Diff(want, strings.Split(got.stdout, "\n")); diff != "" || got.status != 0 {
		t.Errorf("status %d, %s\n-want +got:\n%s", got.status, got.stderr, diff)
	}
	if !strings.Contains(got.stderr, "4 histogram, image or texts left out") {
		t.Error(got.stderr)
	}
}

func TestImportOfAFileCutAtEveryByteHasWhatIsWhole(t *testing.T) {
	file := tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5)), tfEvent(1700000002, 2, simpleValue("loss", 0.25)))
	one := len(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	for cut := len(tfVersion); cut <= len(file); cut++ {
		log, err := readTFEvents(bytes.NewReader(file[:cut]))
		if err != nil || len(log.bad) > 0 {
			t.Fatalf("cut at %d: %v, %v", cut, err, log.bad)
		}
		want := 0
		if cut >= one {
			want++
		}
		if cut >= len(file) {
			want++
		}
		whole := cut == len(tfVersion) || cut == one || cut == len(file)
		if len(log.scalars) != want || (log.torn == nil) != whole {
			t.Errorf("cut at %d: %d scalars, want %d; torn: %v", cut, len(log.scalars), want, log.torn)
		}
	}
}

func TestImportPassesDamagedRecordsOver(t *testing.T) {
	file := tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5)), tfEvent(1700000002, 2, simpleValue("loss", 0.25)), tfEvent(1700000003, 3, simpleValue("loss", 0.125)))
	second := len(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	for _, tc := range []struct {
		name   string
		flip   int
		points string
		want   string
	}{
		{"data", second + 14, "imported 2 points", "offset 70: wrong checksum"},
		{"length", second, "imported 1 point ", "length: wrong checksum; the rest of the file cannot be read"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			damaged := bytes.Clone(file)
			damaged[tc.flip] ^= 1
			got := importing(t, map[string][]byte{"e": damaged}, "e", "--slug", "tb")
			want := strings.ReplaceAll(tc.want, "offset 70", "offset "+strconv.Itoa(second))
			if got.status != 1 || !strings.Contains(got.stderr, want) || !strings.Contains(got.stderr, tc.points) {
				t.Errorf("status %d\n%s", got.status, got.stderr)
			}
		})
	}
}

func TestImportOfADirectory(t *testing.T) {
	file := func(wall float64, step int64, v float32) []byte {
		return tfFile(tfEvent(wall, step, simpleValue("loss", v)))
	}
	t.Run("files of one directory are processes", func(t *testing.T) {
		got := importing(t, map[string][]byte{"d/events.out.tfevents.2": file(1700000002, 1, 2), "d/events.out.tfevents.1": file(1700000001, 1, 1)}, "d", "--slug", "tb")
		if n := strings.Count(got.stdout, `"kind":"open"`); n != 2 || strings.Index(got.stdout, `"value":1.0`) > strings.Index(got.stdout, `"value":2.0`) {
			t.Errorf("%d opens:\n%s", n, got.stdout)
		}
	})
	t.Run("several directories are merged by time", func(t *testing.T) {
		got := importing(t, map[string][]byte{"d/train/a.tfevents": file(1700000002, 1, 2), "d/val/a.tfevents": file(1700000001, 1, 1)}, "d", "--slug", "tb")
		want := []string{`"value":1.0,"metadata":{"run":"val"}}`, `"value":2.0,"metadata":{"run":"train"}}`}
		lines := strings.Split(got.stdout, "\n")
		for i, text := range want {
			if !strings.HasSuffix(lines[i+1], text) {
				t.Errorf("line %d is %s", i+1, lines[i+1])
			}
		}
	})
}

func TestRecordsThatClaimToBeHugeCostNoMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, maxTFRecord)
	file := append(bytes.Clone(tfVersion), binary.LittleEndian.AppendUint32(head, maskedCRC(head))...)
	log, err := readTFEvents(bytes.NewReader(append(file, "some"...)))
	if err != nil || log.torn == nil {
		t.Errorf("%v, torn: %v", err, log.torn)
	}
}

func FuzzReadTFEvents(f *testing.F) {
	f.Add(tfFile(tfEvent(1700000001, 1, simpleValue("loss", 0.5))))
	f.Add(tfFile(tfEvent(1, 1, tensorValue("x", "scalars", tensor(dtFloat, 1)))))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := readTFEvents(bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		// What is inside a record that is framed well must not be trusted either.
		inner, err := readTFEvents(bytes.NewReader(tfRecord(data)))
		if err != nil || inner.events+int64(len(inner.bad)) != 1 {
			t.Fatalf("%v, %d events, %v", err, inner.events, inner.bad)
		}
	})
}

func TestImportReplacesItsOwnFileOnly(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.jsonl")
	if err := os.WriteFile(out, []byte("precious\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	got := importing(t, map[string][]byte{"e": tfFile()}, "e", "--slug", "tb", "--out", out)
	if data, err := os.ReadFile(out); err != nil || string(data) != "precious\n" || got.status != 1 {
		t.Errorf("%q, %v, status %d", data, err, got.status)
	}
}
