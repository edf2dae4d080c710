package datagen

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// outline is a tree as indented lines.
func outline(nodes []*Node, indent string) string {
	var b strings.Builder
	for _, n := range nodes {
		b.WriteString(indent + n.Item.ID)
		if n.Orphan {
			b.WriteString(" (orphan)")
		}
		b.WriteString("\n" + outline(n.Children, indent+" "))
	}
	return b.String()
}

func TestTreesAreInTheOrderOfStepsAndIndexes(t *testing.T) {
	var items []*Item
	for _, p := range [][2]string{{"d", ""}, {"d/map:10", "d"}, {"d/map:9", "d"}, {"d/map:9/crop:0", "d/map:9"}, {"d/gone:0/crop:1", "d/gone:0"},
		{"a", "b"}, {"b", "a"}, {"self", "self"}} {
		items = append(items, &Item{ID: p[0], Parent: p[1], Root: "d"})
	}
	want := "d\n d/map:9\n  d/map:9/crop:0\n d/map:10\na (orphan)\nb (orphan)\nd/gone:0/crop:1 (orphan)\nself (orphan)\n"
	if got := outline(Tree(items), ""); got != want {
		t.Errorf("%s", got)
	}
	slices.Reverse(items)
	if got := outline(Tree(items), ""); got != want {
		t.Errorf("the other way around: %s", got)
	}
}

func TestIdentitiesAreOrdered(t *testing.T) {
	id := rapid.StringOfN(rapid.SampledFrom([]rune("019a/:")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := id.Draw(t, "a"), id.Draw(t, "b"), id.Draw(t, "c")
		if CompareIDs(a, b) != -CompareIDs(b, a) || (CompareIDs(a, b) == 0) != (a == b) {
			t.Fatalf("%q and %q", a, b)
		}
		if CompareIDs(a, b) <= 0 && CompareIDs(b, c) <= 0 && CompareIDs(a, c) > 0 {
			t.Fatalf("%q, %q, %q", a, b, c)
		}
	})
	if CompareIDs("digit-9", "digit-10") >= 0 || CompareIDs("digit-09", "digit-9") >= 0 || CompareIDs("a", "a/x:0") >= 0 {
		t.Error("digits are compared as text")
	}
}
