package runner

import (
	"testing"

	"github.com/foldlog/foldlog/study"
)

func TestOnlyFailuresInARowEndARun(t *testing.T) {
	events := map[rune]Event{
		'f': {Kind: Finished, State: study.Failed.String(), Text: "exit status 3\nout of memory"},
		'c': {Kind: Finished, State: study.Complete.String()},
		'p': {Kind: Finished, State: study.Pruned.String()},
		's': {Kind: FailedStale}, 'r': {Kind: Retried}, 'g': {Kind: GivenBack}, 't': {Kind: Started},
	}
	for _, c := range []struct {
		max   uint64
		story string
		ends  int // after which event, 0 never
	}{
		{3, "fff", 3}, {3, "ffcff", 0}, {3, "ffpff", 0}, {3, "tftftfc", 6}, {3, "ffssrgf", 7},
		{3, "ffs", 0}, {0, "ffffffff", 0}, {1, "cf", 2}, {2, "ffffff", 2},
	} {
		ends, ended := 0, 0
		s := streak{max: c.max, end: func() { ended++ }}
		for i, kind := range c.story {
			e := events[kind]
			e.Number = uint64(i)
			if s.count(&e); ended == 1 && ends == 0 {
				ends = i + 1
			}
		}
		if ends != c.ends || ended > 1 || (s.err() != nil) != (c.ends > 0) {
			t.Errorf("%q, at most %d: ended %d times, first after %d, want %d; %v", c.story, c.max, ended, ends, c.ends, s.err())
		}
		if f := s.found; f != nil && (f.Count != c.max || f.Last != uint64(c.ends-1) || f.Reason != "exit status 3") {
			t.Errorf("%q: %+v", c.story, f)
		}
	}
}
