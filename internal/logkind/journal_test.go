package logkind

import (
	"testing"

	"github.com/foldlog/foldlog/remote"
)

func TestJournalsAreReplayedForAListWhereThatIsSoonDone(t *testing.T) {
	away := World{Server: &remote.Client{}}
	for _, c := range []struct {
		what  string
		world World
		size  int64
		deep  bool
		want  bool
	}{
		{"small", World{}, 4 << 20, false, true},
		{"large", World{}, 4<<20 + 1, false, false},
		{"large, deep", World{}, 1 << 40, true, true},
		{"small and away", away, 256 << 10, false, true},
		{"large and away", away, 256<<10 + 1, false, false},
		{"large and away, deep", away, 1 << 40, true, true},
	} {
		if got := (journalKind{c.world}).whole(c.size, SummarizeOptions{Deep: c.deep}); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}
