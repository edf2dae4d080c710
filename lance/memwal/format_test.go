package memwal

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
	"github.com/foldlog/foldlog/objstore"
)

func TestKeyHashesAreThoseOfLance(t *testing.T) {
	for key, hash := range map[string]uint64{
		"": 0xda5735e7144b8d9f, "a": 0x2167e9c523e0fc15,
		"ev-000200": 0xb318c82d531d5a2f, "event_id": 0xcceb6f116a6b833a,
	} {
		if got := keyHash([]byte(key)); got != hash {
			t.Errorf("%q: %x, want %x", key, got, hash)
		}
	}
}

func TestReversedNamesCountUp(t *testing.T) {
	for n, start := range map[uint64]string{1: "1000", 2: "0100", 3: "1100", 1 << 63: "0000"} {
		name := format.ReversedName(n, ".binpb")
		if name[:4] != start || len(name) != 70 {
			t.Errorf("%d is named %s", n, name)
		}
		if got, ok := parseReversed(name, ".binpb"); !ok || got != n {
			t.Errorf("%s is read as %d", name, got)
		}
		for _, bad := range []string{name + ".tmp.1f", name[1:], "x" + name[1:], name[:64] + ".arrow"} {
			if _, ok := parseReversed(bad, ".binpb"); ok {
				t.Errorf("%s was read", bad)
			}
		}
	}
}

func TestUnknownFieldsOfAShardAreKept(t *testing.T) {
	unknown := wire.Builder(nil).Bytes(14, []byte("entries")).Uint(99, 5)
	id := NewID()
	s := &state{version: 3, epoch: 2, next: 4, id: id, extra: unknown, generations: []generation{{number: 3, dir: "0011aabb_gen_3", rows: 7, extra: wire.Builder(nil).Uint(50, 1)}}}
	got, err := parseState(s.message())
	ok(t, err)
	if d := cmp.Diff(s, got, cmp.AllowUnexported(state{}, generation{})); d != "" {
		t.Error(d)
	}
	if string(s.message()) == string(got.message()) {
		t.Error("two manifests of one content have the same bytes")
	}
}

func TestHostileShardManifestsAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"no message":         {0xff, 0xff, 0xff},
		"short id":           wire.Builder(nil).Uint(1, 1).Bytes(11, wire.Builder(nil).Bytes(1, []byte("short"))),
		"generation outside": wire.Builder(nil).Uint(1, 1).Bytes(8, wire.Builder(nil).Uint(1, 1).String(2, "../other")),
		"another's":          (&state{version: 9, id: ID{1}}).message(),
	} {
		s := objstore.NewMemory()
		ok(t, s.Put(t.Context(), manifestKey(ID{1}, 1), b))
		_, err := readState(t.Context(), s, ID{1}, 1)
		var corrupt *lance.CorruptError
		if !errors.As(err, &corrupt) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzShardManifest(f *testing.F) {
	f.Add((&state{version: 1, epoch: 1, next: 2, generations: []generation{{number: 1, dir: "00112233_gen_1"}}}).message())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseState(b)
		if err != nil {
			return
		}
		again, err := parseState(s.message())
		ok(t, err)
		if d := cmp.Diff(s, again, cmp.AllowUnexported(state{}, generation{})); d != "" {
			t.Error(d)
		}
	})
}

func FuzzWAL(f *testing.F) {
	b, err := sentinelBytes(3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := parseWAL(b)
		if err != nil && !errors.Is(err, lance.ErrCorrupt) {
			t.Errorf("error %v is not of corruption", err)
		}
		if err == nil && e == nil {
			t.Error("no entry and no error")
		}
	})
}
