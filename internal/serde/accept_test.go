package serde

import "testing"

func TestAcceptTakesATokenThatIsNotJSON(t *testing.T) {
	s := NewScanner([]byte(`{"v": NaN,"w":1}`))
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "v" && !s.Accept("NaN") {
			t.Fatal("NaN was not accepted")
		} else if string(s.Key()) == "w" && (s.Accept("NaN") || s.Uint64() != 1) {
			t.Fatal("what follows was not left alone")
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	if s.Object(); s.Accept("") {
		t.Fatal("accepted after a fault")
	}
}
