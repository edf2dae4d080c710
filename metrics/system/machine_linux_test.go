package system

import (
	"testing"
	"testing/fstest"

	"github.com/foldlog/foldlog/metrics"
)

func TestTheMachineIsReadFromProc(t *testing.T) {
	proc := fstest.MapFS{
		"stat":    {Data: []byte("cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 1 1 1\n")},
		"meminfo": {Data: []byte("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n")},
		"loadavg": {Data: []byte("0.52 0.40 0.30 1/100 5\n")},
	}
	m, err := newMachine(proc)
	if err != nil {
		t.Fatal(err)
	}
	proc["stat"] = &fstest.MapFile{Data: []byte("cpu  200 0 150 1000 50 0 0 0 0 0\n")}
	want := []Value{
		{"system/cpu_percent", metrics.Float(37.5), ""},
		{"system/memory_bytes", metrics.Uint(600 << 10), ""},
		{"system/load", metrics.Float(0.52), ""},
	}
	got := m.sample()
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	// The same moment again, and counters that went back, have no share of CPU.
	if got := m.sample(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	for name, broken := range map[string]fstest.MapFS{
		"nothing": {}, "another system": {"stat": {Data: []byte("intr 1 2\n")}}, "letters": {"stat": {Data: []byte("cpu a b c d e\n")}},
	} {
		if _, err := newMachine(broken); err == nil {
			t.Errorf("%s is taken for a machine", name)
		}
	}
}
