package system

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGPUsAreRead(t *testing.T) {
	got := parseGPUs([]byte("0, 37, 1024, 45, 71.50\n1, 0, [N/A], 30, [Not Supported]\nbroken\n"))
	var text strings.Builder
	for _, v := range got {
		fmt.Fprintf(&text, "%s %s %s\n", v.Name, v.Value, v.Metadata)
	}
	want := `system/gpu_percent 37.0 {"gpu":"0"}
system/gpu_memory_mib 1024.0 {"gpu":"0"}
system/gpu_celsius 45.0 {"gpu":"0"}
system/gpu_watts 71.5 {"gpu":"0"}
system/gpu_percent 0.0 {"gpu":"1"}
system/gpu_celsius 30.0 {"gpu":"1"}
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	if got := parseGPUs([]byte("NVIDIA-SMI has failed\"")); got != nil {
		t.Errorf("%v", got)
	}
}
