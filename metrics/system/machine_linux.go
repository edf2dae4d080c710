package system

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/metrics"
)

// machine reads the state of a machine from its proc file system.
type machine struct {
	proc        fs.FS
	busy, total uint64 // of all processors, as of the last sample
}

func openMachine() (*machine, error) { return newMachine(os.DirFS("/proc")) }

// newMachine takes the first reading, which the first sample compares with.
func newMachine(proc fs.FS) (*machine, error) {
	m := &machine{proc: proc}
	var err error
	if m.busy, m.total, err = m.cpu(); err != nil {
		return nil, fmt.Errorf("read /proc/stat: %w", err)
	}
	return m, nil
}

// sample is CPU as a share of all processors since the last sample, memory that
// is not available in bytes, and the load of the last minute. What cannot be
// read is left out.
func (m *machine) sample() (s []Value) {
	if busy, total, err := m.cpu(); err == nil && total > m.total && busy >= m.busy {
		share := 100 * float64(busy-m.busy) / float64(total-m.total)
		s = append(s, Value{"system/cpu_percent", metrics.Float(share), ""})
		m.busy, m.total = busy, total
	}
	if used, ok := m.memory(); ok {
		s = append(s, Value{"system/memory_bytes", metrics.Uint(used), ""})
	}
	if load, ok := m.load(); ok {
		s = append(s, Value{"system/load", metrics.Float(load), ""})
	}
	return s
}

// cpu sums up the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq and steal, in ticks. Idle and iowait are not busy.
func (m *machine) cpu() (busy, total uint64, err error) {
	text, err := fs.ReadFile(m.proc, "stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 5 || fields[0] != "cpu" {
		return 0, 0, fmt.Errorf("unexpected line %.80q", line)
	}
	for i, field := range fields[1:min(len(fields), 9)] {
		ticks, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		total += ticks
		if i != 3 && i != 4 {
			busy += ticks
		}
	}
	return busy, total, nil
}

func (m *machine) memory() (used uint64, ok bool) {
	text, err := fs.ReadFile(m.proc, "meminfo")
	if err != nil {
		return 0, false
	}
	kib := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 {
			kib[fields[0]], _ = strconv.ParseUint(fields[1], 10, 64)
		}
	}
	total, free := kib["MemTotal:"], kib["MemAvailable:"]
	return (total - free) << 10, total >= free && free > 0
}

func (m *machine) load() (float64, bool) {
	text, err := fs.ReadFile(m.proc, "loadavg")
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(first, 64)
	return load, err == nil
}
