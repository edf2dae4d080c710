package server

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestACutErrorKeepsItsFirstLineAndItsEnd(t *testing.T) {
	long := "exit status 1\n" + strings.Repeat("  File \"träin.py\", in main\n", 100) + "RuntimeError: out of memory"
	for name, c := range map[string]struct{ text, first, end string }{
		"one line":        {strings.Repeat("ä", 301), strings.Repeat("ä", 300) + "…", "…"},
		"short":           {"exit status 1\nno luck", "exit status 1", "\nno luck"},
		"a traceback":     {long, "exit status 1", "\nRuntimeError: out of memory"},
		"two long lines":  {strings.Repeat("a", 400) + "\n" + strings.Repeat("b", 400), strings.Repeat("a", 100) + "…", "b"},
		"a long end":      {"exit status 1\n" + strings.Repeat("b", 400) + "!", "exit status 1", "b!"},
		"a long first":    {strings.Repeat("a", 400) + "\nend", strings.Repeat("a", 100) + "…", "\nend"},
		"nothing follows": {"exit status 1\n", "exit status 1", "\n"},
	} {
		got := cutError(c.text, 300)
		if first, _, _ := strings.Cut(got, "\n"); first != c.first || !strings.HasSuffix(got, c.end) || utf8.RuneCountInString(got) > 301 {
			t.Errorf("%s: %q", name, got)
		}
	}
}
