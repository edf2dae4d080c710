package serde

// Accept moves past token if it is what comes next, white space aside, and
// reports whether it did. It serves readers that take more than JSON in one
// place, such as a bare NaN, and is not held back by what a value may be.
func (s *Scanner) Accept(token string) bool {
	s.space()
	if s.err != nil || !hasPrefix(s.b[s.pos:], token) {
		return false
	}
	s.pos += len(token)
	return true
}
