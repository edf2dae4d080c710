package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// foreign builds a journal as another program might: extents of several files
// interleaved, several operations in each, junk wherever nobody looks.
type foreign struct {
	t      *testing.T
	mem    *fsx.Mem
	header string
	files  map[string][]byte
	head   Head
	stream []byte
}

func newForeign(t *testing.T, header string) *foreign {
	f := &foreign{t: t, mem: newMem(t), header: header, files: map[string][]byte{}}
	f.head.Bytes = uint64(len(header))
	f.stream = []byte(header)
	return f
}

// extent appends lines, verbatim, as one published extent.
func (f *foreign) extent(file string, lines ...string) {
	payload := []byte(strings.Join(lines, "\n") + "\n")
	e := appendExtentHeader(nil, extentHeader{
		previous: f.head.Tip, first: f.head.Ops + 1, last: f.head.Ops + uint64(len(lines)),
		start: f.head.Bytes, payloadLen: int64(len(payload)), checksum: checksum(payload),
	})
	e = append(e, payload...)
	f.head = Head{
		Tip: &Pointer{file, int64(len(f.files[file])), int64(len(e))},
		Ops: f.head.Ops + uint64(len(lines)), Bytes: f.head.Bytes + uint64(len(payload)),
	}
	f.files[file] = append(f.files[file], e...)
	f.stream = append(f.stream, payload...)
}

// junk appends bytes that no head names.
func (f *foreign) junk(file, text string) { f.files[file] = append(f.files[file], text...) }

func (f *foreign) finish() {
	f.t.Helper()
	err := f.mem.Mkdir(memPath+".d", 0o777)
	s := &specimen{t: f.t, mem: f.mem}
	for name, content := range f.files {
		s.write(s.data(name), content)
	}
	s.write(memPath, appendHead([]byte(f.header), f.head))
	if err != nil {
		f.t.Fatal(err)
	}
}

func envelope(seq int, op string) string {
	return fmt.Sprintf(`{"record":"op","seq":%d,"worker":%d,"at_millis":%d,"op":%s}`, seq, seq*7, 1000-seq, op)
}

const plainHeader = `{"record":"header","format":6,"atune":"0.31.0","created_at_millis":1000000,"created_by":0}` + "\n"

func TestForeignJournalsReadAndCopyUnchanged(t *testing.T) {
	max := fmt.Sprint(uint64(math.MaxUint64))
	for _, tt := range []struct {
		name  string
		build func(f *foreign)
	}{
		{"several operations per extent of several files", func(f *foreign) {
			f.extent("data-0", envelope(1, `{"kind":"a"}`), envelope(2, `{"kind":"b"}`))
			f.extent("data-1", envelope(3, `{"kind":"c"}`))
			f.extent("data-0", envelope(4, `{"kind":"d"}`), envelope(5, `{"kind":"e"}`), envelope(6, `{"kind":"f"}`))
			f.extent("data-2", envelope(7, `{"kind":"g"}`))
		}},
		{"junk after, between and before extents", func(f *foreign) {
			f.junk("data-0", "torn append of another history\n")
			f.extent("data-0", envelope(1, `{"kind":"a"}`))
			f.junk("data-0", `{"magic":"atune.extent/6","previous":null,"first":1`)
			f.extent("data-1", envelope(2, `{"kind":"b"}`))
			f.extent("data-0", envelope(3, `{"kind":"c"}`))
			f.junk("data-0", "\x00\x00\xff\xfe")
			f.junk("data-1", strings.Repeat("z", 5000))
			f.junk("data-9", "a file that nobody names")
		}},
		{"unknown fields of the envelope and another order", func(f *foreign) {
			f.extent("data-0", `{"host":"ü","seq":1,"op":{"kind":"a"},"record":"op","at_millis":5,"worker":3,"tags":[1,{"x":null}]}`)
		}},
		{"blanks inside a line", func(f *foreign) {
			f.extent("data-0", `{ "record" : "op", "seq" : 1, "worker":2,	"at_millis":3, "op" : { "kind" : "a" } }`)
		}},
		{"unsigned integers of all 64 bits", func(f *foreign) {
			f.extent("data-0", `{"record":"op","seq":1,"worker":`+max+`,"at_millis":`+max+`,"op":{"kind":"a","n":`+max+`,"m":-9223372036854775808,"many":123456789012345678901234567890}}`)
		}},
		{"every kind of text", func(f *foreign) {
			f.extent("data-0", envelope(1, `{"kind":"a","t":"<&>\u2028`+"\u2028\u2029😀\u007f"+`\u0000\u001f\b\t\n\f\r\"\\\/é\ud83d\ude00"}`))
			f.extent("data-0", envelope(2, `{"kind":"a","t":"`+"e\u0301 \U0010ffff \ufffd"+`"}`))
		}},
		{"every kind of float", func(f *foreign) {
			f.extent("data-0", envelope(1, `{"kind":"a","v":["NaN","Infinity","-Infinity",-0.0,5e-324,1.7976931348623157e308,1e16,0.00001,1E+2]}`))
		}},
		{"nothing at all", func(f *foreign) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newForeign(t, plainHeader)
			tt.build(f)
			f.finish()
			opts := ReaderOptions{FS: f.mem}
			if got := stream(t, memPath, opts); got != string(f.stream) {
				t.Errorf("read\n%s\nwant\n%s", got, f.stream)
			}
			verifySound(t, f.mem, memPath)
			if _, err := Copy(t.Context(), memPath, "/j/copy.atj", CopyOptions{ReaderOptions: opts}); err != nil {
				t.Fatal(err)
			}
			if got := stream(t, "/j/copy.atj", opts); got != string(f.stream) {
				t.Errorf("copied\n%s", got)
			}
			if _, err := Salvage(t.Context(), memPath, "/j/saved.atj", nil, CopyOptions{ReaderOptions: opts}); err != nil {
				t.Fatal(err)
			}
			if got := stream(t, "/j/saved.atj", opts); got != string(f.stream) {
				t.Errorf("salvaged\n%s", got)
			}
			w, err := OpenWriter(t.Context(), memPath, memOptions(f.mem), &nothing{})
			if err != nil {
				t.Fatal(err)
			}
			appendOps(t, w, `{"kind":"z"}`)
			w.Close()
			if got := stream(t, memPath, opts); !strings.HasPrefix(got, string(f.stream)) || strings.Count(got, "\n") != bytes.Count(f.stream, []byte("\n"))+1 {
				t.Errorf("after an append\n%s", got)
			}
		})
	}
}

