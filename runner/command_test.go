package runner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlaceholders(t *testing.T) {
	given := values{texts: map[string]string{"lr": "0.01", "opt": "adam w"}, absent: map[string]bool{"beta": true}}
	for _, c := range []struct {
		name string
		args []string
		want []string
		err  string
	}{
		{"none", []string{"train", "x"}, []string{"train", "x"}, ""},
		{"whole argument", []string{"train", "{lr}"}, []string{"train", "0.01"}, ""},
		{"within an argument", []string{"--lr={lr},{opt}!"}, []string{"--lr=0.01,adam w!"}, ""},
		{"doubled brace", []string{`{{"lr": {lr}}`}, []string{`{"lr": 0.01}`}, ""},
		{"doubled braces", []string{`{{"lr": {{"x": {lr}}}}}`}, []string{`{"lr": {"x": 0.01}}`}, ""},
		{"lone closing brace", []string{"a}b"}, []string{"a}b"}, ""},
		{"empty argument", []string{"train", ""}, []string{"train", ""}, ""},
		{"a value is not searched again", []string{"{{lr}"}, []string{"{lr}"}, ""},
		{"absent parameter", []string{"b={beta}"}, []string{"b="}, ""},
		{"absent parameter with a text", []string{"b={beta:-0.9}", "{lr:-1}", "{beta:-}"}, []string{"b=0.9", "0.01", ""}, ""},
		{"unknown name with a text", []string{"{momentum:-1}"}, nil, `"momentum"`},
		{"unknown name", []string{"{momentum}"}, nil, `"momentum"`},
		{"unclosed", []string{"{lr"}, nil, "{{"},
		{"empty name", []string{"{}"}, nil, "{{"},
		{"no command", nil, nil, "no command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := func() ([]string, error) {
				cmd, err := parseCommand(c.args)
				if err != nil {
					return nil, err
				}
				return cmd.expand(given)
			}()
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want one about %s", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzPlaceholders(f *testing.F) {
	for _, s := range []string{"{lr}", "{{", "a{b}c}", "{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		cmd, err := parseCommand([]string{arg})
		if err != nil {
			return
		}
		given := map[string]string{}
		for _, n := range cmd.names() {
			given[n] = "{" + n + "}"
		}
		got, err := cmd.expand(values{texts: given})
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != arg && !strings.Contains(arg, "{{") && !strings.Contains(arg, "}}") && !strings.Contains(arg, ":-") {
			t.Errorf("%q became %q", arg, got[0])
		}
	})
}
