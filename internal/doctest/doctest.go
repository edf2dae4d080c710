// Package doctest runs the examples in documents. A fenced block of language
// "console" is a session: lines that begin with "$ " are commands, what follows
// up to the next one is what they print, standard output and error together.
//
//	```console
//	$ foldlog cat search.atj | head -n 1
//	{"record":"header",…}
//	```
//
// In expected output "…" stands for any text within a line and a line "..." for
// any lines. A comment "# exit 1" behind a command expects that status; every
// other command must end with 0. A line that begins with "> ", or is ">",
// continues the command before it.
// The sessions of a document share one directory, in order.
package doctest

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Command is one command of a session and what it must print.
type Command struct {
	// Line is where it stands in the document, from 1.
	Line int
	// Script is run by sh.
	Script string
	// Status is the expected exit status.
	Status int
	// Want is the expected output, a line each. Nil accepts anything.
	Want []string
}

var exitComment = regexp.MustCompile(`\s+# exit (\d+)$`)

// Parse returns the commands of a document's sessions. A session without any
// line of output accepts any output.
func Parse(text string) []Command {
	var all []Command
	inside, first := false, 0
	for i, line := range strings.Split(text, "\n") {
		switch {
		case !inside && strings.TrimSpace(line) == "```console":
			inside, first = true, len(all)
		case inside && strings.TrimSpace(line) == "```":
			inside = false
		case inside && strings.HasPrefix(line, "$ "):
			all = append(all, newCommand(i+1, line[2:]))
		case inside && len(all) > first && (line == ">" || strings.HasPrefix(line, "> ")) && all[len(all)-1].Want == nil:
			all[len(all)-1].Script += "\n" + strings.TrimPrefix(line[1:], " ")
		case inside && len(all) > first:
			last := &all[len(all)-1]
			last.Want = append(last.Want, line)
		}
	}
	return all
}

func newCommand(line int, script string) Command {
	c := Command{Line: line, Script: script}
	if m := exitComment.FindStringSubmatchIndex(script); m != nil {
		c.Status, _ = strconv.Atoi(script[m[2]:m[3]])
		c.Script = script[:m[0]]
	}
	return c
}

// Run runs the command in a directory with an environment, and returns what was
// not as the document says.
func (c Command) Run(dir string, env []string) error {
	cmd := exec.Command("sh", "-c", c.Script)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		return fmt.Errorf("line %d: %w", c.Line, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != c.Status {
		return fmt.Errorf("line %d: $ %s\nexit status %d, want %d:\n%s", c.Line, c.Script, got, c.Status, out)
	}
	got := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if c.Want != nil && !match(trimLast(c.Want), got) {
		return fmt.Errorf("line %d: $ %s\nprints:\n%s\nand not:\n%s", c.Line, c.Script, strings.Join(got, "\n"), strings.Join(c.Want, "\n"))
	}
	return nil
}

func trimLast(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// match compares line by line; "..." matches any number of lines.
func match(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0 || len(got) == 1 && got[0] == ""
	}
	if want[0] == "..." {
		for i := 0; i <= len(got); i++ {
			if match(want[1:], got[i:]) {
				return true
			}
		}
		return len(want) == 1
	}
	return len(got) > 0 && matchLine(want[0], got[0]) && match(want[1:], got[1:])
}

func matchLine(want, got string) bool {
	parts := strings.Split(strings.TrimRight(want, " "), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(strings.TrimRight(got, " "))
}
