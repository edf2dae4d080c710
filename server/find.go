package server

import (
	"regexp"
	"strings"
)

// finder is the rule by which every list finds what was typed: a name is found if it
// has the letters, or matches them as a regular expression, whatever the case. What is
// no regular expression is letters alone. The dashboard has the same (ui/src/lib/find.ts).
func finder(typed string) func(name string) bool {
	letters := strings.ToLower(typed)
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), letters) }
	wanted, err := regexp.Compile("(?i)" + typed)
	if err != nil || regexp.QuoteMeta(typed) == typed {
		return has
	}
	return func(name string) bool { return wanted.MatchString(name) || has(name) }
}
