package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestPick(t *testing.T) {
	module := func(v string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: v}} }
	for _, tc := range []struct {
		name   string
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		{"the linker wins", "v1.2.3", module("v9.9.9"), "1.2.3"},
		{"else the module version", "", module("v0.4.0"), "0.4.0"},
		{"a working tree is dev", "", module("(devel)"), "dev"},
		{"an unstamped build is dev", "", module(""), "dev"},
		{"no build information is dev", "", nil, "dev"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := pick(tc.linked, tc.info); got != tc.want {
				t.Errorf("pick(%q) = %q, want %q", tc.linked, got, tc.want)
			}
		})
	}
}

func TestProgramNamesFoldlogAndItsNumber(t *testing.T) {
	if got, want := Program(), "foldlog-"+Number(); got != want {
		t.Errorf("Program() = %q, want %q", got, want)
	}
	if !strings.HasPrefix(Long(), Number()+" (go") {
		t.Errorf("Long() = %q does not start with the number and the Go release", Long())
	}
}
