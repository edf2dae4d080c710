package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance/internal/wire"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sample(t testing.TB) *Manifest {
	t.Helper()
	fields, err := FieldsOf(arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.BinaryTypes.String, Metadata: arrow.NewMetadata([]string{primaryKeyMetadata, "note"}, []string{"true", "x"})},
		{Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, nil))
	ok(t, err)
	m := &Manifest{Fields: fields, Version: 7, Time: time.Unix(1700000000, 5), TransactionFile: "6-x.txn", FileVersion: "2.0"}
	m.Fragments = []Fragment{{ID: 3, Rows: 10, Files: []DataFile{DataFileOf("a.lance", fields, 99)}, Deletion: &DeletionFile{Kind: DeletionBitmap, ReadVersion: 5, ID: 77, Rows: 2}}}
	m.MaxFragment = new(uint32(3))
	m.Indexes = []Index{NewMemWALIndex(6), {UUID: NewUUID(), Name: "k_idx", Fields: []int32{0}, Fragments: roaring.BitmapOf(3), DetailsURL: BTreeDetails, Files: []IndexFile{{"page_data.lance", 5}}}}
	return m
}

// TestWhatIsNotKnownSurvives rewrites a manifest with fields of the future at every
// level, as another release might write them.
func TestWhatIsNotKnownSurvives(t *testing.T) {
	future := wire.Builder(nil).Bytes(201, []byte("future")).UintAlways(202, 5)
	m := sample(t)
	m.extra = future
	m.Fragments[0].extra = future
	m.Indexes[1].extra = future
	m.indexExtra = future
	m.Fields[0].raw = append(wire.Builder(nil).String(2, "k").String(5, "string"), future...)
	got, err := ParseManifest(m.File())
	ok(t, err)
	changed := got.Clone()
	changed.Version++
	again, err := ParseManifest(changed.File())
	ok(t, err)
	if n := bytes.Count(changed.File(), []byte("future")); n != 5 {
		t.Errorf("%d of 5 unknown fields are left", n)
	}
	if again.Version != 8 || !again.Time.Equal(m.Time) || again.NextFragment() != 4 || again.TransactionFile != "6-x.txn" {
		t.Errorf("read %+v", again)
	}
	if again.ReaderFlags != flagDeletionFiles || again.WriterFlags != flagDeletionFiles {
		t.Errorf("flags %d and %d for a manifest with deletions", again.ReaderFlags, again.WriterFlags)
	}
	if len(again.Index(MemWALName)) != 1 || !again.Index("k_idx")[0].Fragments.Contains(3) {
		t.Errorf("indexes %+v", again.Indexes)
	}
}

func TestMergeProgressIsKeptPerShard(t *testing.T) {
	x := NewMemWALIndex(1)
	a, b := NewUUID(), NewUUID()
	for _, c := range []Compacted{{a, 1}, {b, 5}, {a, 3}} {
		var err error
		x, err = x.WithProgress(c)
		ok(t, err)
		x, err = parseIndex(x.Message())
		ok(t, err)
	}
	got, err := x.MergeProgress()
	ok(t, err)
	if d := cmp.Diff(map[UUID]uint64{a: 3, b: 5}, got); d != "" {
		t.Error(d)
	}
}

func TestTransactionsAreReadAsWritten(t *testing.T) {
	m := sample(t)
	for _, want := range []Transaction{
		{Kind: Append, Fragments: m.Fragments},
		{Kind: Delete, Updated: m.Fragments, Removed: []uint64{1, 2}},
		{Kind: CreateIndex, NewIndexes: m.Indexes[:1], RemovedIndexes: m.Indexes[1:]},
		{Kind: Rewrite, Groups: []Group{{Old: m.Fragments, New: m.Fragments}}},
		{Kind: ReserveFragments, Reserved: 4},
		{Kind: Update, Fragments: m.Fragments, Updated: m.Fragments, Removed: []uint64{9}, Compacted: []Compacted{{NewUUID(), 3}}},
	} {
		want.ReadVersion, want.UUID = 6, NewUUID().String()
		got, err := ParseTransaction(want.Message())
		ok(t, err)
		if !bytes.Equal(got.Message(), want.Message()) || got.Kind != want.Kind {
			t.Errorf("%s is read as %+v", want.Kind, got)
		}
	}
}

func TestBrokenManifestsAreCorrupt(t *testing.T) {
	good := sample(t).File()
	for n := range len(good) {
		if _, err := ParseManifest(good[:n]); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
	}
	foot := len(good) - manifestFooter
	for name, change := range map[string]func([]byte){
		"offset beyond the end": func(b []byte) { binary.LittleEndian.PutUint64(b[foot:], 1<<63) },
		"length beyond the end": func(b []byte) { binary.LittleEndian.PutUint32(b, 1<<32-1) },
	} {
		b := bytes.Clone(good)
		change(b)
		if _, err := ParseManifest(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for at := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[at] ^= 1 << bit
			_, err := ParseManifest(b)
			if !allowed(err) {
				t.Fatalf("bit %d of byte %d flipped: %v", bit, at, err)
			}
		}
	}
}

func allowed(err error) bool {
	return err == nil || errors.Is(err, ErrCorrupt) || errors.As(err, new(*UnsupportedError))
}

func TestUUIDsAreReadAsWritten(t *testing.T) {
	u := NewUUID()
	got, err := ParseUUID(u.String())
	ok(t, err)
	if got != u {
		t.Errorf("%s is read as %s", u, got)
	}
	for _, bad := range []string{"", "x", u.String()[1:], u.String() + "0", "aa48498dac9159e2845269f46010ace2"} {
		if _, err := ParseUUID(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add(sample(f).File())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if !allowed(err) {
			t.Error(err)
		}
		if err == nil {
			if _, err := ParseManifest(m.File()); !allowed(err) {
				t.Error(err)
			}
		}
	})
}

