package child

import (
	"strings"
	"testing"
)

func TestTailKeepsWholeLinesAtTheEnd(t *testing.T) {
	var tl Tail
	for i := range 10_000 {
		if _, err := tl.Write([]byte("line " + strings.Repeat("é", i%7) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	tl.Write([]byte("the end\x00\xff"))
	got := tl.String()
	if len(got) > tailBytes+8 || !strings.HasPrefix(got, "line ") || !strings.HasSuffix(got, "the end\x00\uFFFD") {
		t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-12:])
	}
}
