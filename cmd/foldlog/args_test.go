package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
)

func TestNegativeNumbersAreOperandsWhereTheyMayBe(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"values", []string{"study", "tell", "s", "0", "-1", "-.5", "-inf", "-NaN", "-1e3"}, []string{"study", "tell", "s", "0", " -1", " -.5", " -inf", " -NaN", " -1e3"}},
		{"flags stay", []string{"--quiet", "study", "report", "-q", "--study", "x", "s", "-5"}, []string{"--quiet", "study", "report", "-q", "--study", "x", "s", " -5"}},
		{"words stay", []string{"study", "tell", "s", "-information", "-"}, []string{"study", "tell", "s", "-information", "-"}},
		{"other commands have none", []string{"tail", "s", "-n", "-1"}, []string{"tail", "s", "-n", "-1"}},
		{"nor has an unknown one", []string{"stdy", "-1"}, []string{"stdy", "-1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			given := slices.Clone(tc.args)
			got := cmdline.ShieldNumbers(newRootCmd(&cli.Env{}, nil), tc.args)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if !slices.Equal(given, tc.args) {
				t.Error("the given arguments changed")
			}
		})
	}
}
