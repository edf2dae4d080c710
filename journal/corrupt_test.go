package journal

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const huge = "4611686018427387904" // 2^62

// corruptions are damages, where each must be reported, and what a salvage must
// still bring out of it.
var corruptions = []struct {
	name   string
	damage func(s *specimen)
	want   fault
	saved  int
}{
	// the head
	{"empty head file", func(s *specimen) { s.write(memPath, nil) }, fault{text: "not a study journal"}, 6},
	{"torn header", func(s *specimen) { s.write(memPath, s.read(memPath)[:20]) }, fault{text: "not a study journal"}, 6},
	{"torn head line", func(s *specimen) { b := s.read(memPath); s.write(memPath, b[:len(b)-3]) }, fault{offset: afterHeader, text: "torn"}, 6},
	{"head line missing", func(s *specimen) { s.write(memPath, s.read(memPath)[:s.headOffset()]) }, fault{offset: afterHeader, text: "torn"}, 6},
	{"bytes after the head line", func(s *specimen) { s.write(memPath, append(s.read(memPath), "x"...)) }, fault{offset: -1, text: "bytes follow"}, 6},
	{"blank line before the header", func(s *specimen) { s.edit(memPath, `{"record":"header"`, "\n"+`{"record":"header"`) }, fault{text: "not a study journal"}, 6},
	{"another record instead of the header", func(s *specimen) { s.edit(memPath, `"header"`, `"footer"`) }, fault{text: "not a study journal"}, 6},
	{"header without its format", func(s *specimen) { s.edit(memPath, `"format":6,`, ``) }, fault{text: "not a study journal"}, 6},
	{"format zero", func(s *specimen) { s.edit(memPath, `"format":6,`, `"format":0,`) }, fault{text: "not a study journal"}, 6},
	{"header field twice", func(s *specimen) { s.edit(memPath, `"created_by":7`, `"created_by":7,"created_by":7`) }, fault{text: `"created_by" stands twice`}, 6},
	{"header field missing", func(s *specimen) { s.edit(memPath, `"created_at_millis":1000,`, ``) }, fault{text: `"created_at_millis" is missing`}, 6},
	{"header field of another type", func(s *specimen) { s.edit(memPath, `"created_by":7`, `"created_by":"7"`) }, fault{text: ""}, 6},
	{"header over its cap", func(s *specimen) { s.edit(memPath, `"atune":"test"`, `"atune":"`+strings.Repeat("x", 2048)+`"`) }, fault{text: "not a study journal"}, 6},
	{"head over its cap", func(s *specimen) { s.edit(memPath, `"ops":6`, `"x":"`+strings.Repeat("x", 2048)+`","ops":6`) }, fault{offset: afterHeader, text: "longer than 2048"}, 6},
	{"head field twice", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":6,"ops":6`) }, fault{offset: afterHeader, text: `"ops" stands twice`}, 6},
	{"head field missing", func(s *specimen) { s.edit(memPath, `"ops":6,`, ``) }, fault{offset: afterHeader, text: `"ops" is missing`}, 6},
	{"pointer field missing", func(s *specimen) { s.edit(memPath, `"offset":`, `"affset":`) }, fault{offset: afterHeader, text: `"offset" is missing`}, 6},
	{"pointer field twice", func(s *specimen) { s.edit(memPath, `"offset":`, `"len":1,"offset":`) }, fault{offset: afterHeader, text: `"len" stands twice`}, 6},
	{"operations without a tip", func(s *specimen) {
		b := string(s.read(memPath))
		i, k := strings.Index(b, `{"file"`), strings.Index(b, `,"ops"`)
		s.write(memPath, []byte(b[:i]+"null"+b[k:]))
	}, fault{offset: afterHeader, text: "names no extent"}, 6},
	{"negative operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":-6`) }, fault{offset: afterHeader}, 6},
	{"too few operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":5`) }, fault{path: "data-a", extent: 5, seq: 5, text: "last operation is 6, not 5"}, 5},
	{"no operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":0`) }, fault{path: "data-a", offset: -2, text: "before the first operation"}, 0},
	{"too many operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":7`) }, fault{path: "data-a", extent: 5, seq: 7, text: "last operation is 6, not 7"}, 6},
	{"huge number of operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":`+huge) }, fault{path: "data-a", extent: 5, seq: 1 << 62, text: "last operation is 6"}, 6},
	{"wrong logical length", func(s *specimen) { s.edit(memPath, `"bytes":`, `"bytes":1`) }, fault{path: "data-a", extent: 5, seq: 6, text: "logical end"}, 6},

	// pointers
	{"tip in the directory above", func(s *specimen) { s.edit(memPath, `"data-a"`, `"../data-a"`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip at an absolute path", func(s *specimen) { s.edit(memPath, `"data-a"`, `"/j/s.atj.d/data-a"`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip without a name", func(s *specimen) { s.edit(memPath, `"data-a"`, `""`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip that is the directory", func(s *specimen) { s.edit(memPath, `"data-a"`, `"."`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip with NUL", func(s *specimen) { s.edit(memPath, `"data-a"`, `"data\u0000"`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip with a backslash", func(s *specimen) { s.edit(memPath, `"data-a"`, `"..\\data-a"`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"tip with a drive", func(s *specimen) { s.edit(memPath, `"data-a"`, `"c:data-a"`) }, fault{offset: afterHeader, text: "not a plain base name"}, 6},
	{"back-pointer out of the directory", func(s *specimen) { s.editExtent(5, `"data-b"`, `"../ata"`) }, fault{path: "data-a", extent: 5, seq: 6, text: "not a plain base name"}, 5},
	{"huge extent", func(s *specimen) { s.edit(memPath, `"len":`, `"len":`+huge[:16]) }, fault{offset: afterHeader, text: "over the cap"}, 6},
	{"extent of the size of the address space", func(s *specimen) {
		s.edit(memPath, `"len":`, `"len":`+huge+`,"old":`)
	}, fault{offset: afterHeader, text: "over the cap"}, 6},
	{"negative offset", func(s *specimen) { s.edit(memPath, `"offset":`, `"offset":-`) }, fault{offset: afterHeader}, 6},
	{"offset at the end of all files", func(s *specimen) { s.edit(memPath, `"offset":`, `"offset":9223372036854775807,"old":`) }, fault{offset: afterHeader, text: "cannot be"}, 6},
	{"offset beyond 63 bits", func(s *specimen) { s.edit(memPath, `"offset":`, `"offset":18446744073709551615,"old":`) }, fault{offset: afterHeader, text: "more than a file can hold"}, 6},
	{"empty extent", func(s *specimen) { s.edit(memPath, `"len":`, `"len":0,"old":`) }, fault{offset: afterHeader, text: "cannot be"}, 6},
	{"tip beside its extent", func(s *specimen) { s.edit(memPath, `"offset":`, `"offset":1,"old":`) }, fault{path: "data-a", offset: 1, seq: 6}, 6},
	{"tip in another file", func(s *specimen) { s.edit(memPath, `"data-a"`, `"data-b"`) }, fault{path: "data-b", offset: -2, seq: 6}, 6},
	{"a chain in a circle", func(s *specimen) { s.editExtent(4, `"first":5,"last":5`, `"first":6,"last":6`) }, fault{path: "data-b", extent: 4, seq: 5, text: "last operation is 6, not 5"}, 4},

	// extents
	{"another magic", func(s *specimen) { s.editExtent(4, `atune.`, `btune.`) }, fault{path: "data-b", extent: 4, text: "magic"}, 4},
	{"extent field twice", func(s *specimen) { s.editExtent(4, `"last":`, `"first:`) }, fault{path: "data-b", extent: 4}, 4},
	{"extent field missing", func(s *specimen) { s.editExtent(4, `"start"`, `"stort"`) }, fault{path: "data-b", extent: 4, text: `"start" is missing`}, 4},
	{"extent line without its end", func(s *specimen) { s.editExtent(4, "}\n{", "} {") }, fault{path: "data-b", extent: 4}, 4},
	{"wrong first", func(s *specimen) { s.editExtent(4, `"first":5`, `"first":4`) }, fault{path: "data-a", extent: 3, seq: 3, text: "last operation is 4, not 3"}, 3},
	{"first is zero", func(s *specimen) { s.editExtent(4, `"first":5`, `"first":0`) }, fault{path: "data-b", extent: 4, text: "cannot be"}, 4},
	{"first after last", func(s *specimen) { s.editExtent(4, `"first":5`, `"first":9`) }, fault{path: "data-b", extent: 4, text: "cannot be"}, 4},
	{"wrong last", func(s *specimen) { s.editExtent(4, `"last":5`, `"last":6`) }, fault{path: "data-b", extent: 4, text: "last operation is 6, not 5"}, 4},
	{"wrong start", func(s *specimen) { s.editExtent(4, `"start":4`, `"start":1`) }, fault{path: "data-b", extent: 4, text: "logical end"}, 4},
	{"wrong length", func(s *specimen) { s.editExtent(4, `"payload_len":8`, `"payload_len":9`) }, fault{path: "data-b", extent: 4, text: "does not fill"}, 4},
	{"wrong checksum", func(s *specimen) { s.editExtent(4, `"checksum":1`, `"checksum":2`) }, fault{path: "data-b", extent: 4}, 4},
	{"no way back", func(s *specimen) { s.editExtent(4, `"previous":{`, `"previuus":{`) }, fault{path: "data-b", extent: 4, text: `"previous" is missing`}, 4},
	{"the beginning is a later extent", func(s *specimen) {
		s.editExtent(2, s.pointerText(1), "null"+strings.Repeat(" ", len(s.pointerText(1))-4))
	}, fault{seq: 1, text: "chain ends before operation 1"}, 1},

	// payloads
	{"a flipped bit", func(s *specimen) { s.editExtent(4, `five`, `fivd`) }, fault{path: "data-b", extent: 4, text: "checksum"}, 4},
	{"a payload of zeros", func(s *specimen) {
		s.editExtent(4, `"id":"five"`, strings.Repeat("\x00", 11))
	}, fault{path: "data-b", extent: 4, text: "checksum"}, 4},
	{"two records glued", func(s *specimen) { s.forge(strings.TrimSuffix(s.line("", ""), "\n") + s.line("", "")) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a half record glued to the next", func(s *specimen) { s.forge(s.line("", "")[:30] + s.line("", "")) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a blank line", func(s *specimen) { s.forge("\n" + s.line("", "")) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a blank line at the end", func(s *specimen) { s.forge(s.line("", "") + "\n") }, fault{path: "data-a", offset: -4, seq: 6, text: "more bytes"}, 6},
	{"no newline at the end", func(s *specimen) { s.forge(strings.TrimSuffix(s.line("", ""), "\n")) }, fault{path: "data-a", offset: -3, seq: 6, text: "no end"}, 5},
	{"a record too many", func(s *specimen) { s.forge(s.line("", "") + s.line(`"seq":6`, `"seq":7`)) }, fault{path: "data-a", offset: -4, seq: 6, text: "more bytes"}, 6},
	{"another number", func(s *specimen) { s.forge(s.line(`"seq":6`, `"seq":8`)) }, fault{path: "data-a", offset: -3, seq: 6, text: "numbered 8"}, 5},
	{"a number beyond 64 bits", func(s *specimen) { s.forge(s.line(`"seq":6`, `"seq":18446744073709551616`)) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a number with a point", func(s *specimen) { s.forge(s.line(`"seq":6`, `"seq":6.0`)) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a record field missing", func(s *specimen) { s.forge(s.line(`"worker":7,`, ``)) }, fault{path: "data-a", offset: -3, seq: 6, text: `"worker" is missing`}, 5},
	{"a record field twice", func(s *specimen) { s.forge(s.line(`"worker":7,`, `"worker":7,"worker":7,`)) }, fault{path: "data-a", offset: -3, seq: 6, text: `"worker" stands twice`}, 5},
	{"another record", func(s *specimen) { s.forge(s.line(`"record":"op"`, `"record":"up"`)) }, fault{path: "data-a", offset: -3, seq: 6, text: `record is not "op"`}, 5},
	{"an operation that is no object", func(s *specimen) { s.forge(s.line(string(idOp("six")), `7`)) }, fault{path: "data-a", offset: -3, seq: 6, text: "not an object"}, 5},
	{"bad UTF-8", func(s *specimen) { s.forge(s.line(`six`, "si\xff")) }, fault{path: "data-a", offset: -3, seq: 6}, 5},
	{"a lone surrogate", func(s *specimen) { s.forge(s.line(`six`, `\ud800`)) }, fault{path: "data-a", offset: -3, seq: 6}, 5},

	// data files
	{"data file missing", func(s *specimen) { s.mem.Remove(s.data("data-b")) }, fault{path: "data-b", extent: 4, text: "missing"}, 1},
	{"data file empty", func(s *specimen) { s.write(s.data("data-b"), nil) }, fault{path: "data-b", extent: 4, text: "ends after the file's 0 bytes"}, 1},
	{"data file short", func(s *specimen) {
		b := s.read(s.data("data-b"))
		s.write(s.data("data-b"), b[:len(b)-1])
	}, fault{path: "data-b", extent: 4, text: "ends after"}, 4},
	{"data file is a directory", func(s *specimen) {
		s.mem.Remove(s.data("data-b"))
		s.mem.Mkdir(s.data("data-b"), 0o777)
	}, fault{path: "data-b", extent: 4, text: "not a regular file"}, 1},
	{"data directory missing", func(s *specimen) { s.mem.Rename(memPath+".d", "/j/elsewhere") }, fault{path: "data-a", extent: 5, text: "data directory is missing"}, 0},
}

// pointerText is how the next extent names extent n.
func (s *specimen) pointerText(n int) string { return string(appendPointer(nil, &s.extents[n])) }

// place is where the fault must be reported.
func (s *specimen) place(f fault) (path string, offset int64, seq uint64) {
	path, offset, seq = memPath, f.offset, f.seq
	if f.path != "" {
		path = s.data(f.path)
	}
	if f.extent > 0 {
		offset = s.extents[f.extent].Offset
		if seq == 0 {
			seq = s.first[f.extent]
		}
	}
	payload := s.extents[5].Offset
	if f.offset == -3 || f.offset == -4 {
		payload += int64(strings.IndexByte(string(s.read(s.data("data-a"))[payload:]), '\n')) + 1
	}
	switch f.offset {
	case afterHeader:
		offset = s.headOffset()
	case -1:
		offset = int64(len(s.read(memPath))) - 1
	case -2:
		offset = s.extents[5].Offset
	case -3:
		offset = payload
	case -4:
		offset = payload + int64(len(s.line("", "")))
	}
	return path, offset, seq
}

func TestEveryCorruptionIsNamedAndPlaced(t *testing.T) {
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			s := newSpecimen(t)
			c.damage(s)
			err := s.refresh()
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("reading: %v", err)
			}
			path, offset, seq := s.place(c.want)
			if corrupt.Path != path || corrupt.Offset != offset || corrupt.Seq != seq || !strings.Contains(corrupt.Err.Error(), c.want.text) {
				t.Errorf("got %s\nwant %s: byte %d, operation %d: %s", err, path, offset, seq, c.want.text)
			}
			if w, err := OpenWriter(t.Context(), memPath, memOptions(s.mem), new(ids)); err == nil {
				w.Close()
				t.Error("a writer opened it")
			} else if !errors.As(err, &corrupt) {
				t.Errorf("opening for writing: %v", err)
			}
			s.checkVerify(c.want.text)
			s.checkSalvage(c.saved)
		})
	}
}

