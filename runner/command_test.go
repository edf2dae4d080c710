package runner

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlaceholders(t *testing.T) {
	values := map[string]string{"lr": "0.01", "opt": "adam w"}
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
				return cmd.expand(values)
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
		values := map[string]string{}
		for _, n := range cmd.names() {
			values[n] = "{" + n + "}"
		}
		got, err := cmd.expand(values)
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != arg && !strings.Contains(arg, "{{") && !strings.Contains(arg, "}}") {
			t.Errorf("%q became %q", arg, got[0])
		}
	})
}

func TestTailKeepsWholeLinesAtTheEnd(t *testing.T) {
	var tl tail
	for i := range 10_000 {
		if _, err := tl.Write([]byte("line " + strings.Repeat("é", i%7) + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	tl.Write([]byte("the end\x00\xff"))
	got := tl.String()
	if len(got) > tailBytes+8 || !strings.HasPrefix(got, "line ") || !strings.HasSuffix(got, "the end\x00\uFFFD") {
		t.Errorf("%d bytes, from %.20q to %q", len(got), got, got[len(got)-12:])
	}
}
