package main

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

// systemSample is what --system saw at one moment.
type systemSample []systemValue

// systemValue is one number about the machine.
type systemValue struct {
	name     string
	value    metrics.Number
	metadata metrics.Metadata
}

// watchSystem samples the machine until stop is called, if --system asks for
// it.
func (a *app) watchSystem(flags recordFlags) (stop func(), samples <-chan systemSample) {
	if !flags.system {
		return func() {}, nil
	}
	machine, err := openMachine()
	if err != nil {
		a.Notef("--system: %v", err)
	}
	gpu, err := exec.LookPath("nvidia-smi")
	if err != nil {
		a.Debugf("--system: no nvidia-smi, no GPU series")
	}
	if machine == nil && gpu == "" {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, ended := make(chan systemSample), make(chan struct{})
	go func() {
		defer close(ended)
		watchMachine(ctx, machine, gpu, max(flags.systemEvery, 100*time.Millisecond), out)
	}()
	return func() {
		cancel()
		<-ended
	}, out
}

// watchMachine sends a sample at once and then after each interval.
func watchMachine(ctx context.Context, machine *machine, gpu string, every time.Duration, out chan<- systemSample) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var s systemSample
		if machine != nil {
			s = machine.sample()
		}
		if gpu != "" {
			s = append(s, sampleGPUs(ctx, gpu)...)
		}
		select {
		case <-ctx.Done():
			return
		case out <- s:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

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
func sampleGPUs(ctx context.Context, program string) systemSample {
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
func parseGPUs(out []byte) (s systemSample) {
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
				s = append(s, systemValue{gpuColumns[i+1].name, metrics.Float(f), metrics.Meta("gpu", strings.TrimSpace(row[0]))})
			}
		}
	}
	return s
}

// sample records a sample at the step of the latest metric. Before the run is
// known it has no place.
func (r *recorder) sample(s systemSample) {
	if !r.opened && r.slug == "" {
		return
	}
	if r.begin() != nil {
		return
	}
	for _, v := range s {
		if e, err := metrics.NewMetric(r.step, v.name, v.value, v.metadata); err == nil {
			_ = r.emitter.Emit(&e) // what becomes of it is in the report
		}
	}
}