func (s *specimen) refresh() error {
	r, err := OpenReader(memPath, ReaderOptions{FS: s.mem})
	if err != nil {
		return err
	}
	defer r.Close()
	return r.Refresh(new(ids))
}

// checkVerify checks that Verify finds a fault with the text.
func (s *specimen) checkVerify(text string) {
	s.t.Helper()
	found := false
	var all []string
	sum, err := Verify(s.t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: s.mem}, Machine: new(ids)}, func(f Finding) {
		all = append(all, f.Err.Error())
		found = found || f.Severity == Fault && strings.Contains(f.Err.Error(), text)
	})
	if err != nil || !found || sum.Faults == 0 {
		s.t.Errorf("verify: %v, %+v, found %q; want %q", err, sum, all, text)
	}
}

// checkSalvage checks what a salvage keeps, and that it is a sound journal.
func (s *specimen) checkSalvage(want int) {
	s.t.Helper()
	to := filepath.Join("/j", "saved.atj")
	done, err := Salvage(s.t.Context(), memPath, to, nil, CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}})
	if want == 0 {
		if err == nil && done.Ops > 0 {
			s.t.Errorf("salvaged %d operations of nothing", done.Ops)
		}
		return
	}
	if err != nil {
		s.t.Errorf("salvage: %v", err)
		return
	}
	got := readIDs(s.t, s.mem, to)
	if !slices.Equal(got, specimenIDs[:want]) || done.Ops != uint64(want) || done.Fault == nil {
		s.t.Errorf("salvaged %v (%+v), want the first %d", got, done, want)
	}
	verifySound(s.t, s.mem, to)
}

