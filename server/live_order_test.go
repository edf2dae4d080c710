package server

import (
	"fmt"
	"testing"
)

// TestMessagesComeInTheOrderOfTheChanges has things that go and come back at once: what
// is told last of each is what became of it last.
func TestMessagesComeInTheOrderOfTheChanges(t *testing.T) {
	b := newBroker(1, new(stats))
	const things = 50
	for i := range things {
		kinds := []string{"study-gone", "study"}
		if i%2 == 1 {
			kinds = []string{"study", "study-gone"}
		}
		for _, kind := range kinds {
			b.change(kind, fmt.Sprint(i), func() (any, bool) { return i, true })
		}
	}
	b.tell()
	list, _, _ := b.since(0)
	last := map[string]string{}
	for _, m := range list {
		last[string(m.data)] = m.kind
	}
	for i := range things {
		want := []string{"study", "study-gone"}[i%2]
		if got := last[fmt.Sprint(i)]; got != want {
			t.Errorf("thing %d: %q was told last, want %q", i, got, want)
		}
	}
}
