package study

import (
	"cmp"
	"iter"
)

// tree is a persistent ordered map (AVL): copying the struct is a snapshot, a
// change copies one path. Its shape depends on the keys alone. Nodes carry the
// stamp of the editor that made them and are changed in place by it, as those of a
// [vec] are.
type tree[K cmp.Ordered, V any] struct {
	root *treeNode[K, V]
	n    int
}

type treeNode[K cmp.Ordered, V any] struct {
	key         K
	val         V
	left, right *treeNode[K, V]
	stamp       uint64
	height      int
}

func (t *tree[K, V]) len() int { return t.n }

func (t *tree[K, V]) get(key K) (val V, ok bool) {
	for n := t.root; n != nil; {
		switch c := cmp.Compare(key, n.key); {
		case c < 0:
			n = n.left
		case c > 0:
			n = n.right
		default:
			return n.val, true
		}
	}
	return val, false
}

func (t *tree[K, V]) set(stamp uint64, key K, val V) {
	if _, ok := t.get(key); !ok {
		t.n++
	}
	t.root = t.root.with(stamp, key, val)
}

func (t *tree[K, V]) delete(stamp uint64, key K) {
	if _, ok := t.get(key); ok {
		t.n--
		t.root = t.root.without(stamp, key)
	}
}

// first returns the smallest key.
func (t *tree[K, V]) first() (key K, val V, ok bool) {
	n := t.root
	if n == nil {
		return key, val, false
	}
	for n.left != nil {
		n = n.left
	}
	return n.key, n.val, true
}

// ceiling returns the smallest key that is not below key.
func (t *tree[K, V]) ceiling(key K) (found K, val V, ok bool) {
	for n := t.root; n != nil; {
		if n.key < key {
			n = n.right
			continue
		}
		found, val, ok = n.key, n.val, true
		n = n.left
	}
	return found, val, ok
}

// all yields the pairs in the order of the keys.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walk(yield) }
}

func (n *treeNode[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.val) && n.right.walk(yield)
}

// own returns a version of n that may be changed.
func (n *treeNode[K, V]) own(stamp uint64) *treeNode[K, V] {
	if n.stamp == stamp {
		return n
	}
	c := *n
	c.stamp = stamp
	return &c
}

func (n *treeNode[K, V]) with(stamp uint64, key K, val V) *treeNode[K, V] {
	if n == nil {
		return &treeNode[K, V]{key: key, val: val, stamp: stamp, height: 1}
	}
	n = n.own(stamp)
	switch d := cmp.Compare(key, n.key); {
	case d < 0:
		n.left = n.left.with(stamp, key, val)
	case d > 0:
		n.right = n.right.with(stamp, key, val)
	default:
		n.val = val
		return n
	}
	return n.balanced(stamp)
}

// without takes out a key that is there.
func (n *treeNode[K, V]) without(stamp uint64, key K) *treeNode[K, V] {
	d := cmp.Compare(key, n.key)
	switch {
	case d == 0 && n.left == nil:
		return n.right
	case d == 0 && n.right == nil:
		return n.left
	}
	n = n.own(stamp)
	switch {
	case d < 0:
		n.left = n.left.without(stamp, key)
	case d > 0:
		n.right = n.right.without(stamp, key)
	default:
		next := n.right
		for next.left != nil {
			next = next.left
		}
		n.key, n.val = next.key, next.val
		n.right = n.right.without(stamp, n.key)
	}
	return n.balanced(stamp)
}

func (n *treeNode[K, V]) h() int {
	if n == nil {
		return 0
	}
	return n.height
}

// balanced restores the balance of n, which is the editor's own and whose subtrees
// are balanced and differ by two at most.
func (n *treeNode[K, V]) balanced(stamp uint64) *treeNode[K, V] {
	switch d := n.left.h() - n.right.h(); {
	case d > 1:
		if n.left.left.h() < n.left.right.h() {
			n.left = n.left.own(stamp).rotateLeft(stamp)
		}
		return n.rotateRight(stamp)
	case d < -1:
		if n.right.right.h() < n.right.left.h() {
			n.right = n.right.own(stamp).rotateRight(stamp)
		}
		return n.rotateLeft(stamp)
	}
	n.height = 1 + max(n.left.h(), n.right.h())
	return n
}

// rotateLeft makes the right child the root. N is the editor's own.
func (n *treeNode[K, V]) rotateLeft(stamp uint64) *treeNode[K, V] {
	up := n.right.own(stamp)
	n.right, up.left = up.left, n
	n.height = 1 + max(n.left.h(), n.right.h())
	up.height = 1 + max(up.left.h(), up.right.h())
	return up
}

func (n *treeNode[K, V]) rotateRight(stamp uint64) *treeNode[K, V] {
	up := n.left.own(stamp)
	n.left, up.right = up.right, n
	n.height = 1 + max(n.left.h(), n.right.h())
	up.height = 1 + max(up.left.h(), up.right.h())
	return up
}