func TestNewerFormatsAreRefusedByTheirNumber(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(s *specimen)
		path   string
	}{
		{"header", func(s *specimen) { s.edit(memPath, `"format":6`, `"format":7,"new":[1]`) }, memPath},
		{"header of another shape", func(s *specimen) {
			s.write(memPath, []byte(`{"record":"header","format":7,"all":"new"}`+"\nwhatever"))
		}, memPath},
		{"extent", func(s *specimen) { s.editExtent(4, `extent/6`, `extent/7`) }, memPath + ".d/data-b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpecimen(t)
			tt.damage(s)
			var newer *NewerFormatError
			if err := s.refresh(); !errors.As(err, &newer) || newer.Format != 7 || newer.Path != tt.path {
				t.Errorf("reading: %v", err)
			}
			if _, err := OpenWriter(t.Context(), memPath, memOptions(s.mem), new(ids)); !errors.As(err, &newer) {
				t.Errorf("opening for writing: %v", err)
			}
			_, err := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}, func(Finding) {})
			if !errors.As(err, &newer) {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// TestHugeLengthsAllocateNothing reads journals whose fields promise exabytes.
func TestHugeLengthsAllocateNothing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(s *specimen)
	}{
		{"pointer", func(s *specimen) { s.edit(memPath, `"len":`, `"len":`+huge+`,"x":`) }},
		{"pointer at the hard limit", func(s *specimen) { s.edit(memPath, `"len":`, `"len":1073741824,"x":`) }},
		{"payload", func(s *specimen) { s.editExtent(5, `"payload_len":8`, `"payload_len": `) }},
		{"operations", func(s *specimen) { s.edit(memPath, `"ops":6`, `"ops":`+huge) }},
		{"stream", func(s *specimen) { s.edit(memPath, `"bytes":`, `"bytes":`+huge+`,"x":`) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSpecimen(t)
			tt.damage(s)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := s.refresh()
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it was read")
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("%d bytes were allocated", got)
			}
		})
	}
}

