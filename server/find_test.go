package server

import "testing"

func TestNamesAreFoundByLettersAndByRegularExpressions(t *testing.T) {
	cases := []struct {
		typed, name string
		found       bool
	}{
		{"", "anything", true},
		{"LOSS", "val/loss", true},
		{"acc", "val/loss", false},
		{"^val", "val/loss", true},
		{"^loss", "val/loss", false},
		{"loss|acc", "val/Accuracy", true},
		{"layer1[0-9]/.*norm", "layer12/w3/norm", true},
		{"layer1[0-9]/.*norm", "layer2/w3/norm", false},
		{"run (1)", "Run (1)", true},
		{"lr=1e+3", "lr=1E+3", true},
		{"c++", "C++ build", true},
		{"[x", "a[x]", true},
		{"(?=x)", "x", false},
	}
	for _, c := range cases {
		if got := finder(c.typed)(c.name); got != c.found {
			t.Errorf("%q in %q: %v", c.typed, c.name, got)
		}
	}
}
