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

// Admit takes a call in and asks decide about it, which gets the number of calls so
// far that changed something, with this one if it does, and tells whether the process
// crashes here. After a crash nobody is asked and calls do not count; they are not
// admitted, nor is the call of the crash.
func (c *Calls) Admit(changes bool, decide func(n int) (crash bool)) bool {
	c.mu.Lock()
	if c.crashed {
		c.mu.Unlock()
		return false
	}
	if changes {
		c.changes++
	}
	n := c.changes
	c.mu.Unlock()
	if decide(n) {
		c.Crash()
		return false
	}
	return true
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
