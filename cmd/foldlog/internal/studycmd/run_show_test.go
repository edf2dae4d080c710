package studycmd

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTroubleThatComesOftenIsToldNowAndThen(t *testing.T) {
	var tr troubles
	var told []string
	for ms := 0; ms <= 11_000; ms += 1000 {
		if text := tr.text("no space", time.UnixMilli(int64(ms))); text != "" {
			told = append(told, text)
		}
	}
	want := []string{"no space", "no space (and 4 more since the last)", "no space (and 4 more since the last)"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