func TestHeaderKeepsUnknownFieldsAndAllItsBits(t *testing.T) {
	header := `{"record":"header","format":6,"zone":{"a":[1]},"atune":"x/\"é","created_at_millis":18446744073709551615,"created_by":18446744073709551615}` + "\n"
	f := newForeign(t, header)
	f.extent("data-0", envelope(1, `{"kind":"a"}`))
	f.finish()
	w, err := OpenWriter(t.Context(), memPath, memOptions(f.mem), &nothing{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	appendOps(t, w, `{"kind":"b"}`)
	h := w.Header()
	if h.CreatedAtMillis != math.MaxUint64 || h.CreatedBy != math.MaxUint64 || h.Program != `x/"é` {
		t.Errorf("header %+v", h)
	}
	if got := stream(t, memPath, ReaderOptions{FS: f.mem}); !strings.HasPrefix(got, header) {
		t.Errorf("header is now %s", got)
	}
}

// TestUnpublishedBytesAreNeverLookedAt puts extents that would fit after the
// published ones.
func TestUnpublishedBytesAreNeverLookedAt(t *testing.T) {
	f := newForeign(t, plainHeader)
	f.extent("data-0", envelope(1, `{"kind":"a"}`))
	published := f.head
	f.extent("data-0", envelope(2, `{"kind":"unpublished"}`))
	f.extent("data-1", envelope(3, `{"kind":"unpublished"}`))
	f.head = published
	f.finish()
	if got := stream(t, memPath, ReaderOptions{FS: f.mem}); strings.Contains(got, "unpublished") {
		t.Errorf("read %s", got)
	}
	var notes []string
	sum, err := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: f.mem}}, func(f Finding) {
		if f.Severity != Note {
			t.Errorf("%+v", f)
		}
		notes = append(notes, f.Path)
	})
	if err != nil || sum.Ops != 1 || !slices.Equal(notes, []string{memPath + ".d/data-0", memPath + ".d/data-1"}) {
		t.Errorf("%+v, %v, %q", sum, err, notes)
	}
}

// TestTwoChainsAreTold lays two histories into one data directory; only what the
// head reaches is the journal.
func TestTwoChainsAreTold(t *testing.T) {
	f := newForeign(t, plainHeader)
	f.extent("data-0", envelope(1, `{"kind":"fork"}`))
	f.extent("data-0", envelope(2, `{"kind":"fork"}`))
	f.head = Head{Bytes: uint64(len(plainHeader))}
	f.extent("data-1", envelope(1, `{"kind":"true"}`))
	f.finish()
	if got := stream(t, memPath, ReaderOptions{FS: f.mem}); strings.Contains(got, "fork") || !strings.Contains(got, "true") {
		t.Errorf("read %s", got)
	}
	verifySound(t, f.mem, memPath)
}

func TestOperationsThatCouldNotBeReadBackAreRefused(t *testing.T) {
	m := newMem(t)
	w, err := Create(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, op := range []string{
		"", "null", "[]", "{", `{"kind":"a"}x`, "{\n}", "{}\n", `{"a":"` + "\x00" + `"}`, `{"a":"` + "\xff" + `"}`, `{"a":01}`, `{"a":"\ud800"}`,
	} {
		err := w.Do(t.Context(), func(tx *Tx) error { return tx.Append([]byte(op)) })
		if err == nil {
			t.Errorf("%q was appended", op)
		}
	}
	mustPut(t, w, "good")
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"good"}) {
		t.Errorf("journal holds %v", got)
	}
}

func TestCapsRefuseBeforeAnythingIsWritten(t *testing.T) {
	m := newMem(t)
	opts := memOptions(m)
	opts.MaxRecordBytes, opts.MaxExtentBytes, opts.MaxJournalBytes = 200, 300, 600
	w, err := Create(t.Context(), memPath, opts, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := listing(m, memPath+".d")
	long := strings.Repeat("x", 300)
	check := func(what string, names ...string) {
		t.Helper()
		var tooLarge *TooLargeError
		if err := put(t.Context(), w, names...); !errors.As(err, &tooLarge) || tooLarge.What != what || tooLarge.Size <= tooLarge.Limit {
			t.Errorf("%d operations: %v, want the %s refused", len(names), err, what)
		}
	}
	check("record", long)
	check("extent", "a", "b", "c", "d", "e")
	if after := listing(m, memPath+".d"); !strings.Contains(after, "lease") || strings.Contains(after, dataPrefix) {
		t.Errorf("something was written:\n%s\nbefore:\n%s", after, before)
	}
	mustPut(t, w, "a", "b")
	mustPut(t, w, "c", "d")
	mustPut(t, w, "e")
	check("journal", "f", "g")
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"a", "b", "c", "d", "e"}) {
		t.Errorf("journal holds %v", got)
	}
}
