package server

import (
	"strings"
	"testing"
)

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
		{"x.{390}y", strings.Repeat("x", 391) + "y", true},
		{"x.{1000}y", strings.Repeat("x", 1001) + "y", false},
		{"x.{1000}y", "an X.{1000}y", true},
	}
	for _, c := range cases {
		if got := finder(c.typed)(c.name); got != c.found {
			t.Errorf("%q in %q: %v", c.typed, c.name, got)
		}
	}
}

func BenchmarkFinder(b *testing.B) {
	name := "a description of a run, of about as many letters as people write there"
	for what, typed := range map[string]string{"letters": "of a run", "expression": "^a .*(run|trial)s?$", "largest": ".*x{190}.*y{190}"} {
		found := finder(typed)
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				found(name)
			}
		})
	}
}
