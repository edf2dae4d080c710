package journal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

const (
	goldenHead = "testdata/golden/golden.atj"
	goldenData = "testdata/golden/golden.atj.d/data-0000000000000000-00000000-0000000000000000"
)

func golden(f testing.TB, path string) []byte {
	f.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzHead reads any bytes as a head. What is accepted is spelled again and reads
// the same.
func FuzzHead(f *testing.F) {
	f.Add(golden(f, goldenHead))
	f.Add([]byte(plainHeader + `{"tip":null,"ops":0,"bytes":91}` + "\n"))
	f.Add([]byte(`{"record":"header","format":5,"atune":"","created_at_millis":0,"created_by":0,"x":{}}` + "\n"))
	f.Add([]byte(`{"record":"header","format":7}` + "\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseHead(b)
		if err != nil || s.legacy() {
			return
		}
		again, err := parseHead(appendHead(bytes.Clone(s.headerLine), s.head))
		if err != nil {
			// Only a name that a short escape spelled can outgrow the cap.
			if len(appendHead(nil, s.head)) <= maxMetaLine {
				t.Fatalf("%q reads and does not read again: %v", b, err)
			}
			return
		}
		if !again.head.same(s.head) || again.header != s.header {
			t.Errorf("%q reads as %+v, then as %+v", b, s, again)
		}
	})
}

func FuzzExtentHeader(f *testing.F) {
	for _, line := range bytes.Split(golden(f, goldenData), []byte("\n")) {
		if bytes.HasPrefix(line, scanMark) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeExtentHeader(b)
		if quick, ok := quickExtentHeader(b, newFilePool(layout{})); ok && (err != nil || !sameExtent(quick, e)) {
			t.Fatalf("%q reads as %+v, but in passing as %+v: %v", b, e, quick, err)
		}
		if err != nil {
			return
		}
		again, err := decodeExtentHeader(bytes.TrimSuffix(appendExtentHeader(nil, e), []byte("\n")))
		if err != nil {
			t.Fatalf("%q reads and does not read again: %v", b, err)
		}
		if !sameExtent(e, again) {
			t.Errorf("%q reads as %+v, then as %+v", b, e, again)
		}
	})
}

func sameExtent(a, b extentHeader) bool {
	same := Head{Tip: a.previous}.same(Head{Tip: b.previous})
	a.previous, b.previous = nil, nil
	return same && a == b
}

func FuzzRecord(f *testing.F) {
	for _, line := range bytes.Split(golden(f, goldenData), []byte("\n")) {
		if bytes.HasPrefix(line, []byte(`{"record":"op"`)) {
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var rec, again, quick Record
		err := scanRecord(b, &rec)
		if quickRecord(b, &quick) && (err != nil || !sameRecord(rec, quick)) {
			t.Fatalf("%q reads as %+v, but in passing as %+v: %v", b, rec, quick, err)
		}
		if err != nil {
			return
		}
		line := appendRecord(nil, rec.Seq, rec.Worker, rec.AtMillis, rec.Op)
		if err := decodeRecord(line[:len(line)-1], &again); err != nil {
			t.Fatalf("%q reads and %q does not: %v", b, line, err)
		}
		if !sameRecord(rec, again) {
			t.Errorf("%q reads as %+v, then as %+v", b, rec, again)
		}
	})
}

func sameRecord(a, b Record) bool {
	return a.Seq == b.Seq && a.Worker == b.Worker && a.AtMillis == b.AtMillis && bytes.Equal(a.Op, b.Op)
}

// FuzzJournalDir takes any bytes for the head and a data file: whatever they
// are, nothing panics, memory stays bounded, verify agrees with reading, and what
// a salvage writes is sound.
func FuzzJournalDir(f *testing.F) {
	head, data := golden(f, goldenHead), golden(f, goldenData)
	f.Add(head, data)
	f.Add(head, data[:len(data)/2])
	f.Add(head[:60], data)
	f.Add([]byte{}, data)
	f.Add([]byte(`{"record":"header","format":5,"atune":"","created_at_millis":0,"created_by":0}`+"\n"), data)
	f.Fuzz(checkJournalDir)
}

func checkJournalDir(t *testing.T, head, data []byte) {
	mem := newMem(t)
	if err := mem.Mkdir(memPath+".d", 0o777); err != nil {
		t.Fatal(err)
	}
	s := &specimen{t: t, mem: mem}
	s.write(memPath, head)
	s.write(s.data(filepath.Base(goldenData)), data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := &nothing{}
	var readErr error
	r, err := OpenReader(memPath, ReaderOptions{FS: mem})
	if readErr = err; err == nil {
		readErr = r.Refresh(m)
		r.Close()
	}
	sum, verifyErr := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: mem}}, func(Finding) {})
	if (readErr == nil) != (verifyErr == nil && sum.Faults == 0) {
		t.Errorf("reading says %v, verify %+v, %v", readErr, sum, verifyErr)
	}
	opts := CopyOptions{ReaderOptions: ReaderOptions{FS: mem}}
	done, err := Salvage(context.Background(), memPath, "/j/saved.atj", nil, opts)
	if err == nil {
		if got := uint64(bytes.Count([]byte(stream(t, "/j/saved.atj", opts.ReaderOptions)), []byte("\n"))); got != done.Ops+1 {
			t.Errorf("salvaged %d operations and %d lines are there", done.Ops, got)
		}
	}
	if readErr == nil && (err != nil || done.Ops != m.applied) {
		t.Errorf("%d operations are there, salvaged %+v, %v", m.applied, done, err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20+64*uint64(len(head)+len(data)) {
		t.Errorf("%d bytes were allocated for %d", got, len(head)+len(data))
	}
}
