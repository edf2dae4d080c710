package server

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestNamesAreFoundByLettersAndByRegularExpressions(t *testing.T) {
	text, err := os.ReadFile("testdata/find.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Typed, Name string
		Found       bool
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 100 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		found := finder(c.Typed)
		if got := found(c.Name); got != c.Found {
			t.Errorf("%q in %q: %v", c.Typed, c.Name, got)
		}
		if got := found(c.Name); got != c.Found {
			t.Errorf("%q in %q again: %v", c.Typed, c.Name, got)
		}
	}
}

// What is done to be quick changes nothing of what is found.
func FuzzFinder(f *testing.F) {
	f.Add("layer1[0-9]/.*norm", "Layer12/w3/norm")
	f.Add("(run|trial)s?", "runs")
	f.Fuzz(func(t *testing.T, typed, name string) {
		want := strings.Contains(strings.ToLower(name), strings.ToLower(typed))
		if isPattern(typed) {
			if re, err := regexp.Compile("(?i)" + typed); err == nil {
				want = want || re.MatchString(name)
			}
		}
		if got := finder(typed)(name); got != want {
			t.Errorf("%q in %q: %v", typed, name, got)
		}
	})
}

func BenchmarkFinder(b *testing.B) {
	var names []string
	for i := range 5000 { // more than are kept
		names = append(names, "a description of run "+strconv.Itoa(i)+", of about as many letters as people write there")
	}
	for what, typed := range map[string]string{"letters": "of a run", "expression": "^a .*(run|trial)s?$", "lacking": "layer1[0-9]/.*norm", "largest": ".*[a-z]{100}.*[a-z]{100}"} {
		found := finder(typed)
		b.Run(what, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				found(names[i%len(names)])
			}
		})
	}
}
