package datagen

import (
	"cmp"
	"slices"
	"strings"
)

// Node is an item in its tree.
type Node struct {
	Item *Item
	// Children are the items that name it as their parent, by step and index.
	Children []*Node
	// Orphan says that the item names a parent that is not there.
	Orphan bool
}

// Tree puts items of one root into a tree. Items whose parent is missing stand
// beside the root, as do those that would make a circle.
func Tree(items []*Item) []*Node {
	nodes := make(map[string]*Node, len(items))
	for _, it := range items {
		nodes[it.ID] = &Node{Item: it}
	}
	var top []*Node
	for _, n := range nodes {
		parent := nodes[n.Item.Parent]
		switch {
		case n.Item.Parent == "":
			top = append(top, n)
		case parent == nil || circular(nodes, n):
			n.Orphan = true
			top = append(top, n)
		default:
			parent.Children = append(parent.Children, n)
		}
	}
	for _, n := range nodes {
		slices.SortFunc(n.Children, byPlace)
	}
	slices.SortFunc(top, byPlace)
	return top
}

// circular reports whether a node is among its own ancestors.
func circular(nodes map[string]*Node, n *Node) bool {
	at := n
	for range len(nodes) {
		if at = nodes[at.Item.Parent]; at == nil || at.Item.Parent == "" {
			return false
		}
		if at == n {
			return true
		}
	}
	return true
}

// byPlace orders siblings: roots first, then by parent, step and index.
func byPlace(a, b *Node) int {
	if a.Orphan != b.Orphan {
		if a.Orphan {
			return 1
		}
		return -1
	}
	return CompareIDs(a.Item.ID, b.Item.ID)
}

// CompareIDs orders identities of items as people expect: runs of digits by their
// value, everything else by its bytes.
func CompareIDs(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		dx, dy := digits(x), digits(y)
		if dx > 0 && dy > 0 {
			if c := compareDigits(x[:dx], y[:dy]); c != 0 {
				return c
			}
			x, y = x[dx:], y[dy:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// digits is how many digits a text begins with.
func digits(s string) int {
	n := 0
	for n < len(s) && s[n]-'0' <= 9 {
		n++
	}
	return n
}

func compareDigits(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
