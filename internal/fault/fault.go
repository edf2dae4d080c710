// Package fault counts the calls that go through a seam, for the fault injectors of
// [github.com/foldlog/foldlog/internal/fsx] and
// [github.com/foldlog/foldlog/objstore].
package fault

import "sync"

// Calls counts calls until a crash. Its methods may be called at once.
type Calls struct {
	mu      sync.Mutex
	changes int
	crashed bool
}

// Next takes a call in, and returns how many calls so far changed something, with
// this one if it does; alive is false after a crash, when calls do not count.
func (c *Calls) Next(changes bool) (n int, alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if changes && !c.crashed {
		c.changes++
	}
	return c.changes, !c.crashed
}

// Changes returns the number of changing calls so far.
func (c *Calls) Changes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// Crash makes every later call fail.
func (c *Calls) Crash() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = true
}
