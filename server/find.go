package server

import (
	"regexp"
	"regexp/syntax"
	"strings"
)

// mostInstructions bounds a regular expression that is typed: what it costs is that
// times the letters of all names, and x{1000} alone is a thousand.
const mostInstructions = 400

// finder is the rule by which every list finds what was typed: a name is found if it
// has the letters, or matches them as a regular expression, whatever the case. What is
// no regular expression, or too large a one, is letters alone. The dashboard has the
// same (ui/src/lib/find.ts).
func finder(typed string) func(name string) bool {
	letters := strings.ToLower(typed)
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), letters) }
	if regexp.QuoteMeta(typed) == typed || !bounded("(?i)"+typed) {
		return has
	}
	wanted, err := regexp.Compile("(?i)" + typed)
	if err != nil {
		return has
	}
	return func(name string) bool { return wanted.MatchString(name) || has(name) }
}

// bounded tells whether an expression is one, and small enough.
func bounded(expr string) bool {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return false
	}
	prog, err := syntax.Compile(tree.Simplify())
	return err == nil && len(prog.Inst) <= mostInstructions
}
