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
// has the same (ui/src/lib/find.ts), and testdata/find.json holds both to it. What is
// returned is for one goroutine.
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
		in := func(l string) bool { return strings.Contains(lower, l) }
		for _, choice := range needed {
			if !slices.ContainsFunc(choice, in) && isASCII(name) {
				return false
			}
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

// literalsOf are letters that a name has which matches, as far as they are known, one of
// each choice: to look for them costs less than to match. They are ASCII and lower case.
func literalsOf(tree *syntax.Regexp) (choices [][]string) {
	switch tree.Op {
	case syntax.OpLiteral:
		if l := strings.ToLower(string(tree.Rune)); isASCII(l) {
			return [][]string{{l}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(tree.Sub[0])
	case syntax.OpRepeat:
		if tree.Min > 0 {
			return literalsOf(tree.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range tree.Sub {
			choices = append(choices, literalsOf(sub)...)
		}
	case syntax.OpAlternate:
		var one []string
		for _, sub := range tree.Sub {
			of := literalsOf(sub)
			if len(of) == 0 {
				return nil
			}
			one = append(one, of[0]...)
		}
		return [][]string{one}
	}
	return choices
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