func TestDirectoryInPlaceOfTheHead(t *testing.T) {
	m := newMem(t)
	if err := m.Mkdir(memPath, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(memPath, ReaderOptions{FS: m}); !errors.Is(err, ErrNotJournal) {
		t.Errorf("reading: %v", err)
	}
	if _, err := Create(t.Context(), memPath, memOptions(m), new(ids)); !errors.Is(err, ErrNotJournal) {
		t.Errorf("creating: %v", err)
	}
}

func TestMissingHeadBesideDataIsNeverStartedOver(t *testing.T) {
	s := newSpecimen(t)
	if err := s.mem.Remove(memPath); err != nil {
		t.Fatal(err)
	}
	before := listing(s.mem, "/j")
	if err := s.refresh(); !errors.Is(err, ErrHeadMissing) {
		t.Errorf("reading: %v", err)
	}
	if _, err := Create(t.Context(), memPath, memOptions(s.mem), new(ids)); !errors.Is(err, ErrHeadMissing) {
		t.Errorf("creating: %v", err)
	}
	if after := listing(s.mem, "/j"); after != before {
		t.Errorf("something changed:\n%s%s", before, after)
	}
	s.checkVerify("head is missing")
	s.checkSalvage(6)
}

func TestVerifyListsEveryFaultOfSeveral(t *testing.T) {
	s := newSpecimen(t)
	s.editExtent(5, `six`, `sax`)       // payload after the break
	s.editExtent(4, `atune.`, `btune.`) // the break
	s.editExtent(2, `two`, `twa`)       // payload before it
	var got []string
	sum, err := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}, func(f Finding) {
		if f.Severity == Fault {
			got = append(got, fmt.Sprintf("%s %d", f.Path, f.Offset))
		}
	})
	if err != nil || sum.Faults != len(got) {
		t.Errorf("%+v, %v", sum, err)
	}
	var want []string
	for _, n := range []int{4, 2, 5} {
		want = append(want, fmt.Sprintf("%s %d", s.data(s.extents[n].File), s.extents[n].Offset))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
