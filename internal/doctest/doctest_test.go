package doctest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func doc(lines ...string) string {
	return strings.ReplaceAll(strings.Join(lines, "\n"), "'''", "```")
}

func TestParse(t *testing.T) {
	got := Parse(doc("text", "'''console", "$ a", "$ b | c # exit 1", "one", "two", "$ d \\", "> e", "'''", "$ not a command", "'''sh", "$ nor this", "'''"))
	want := []Command{
		{Line: 3, Script: "a"},
		{Line: 4, Script: "b | c", Status: 1, Want: []string{"one", "two"}},
		{Line: 7, Script: "d \\\ne"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name string
		cmd  Command
		want string
	}{
		{"output matches", Command{Script: "echo one; echo two >&2", Want: []string{"one", "two"}}, ""},
		{"any text in a line", Command{Script: "echo took 12 ms", Want: []string{"took … ms"}}, ""},
		{"any lines", Command{Script: "seq 9", Want: []string{"1", "...", "9"}}, ""},
		{"no line is any lines", Command{Script: "seq 2", Want: []string{"1", "...", "2"}}, ""},
		{"other output", Command{Script: "echo one", Want: []string{"two"}}, "and not:"},
		{"more output", Command{Script: "seq 3", Want: []string{"1", "2"}}, "and not:"},
		{"less output", Command{Script: "seq 1", Want: []string{"1", "2"}}, "and not:"},
		{"expected status", Command{Script: "exit 3", Status: 3}, ""},
		{"other status", Command{Script: "exit 3"}, "exit status 3, want 0"},
		{"regexp characters are text", Command{Script: "echo 'a.b'", Want: []string{"a+b"}}, "and not:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cmd.Run(t.TempDir(), os.Environ())
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
