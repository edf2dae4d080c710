package cli

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAreInTheOrderOfPeople(t *testing.T) {
	want := []string{
		"", "0", "01", "1", "2", "10", "a", "a/9", "a/10", "a/b", "a-1", "a.atj", "a.atj.d", "a1", "a1b2", "a1b10", "a2", "a10",
		"a00000000000000000000000000000011", "a99999999999999999999999999999999999", "b", "é1", "é10",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, CompareNames)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func FuzzCompareNames(f *testing.F) {
	f.Add("run-9", "run-10", "run-010")
	f.Add("a", "a/", "a0")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if CompareNames(a, b) != -CompareNames(b, a) || (CompareNames(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q: %d and %d", a, b, CompareNames(a, b), CompareNames(b, a))
		}
		if CompareNames(a, b) < 0 && CompareNames(b, c) < 0 && CompareNames(a, c) >= 0 {
			t.Errorf("%q < %q < %q", a, b, c)
		}
	})
}
