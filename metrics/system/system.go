// Package system looks at the machine that a training program runs on: CPU, memory
// and load on Linux, GPUs wherever there is nvidia-smi.
package system

import (
	"context"
	"os/exec"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// Value is one number about the machine, as a metric.
type Value struct {
	Name     string
	Value    metrics.Number
	Metadata metrics.Metadata
}

// Machine is what can be seen of a machine.
type Machine struct {
	NoCPU error // why there are no CPU and memory series, nil if there are
	NoGPU error // why there are no GPU series, nil if there are

	machine *machine
	gpu     string // the program that knows, "" without
}

// Open finds out what can be seen.
func Open() *Machine {
	m := &Machine{}
	m.machine, m.NoCPU = openMachine()
	m.gpu, m.NoGPU = exec.LookPath("nvidia-smi")
	return m
}

// Watch sends what there is to see at once, and then after each interval, until ctx
// ends. It sends nothing if there is nothing to see.
func (m *Machine) Watch(ctx context.Context, every time.Duration, out chan<- []Value) {
	if m.machine == nil && m.gpu == "" {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case out <- m.sample(ctx):
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (m *Machine) sample(ctx context.Context) (values []Value) {
	if m.machine != nil {
		values = m.machine.sample()
	}
	if m.gpu != "" {
		values = append(values, sampleGPUs(ctx, m.gpu)...)
	}
	return values
}
