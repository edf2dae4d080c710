package study

import (
	"cmp"
	"iter"
)

// tree is a persistent ordered map (AVL): copying the struct is a snapshot, a
// change copies one path. Its shape depends on the keys alone.
type tree[K cmp.Ordered, V any] struct {
	root *treeNode[K, V]
	n    int
}

type treeNode[K cmp.Ordered, V any] struct {
	key         K
	val         V
	left, right *treeNode[K, V]
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

func (t *tree[K, V]) set(key K, val V) {
	if _, ok := t.get(key); !ok {
		t.n++
	}
	t.root = t.root.with(key, val)
}

func (t *tree[K, V]) delete(key K) {
	if _, ok := t.get(key); ok {
		t.n--
		t.root = t.root.without(key)
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

// all yields the pairs in the order of the keys.
func (t *tree[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) { t.root.walk(yield) }
}

func (n *treeNode[K, V]) walk(yield func(K, V) bool) bool {
	return n == nil || n.left.walk(yield) && yield(n.key, n.val) && n.right.walk(yield)
}

func (n *treeNode[K, V]) with(key K, val V) *treeNode[K, V] {
	if n == nil {
		return &treeNode[K, V]{key: key, val: val, height: 1}
	}
	c := *n
	switch d := cmp.Compare(key, n.key); {
	case d < 0:
		c.left = n.left.with(key, val)
	case d > 0:
		c.right = n.right.with(key, val)
	default:
		c.val = val
		return &c
	}
	return c.balanced()
}

func (n *treeNode[K, V]) without(key K) *treeNode[K, V] {
	c := *n
	switch d := cmp.Compare(key, n.key); {
	case d < 0:
		c.left = n.left.without(key)
	case d > 0:
		c.right = n.right.without(key)
	case n.left == nil:
		return n.right
	case n.right == nil:
		return n.left
	default:
		next := n.right
		for next.left != nil {
			next = next.left
		}
		c.key, c.val = next.key, next.val
		c.right = n.right.without(next.key)
	}
	return c.balanced()
}

func (n *treeNode[K, V]) h() int {
	if n == nil {
		return 0
	}
	return n.height
}

// balanced restores the balance of n, which is fresh and whose subtrees are
// balanced and differ by two at most.
func (n *treeNode[K, V]) balanced() *treeNode[K, V] {
	switch d := n.left.h() - n.right.h(); {
	case d > 1:
		if n.left.left.h() < n.left.right.h() {
			n.left = n.left.rotateLeft()
		}
		return n.rotateRight()
	case d < -1:
		if n.right.right.h() < n.right.left.h() {
			n.right = n.right.rotateRight()
		}
		return n.rotateLeft()
	}
	n.height = 1 + max(n.left.h(), n.right.h())
	return n
}

// rotateLeft makes the right child the root, on copies of both.
func (n *treeNode[K, V]) rotateLeft() *treeNode[K, V] {
	down, up := *n, *n.right
	down.right = up.left
	down.height = 1 + max(down.left.h(), down.right.h())
	up.left = &down
	up.height = 1 + max(up.left.h(), up.right.h())
	return &up
}

func (n *treeNode[K, V]) rotateRight() *treeNode[K, V] {
	down, up := *n, *n.left
	down.left = up.right
	down.height = 1 + max(down.left.h(), down.right.h())
	up.right = &down
	up.height = 1 + max(up.left.h(), up.right.h())
	return &up
}
