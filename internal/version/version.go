// Package version tells which build of Foldlog is running.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// number is set by the linker: -X github.com/foldlog/foldlog/internal/version.number=1.2.3.
var number string

// Number is the version without a leading "v", for example "1.2.3": the one
// the linker set, else the module version of the build, else "dev".
func Number() string {
	info, _ := debug.ReadBuildInfo()
	return pick(number, info)
}

// Program is the name and version that files written by this build carry,
// for example "foldlog-1.2.3".
func Program() string { return "foldlog-" + Number() }

// Long is the version with the Go release and the platform, on one line.
func Long() string {
	return fmt.Sprintf("%s (%s %s/%s)", Number(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func pick(linked string, info *debug.BuildInfo) string {
	if linked != "" {
		return strings.TrimPrefix(linked, "v")
	}
	if info != nil && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}
