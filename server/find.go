package server

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// finder is the rule by which every list finds what was typed: a name is found if it
// has the letters, or matches them as a regular expression, whatever the case. What is
// no expression of the language that isPattern tells is letters alone. The dashboard
// has the same (ui/src/lib/find.ts), and testdata/find.json holds both to it.
func finder(typed string) func(name string) bool {
	letters := strings.ToLower(typed)
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), letters) }
	if regexp.QuoteMeta(typed) == typed || !isPattern(typed) {
		return has
	}
	tree, err := syntax.Parse("(?i)"+typed, syntax.Perl)
	if err != nil {
		return has
	}
	wanted, needed := regexp.MustCompile("(?i)"+typed), literalsOf(tree)
	const mostKnown = 1000 // descriptions and tags, which many runs share
	known := map[string]bool{}
	return func(name string) bool {
		lower := strings.ToLower(name)
		if strings.Contains(lower, letters) {
			return true
		}
		if needed != nil && isASCII(name) && !slices.ContainsFunc(needed, func(l string) bool { return strings.Contains(lower, l) }) {
			return false
		}
		found, ok := known[name]
		if !ok {
			if found = wanted.MatchString(name); len(known) < mostKnown {
				known[name] = found
			}
		}
		return found
	}
}

// The language of the expressions that are typed is what Go and browsers understand
// alike, and what costs both little: Go by the counts of its repetitions, a browser by
// how many there are, and without bound where one is in another.
const (
	longestPattern  = 200 // in characters
	mostRepetitions = 6
	mostCounted     = 200 // of all counts of repetitions together
)

var (
	patternTokens = regexp.MustCompile(`(?s)\\[dDwWsSbB!-/:-@\[-` + "`" + `{-~]|\[\^?(?:[^\]\[\\]|\\[dws!-/:-@\[-` + "`" + `{-~])+\]|\((?:\?:)?|[*+?]\??|\{[0-9]+(?:,[0-9]*)?\}\??|.`)
	numbers       = regexp.MustCompile(`[0-9]+`)
	// A set cannot be the end of a range.
	rangeOfSet = regexp.MustCompile(`^\[.*(?:\\[dws]-[^\]]|[^\[]-\\[dws])`)
)

// What a repetition can be of. To repeat a group that repeats or chooses is costly.
type atom int

const (
	noAtom atom = iota
	character
	plainGroup
	costlyGroup
)

// patternScan is what was seen of an expression, token by token.
type patternScan struct {
	last                 atom
	costly               []bool // of each open group, the whole being the first
	repetitions, counted int
}

// isPattern tells whether what was typed is an expression of the language.
func isPattern(typed string) bool {
	if utf8.RuneCountInString(typed) > longestPattern {
		return false
	}
	s := patternScan{costly: []bool{false}}
	for _, t := range patternTokens.FindAllString(typed, -1) {
		if !s.token(t) {
			return false
		}
	}
	return len(s.costly) == 1 && s.repetitions <= mostRepetitions && s.counted <= mostCounted
}

func (s *patternScan) token(t string) bool {
	before, inner := s.last, len(s.costly)-1
	s.last = noAtom
	switch c := t[0]; {
	case t == `\` || t == "[" || t == "[^]" || c == '[' && rangeOfSet.MatchString(t):
		return false
	case c == '(':
		s.costly = append(s.costly, false)
	case c == ')':
		if inner == 0 {
			return false
		}
		s.last = plainGroup
		if s.costly[inner] {
			s.last, s.costly[inner-1] = costlyGroup, true
		}
		s.costly = s.costly[:inner]
	case c == '|':
		s.costly[inner] = true
	case t == "^" || t == "$" || t == `\b` || t == `\B`:
	case c == '*' || c == '+' || c == '?' || c == '{' && len(t) > 1:
		if before == noAtom || before == costlyGroup && c != '?' || before != character && c == '{' {
			return false
		}
		s.repetitions++
		s.counted += countOf(t)
		s.costly[inner] = true
	default:
		s.last = character
	}
	return true
}

// countOf is the larger number of a token such as {2,5}.
func countOf(t string) int {
	most := 0
	for _, digits := range numbers.FindAllString(t, -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return mostCounted + 1
		}
		most = max(most, n)
	}
	return most
}

// literalsOf are letters of which a name that matches has one, as far as they are known:
// to look for them costs less than to match. They are ASCII and lower case.
func literalsOf(tree *syntax.Regexp) []string {
	switch tree.Op {
	case syntax.OpLiteral:
		if l := strings.ToLower(string(tree.Rune)); isASCII(l) {
			return []string{l}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return literalsOf(tree.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range tree.Sub {
			if l := literalsOf(sub); shortest(l) > shortest(best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			l := literalsOf(sub)
			if l == nil {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest of some literals.
func shortest(list []string) int {
	n := 0
	for i, l := range list {
		if i == 0 || len(l) < n {
			n = len(l)
		}
	}
	return n
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
