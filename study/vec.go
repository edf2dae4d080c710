package study

import "iter"

const (
	vecBits  = 5
	vecWidth = 1 << vecBits
	vecMask  = vecWidth - 1
)

// vec is a persistent vector: copying the struct is a snapshot, a change
// copies one path. Every node carries the stamp of the editor that made it;
// an editor with the same stamp changes it in place, which makes bulk replay
// cheap. An editor takes a new stamp whenever somebody may have seen its nodes.
type vec[T any] struct {
	n         int
	root      *vecNode[T]
	shift     uint
	tail      []T
	tailStamp uint64
}

type vecNode[T any] struct {
	stamp uint64
	kids  []*vecNode[T]
	leaf  []T
}

func (v *vec[T]) len() int { return v.n }

// at returns element i, which must exist.
func (v *vec[T]) at(i int) T {
	if first := v.n - len(v.tail); i >= first {
		return v.tail[i-first]
	}
	node := v.root
	for s := v.shift; s > 0; s -= vecBits {
		node = node.kids[i>>s&vecMask]
	}
	return node.leaf[i&vecMask]
}

// set replaces element i, which must exist.
func (v *vec[T]) set(stamp uint64, i int, x T) {
	if first := v.n - len(v.tail); i >= first {
		v.ownTail(stamp)
		v.tail[i-first] = x
		return
	}
	v.root = v.root.own(stamp)
	node := v.root
	for s := v.shift; s > 0; s -= vecBits {
		k := i >> s & vecMask
		node.kids[k] = node.kids[k].own(stamp)
		node = node.kids[k]
	}
	node.leaf[i&vecMask] = x
}

// push appends x.
func (v *vec[T]) push(stamp uint64, x T) {
	if len(v.tail) == vecWidth {
		v.sinkTail(stamp)
	}
	v.ownTail(stamp)
	v.tail = append(v.tail, x)
	v.n++
}

func (v *vec[T]) ownTail(stamp uint64) {
	if v.tailStamp != stamp {
		v.tail = append(make([]T, 0, min(vecWidth, len(v.tail)+4)), v.tail...)
		v.tailStamp = stamp
	}
}

// sinkTail moves the full tail into the tree.
func (v *vec[T]) sinkTail(stamp uint64) {
	leaf := &vecNode[T]{stamp: v.tailStamp, leaf: v.tail}
	i := v.n - vecWidth
	switch {
	case v.root == nil:
		v.root = leaf
	case i == 1<<(v.shift+vecBits):
		v.shift += vecBits
		v.root = &vecNode[T]{stamp: stamp, kids: []*vecNode[T]{v.root, path(stamp, v.shift-vecBits, leaf)}}
	default:
		v.root = v.root.own(stamp)
		node := v.root
		for s := v.shift; ; s -= vecBits {
			k := i >> s & vecMask
			if k == len(node.kids) {
				node.kids = append(node.kids, path(stamp, s-vecBits, leaf))
				break
			}
			node.kids[k] = node.kids[k].own(stamp)
			node = node.kids[k]
		}
	}
	v.tail, v.tailStamp = nil, stamp
}

// path wraps a leaf into nodes up to a level.
func path[T any](stamp uint64, shift uint, leaf *vecNode[T]) *vecNode[T] {
	node := leaf
	for ; shift > 0; shift -= vecBits {
		node = &vecNode[T]{stamp: stamp, kids: []*vecNode[T]{node}}
	}
	return node
}

func (n *vecNode[T]) own(stamp uint64) *vecNode[T] {
	if n.stamp == stamp {
		return n
	}
	c := &vecNode[T]{stamp: stamp}
	if n.kids != nil {
		c.kids = append(make([]*vecNode[T], 0, min(vecWidth, len(n.kids)+1)), n.kids...)
	}
	if n.leaf != nil {
		c.leaf = append(make([]T, 0, vecWidth), n.leaf...)
	}
	return c
}

// from yields the elements from index i on, in order.
func (v *vec[T]) from(i int) iter.Seq2[int, T] {
	return func(yield func(int, T) bool) {
		first := v.n - len(v.tail)
		for i < first {
			node := v.root
			for s := v.shift; s > 0; s -= vecBits {
				node = node.kids[i>>s&vecMask]
			}
			for _, x := range node.leaf[i&vecMask:] {
				if !yield(i, x) {
					return
				}
				i++
			}
		}
		for ; i < v.n; i++ {
			if !yield(i, v.tail[i-first]) {
				return
			}
		}
	}
}
