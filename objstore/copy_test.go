package objstore

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestObjectsAreCopiedInParts(t *testing.T) {
	for _, size := range []int64{0, 1, CopyPart, CopyPart + 1, 2*CopyPart + 3} {
		from, to := NewMemory(), NewMemory()
		data := bytes.Repeat([]byte("seven77"), int(size/7)+1)[:size]
		if err := from.Put(t.Context(), "dir/object", data); err != nil {
			t.Fatal(err)
		}
		var told, most int64
		watched := NewFault(from, func(c Call) Fate {
			if c.Op == "get range" || c.Op == "get" {
				most++
			}
			return Fate{}
		})
		if err := CopyTo(t.Context(), to, watched, Info{Key: "dir/object", Size: size}, func(n int64) { told += n }); err != nil {
			t.Fatal(err)
		}
		got, err := to.Get(t.Context(), "dir/object", size)
		if err != nil || !bytes.Equal(got, data) || told != size {
			t.Errorf("%d bytes became %d, told of %d: %v", size, len(got), told, err)
		}
		if want := max(1, (size+CopyPart-1)/CopyPart); most != want {
			t.Errorf("%d bytes were read in %d parts", size, most)
		}
	}
}

// TestACopyOfAnObjectThatEndsEarlyIsNone has an object that was replaced by a shorter one.
func TestACopyOfAnObjectThatEndsEarlyIsNone(t *testing.T) {
	from, to := NewMemory(), NewMemory()
	if err := from.Put(t.Context(), "a", make([]byte, CopyPart+5)); err != nil {
		t.Fatal(err)
	}
	if err := CopyTo(t.Context(), to, from, Info{Key: "a", Size: CopyPart + 6}, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	if _, err := to.Stat(t.Context(), "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("there is a copy: %v", err)
	}
	if err := CopyTo(t.Context(), to, from, Info{Key: "b", Size: 1}, nil); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}
