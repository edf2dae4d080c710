package datagen

import (
	"errors"
	"strings"
	"testing"
)

// The identities are those of Python's uuid.uuid5(uuid.NAMESPACE_OID, ...).
func TestEventIdentitiesAreVersion5UUIDs(t *testing.T) {
	for _, c := range []struct {
		item, checkpoint string
		ordinal          int
		want             string
	}{
		{"digit-7", "c-1", 0, "9439a3d1-ac4e-5803-a8c3-ead14fb63fc1"},
		{"digit-7/perturb:3", "0192f0c1", 12, "36ff54c4-855f-52af-9a6d-13003e309159"},
		{"größe", "ü", 100000, "68856eb4-1ee1-5613-8bb7-1fb52ed4dc3c"},
		{"", "", 0, "7ea6c277-02e6-57ed-bb1b-2ef95e7a07fb"},
	} {
		if got := EventID(c.item, c.checkpoint, c.ordinal); got != c.want {
			t.Errorf("%q %q %d: %s, want %s", c.item, c.checkpoint, c.ordinal, got, c.want)
		}
	}
}

func TestSubItemsAreTakenApartAgain(t *testing.T) {
	id := SubItem(SubItem("digit/7", "perturb", 3), "crop", 0)
	if id != "digit/7/perturb:3/crop:0" {
		t.Fatal(id)
	}
	parent, step, index, ok := SplitSubItem(id)
	if !ok || parent != "digit/7/perturb:3" || step != "crop" || index != 0 {
		t.Error(parent, step, index, ok)
	}
	for _, no := range []string{"", "digit", "/a:1", "a/b", "a/:1", "a/b:", "a/b:01", "a/b:x", "a:1"} {
		if _, _, _, ok := SplitSubItem(no); ok {
			t.Errorf("%q was taken apart", no)
		}
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "digits-v2", "A_1.b", strings.Repeat("x", MaxNameBytes)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", ".", "..", ".a", "a/b", "a b", "ä", "a\x00", strings.Repeat("x", MaxNameBytes+1)} {
		if err := CheckName(bad); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if p := Path("digits", "first"); p != "datagen_checkpoints/digits/first/log.lance" {
		t.Error(p)
	}
}
