package server

import (
	"runtime/debug"
	"runtime/metrics"
)

// Reading a large root, and answering from it, takes memory that serving it does not.
// The runtime gives it back slowly, and lets as much garbage come together as is in use;
// an idle server gives both back at once, and again when looking for changes has left some.

const (
	// idleTicks is for how many rounds nothing has been read or answered before memory
	// is given back.
	idleTicks = 2
	// idleSlack is how many bytes have to be of no use for that to be worth it.
	idleSlack = 64 << 20
)

// memory watches how much of its memory the process needs.
type memory struct {
	done  int64 // what the server had done at the last round
	quiet int
}

// tick gives memory back once the server has been idle for a while; done counts what it
// does, and grows.
func (m *memory) tick(done int64) {
	if done != m.done {
		m.done, m.quiet = done, 0
		return
	}
	if m.quiet++; m.quiet >= idleTicks && slack() > idleSlack {
		debug.FreeOSMemory()
	}
}

// slack is how many bytes the process has from the system that nothing uses, or that
// nothing would use after a collection.
func slack() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 {
		if samples[i].Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return samples[i].Value.Uint64()
	}
	objects, live := value(0), value(1)
	return objects - min(objects, live) + value(2) + value(3)
}
