package system

import (
	"bytes"
	"context"
	"encoding/csv"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// gpuColumns are what nvidia-smi is asked for, and the metric of each.
var gpuColumns = []struct{ query, name string }{
	{"index", ""},
	{"utilization.gpu", "system/gpu_percent"},
	{"memory.used", "system/gpu_memory_mib"},
	{"temperature.gpu", "system/gpu_celsius"},
	{"power.draw", "system/gpu_watts"},
}

// gpuTimeout is how long nvidia-smi may take.
const gpuTimeout = 5 * time.Second

// sampleGPUs asks nvidia-smi. One that fails has nothing to say.
func sampleGPUs(ctx context.Context, program string) []Value {
	ctx, cancel := context.WithTimeout(ctx, gpuTimeout)
	defer cancel()
	queries := make([]string, len(gpuColumns))
	for i, c := range gpuColumns {
		queries[i] = c.query
	}
	out, err := exec.CommandContext(ctx, program, "--query-gpu="+strings.Join(queries, ","), "--format=csv,noheader,nounits").Output()
	if err != nil {
		return nil
	}
	return parseGPUs(out)
}

// parseGPUs reads a line per GPU. What a GPU does not know, "[N/A]", is left out.
func parseGPUs(out []byte) (s []Value) {
	r := csv.NewReader(bytes.NewReader(out))
	r.TrimLeadingSpace, r.FieldsPerRecord, r.LazyQuotes = true, -1, true
	rows, err := r.ReadAll()
	if err != nil {
		return nil
	}
	for _, row := range rows {
		if len(row) != len(gpuColumns) {
			continue
		}
		for i, cell := range row[1:] {
			if f, err := strconv.ParseFloat(strings.TrimSpace(cell), 64); err == nil {
				s = append(s, Value{gpuColumns[i+1].name, metrics.Float(f), metrics.Meta("gpu", strings.TrimSpace(row[0]))})
			}
		}
	}
	return s
}
