package server

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestAnIdleServerGivesMemoryBack(t *testing.T) {
	// Nothing but the server gives memory back, neither a collection nor the scavenger.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	waste := func() {
		big := make([]byte, 4*idleSlack)
		for i := 0; i < len(big); i += 4096 {
			big[i] = 1
		}
		runtime.KeepAlive(big)
	}
	var m memory
	m.tick(1)
	waste()
	before := slack()
	if before < idleSlack {
		t.Fatalf("%d bytes are of no use", before)
	}
	m.tick(2)
	m.tick(2)
	if now := slack(); now < idleSlack {
		t.Errorf("given back before the server was idle: %d", now)
	}
	for range 2 {
		m.tick(2)
		if now := slack(); now >= idleSlack {
			t.Errorf("of %d bytes that are of no use %d are kept", before, now)
		}
		waste() // it goes on being idle
	}
}
