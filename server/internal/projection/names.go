package projection

import (
	"strings"
	"sync"
)

// names gives every metric name of a store a number. It only grows, up to
// [MostRootNames]: a root has far fewer names than points.
type names struct {
	mu   sync.RWMutex
	list []string
	ids  map[string]uint32
}

// id is false if the name would be one too many.
func (n *names) id(name string) (uint32, bool) {
	if id, ok := n.find(name); ok {
		return id, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, ok := n.ids[name]; ok {
		return id, true
	}
	if len(n.list) >= MostRootNames {
		return 0, false
	}
	if n.ids == nil {
		n.ids = map[string]uint32{}
	}
	name = strings.Clone(name)
	id := uint32(len(n.list))
	n.list = append(n.list, name)
	n.ids[name] = id
	return id, true
}

// find is id for a name that need not exist.
func (n *names) find(name string) (uint32, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	id, ok := n.ids[name]
	return id, ok
}

func (n *names) name(id uint32) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if int(id) >= len(n.list) {
		return ""
	}
	return n.list[id]
}

// all are the names in the order of their numbers.
func (n *names) all() []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.list[:len(n.list):len(n.list)]
}