func FuzzTransaction(f *testing.F) {
	m := sample(f)
	f.Add((&Transaction{Kind: Update, Fragments: m.Fragments, Compacted: []Compacted{{NewUUID(), 3}}}).Message())
	f.Add((&Transaction{Kind: CreateIndex, NewIndexes: m.Indexes}).Message())
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := ParseTransaction(b); !allowed(err) {
			t.Error(err)
		}
	})
}

// TestFragmentsAreNumberedAfterThoseThatAre, though a manifest of an older release, which
// left a highest id of zero out, does not say how far they go.
func TestFragmentsAreNumberedAfterThoseThatAre(t *testing.T) {
	m := &Manifest{Fragments: []Fragment{{ID: 0, Rows: 1}, {ID: 7, Rows: 1}, {ID: 3, Rows: 1}}, FileVersion: "2.0"}
	m, err := ParseManifest(m.File())
	ok(t, err)
	if next := m.NextFragment(); next != 8 {
		t.Errorf("the next fragment is %d", next)
	}
	first, err := m.Reserve(3)
	ok(t, err)
	if first != 8 || m.NextFragment() != 11 {
		t.Errorf("reserved from %d to %d", first, m.NextFragment())
	}
	if _, err := m.Reserve(1<<32 - 11); err != nil {
		t.Error(err)
	}
	if first, err := m.Reserve(1); err == nil {
		t.Errorf("fragment %d was reserved", first)
	}
}

// TestTheLastIndexSectionCounts, as protobuf wants it; reading each of many would take
// memory that the file has not.
func TestTheLastIndexSectionCounts(t *testing.T) {
	m := sample(t)
	m.extra = wire.Builder(nil).UintAlways(6, 0).UintAlways(6, 0)
	got, err := ParseManifest(m.File())
	ok(t, err)
	if len(got.Indexes) != len(m.Indexes) {
		t.Errorf("%d indexes, want %d", len(got.Indexes), len(m.Indexes))
	}
}

// TestHostileMetadataTakesMemoryThatFollowsItsSize: messages of a few bytes each.
func TestHostileMetadataTakesMemoryThatFollowsItsSize(t *testing.T) {
	const size = 1 << 20
	manifest := func(field []byte) func() error {
		body := wire.Builder(bytes.Repeat(field, size/len(field))).Bytes(15, wire.Builder(nil).String(1, "lance").String(2, "2.0"))
		file := appendSection(nil, body)
		file = append(binary.LittleEndian.AppendUint64(file, 0), 0, 0, 2, 0, 'L', 'A', 'N', 'C')
		return func() error { _, err := ParseManifest(file); return err }
	}
	section := func(field []byte) func() error {
		file := appendSection(nil, bytes.Repeat(field, size/len(field)))
		at := uint64(len(file))
		file = appendSection(file, wire.Builder(nil).UintAlways(6, 0))
		file = append(binary.LittleEndian.AppendUint64(file, at), 0, 0, 2, 0, 'L', 'A', 'N', 'C')
		return func() error { _, err := ParseManifest(file); return err }
	}
	transaction := func(kind Kind, field []byte) func() error {
		b := wire.Builder(nil).Bytes(int(kind), bytes.Repeat(field, size/len(field)))
		return func() error { _, err := ParseTransaction(b); return err }
	}
	for name, parse := range map[string]func() error{
		"unknown fields":         manifest(wire.Builder(nil).UintAlways(60, 0)),
		"empty columns":          manifest(wire.Builder(nil).Bytes(1, nil)),
		"columns":                manifest(wire.Builder(nil).Bytes(1, wire.Builder(nil).String(2, "a"))),
		"empty fragments":        manifest(wire.Builder(nil).Bytes(2, nil)),
		"fragments":              manifest(wire.Builder(nil).Bytes(2, wire.Builder(nil).Uint(4, 1))),
		"fragments of one file":  manifest(wire.Builder(nil).Bytes(2, wire.Builder(nil).Bytes(2, wire.Builder(nil).String(1, "a")))),
		"many writers":           manifest(wire.Builder(nil).Bytes(13, nil)),
		"empty indexes":          section(wire.Builder(nil).Bytes(1, nil)),
		"indexes":                section(wire.Builder(nil).Bytes(1, wire.Builder(nil).Bytes(1, NewUUID().Message()))),
		"files of an index":      section(wire.Builder(nil).Bytes(1, wire.Builder(bytes.Repeat(wire.Builder(nil).Bytes(10, nil), 50)).Bytes(1, NewUUID().Message()))),
		"appended fragments":     transaction(Append, wire.Builder(nil).Bytes(1, wire.Builder(nil).Uint(4, 1))),
		"groups of nothing":      transaction(Rewrite, wire.Builder(nil).Bytes(3, nil)),
		"removed fragments":      transaction(Update, wire.Builder(nil).UintAlways(1, 1)),
		"empty removed indexes":  transaction(CreateIndex, wire.Builder(nil).Bytes(2, nil)),
		"merged of other shards": transaction(UpdateMemWALState, wire.Builder(nil).Bytes(1, (Compacted{NewUUID(), 1}).Message())),
	} {
		if times := allocated(t, parse) / size; times > 32 {
			t.Errorf("%s: memory of %d times the size", name, times)
		}
	}
}

// allocated is what a call that may fail allocates in all, in bytes.
func allocated(t *testing.T, call func() error) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := call()
	runtime.ReadMemStats(&after)
	if !allowed(err) {
		t.Error(err)
	}
	return after.TotalAlloc - before.TotalAlloc
}
