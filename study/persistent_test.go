package study

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A vec behaves like a slice, and so does every copy of it made on the way,
// whatever happens to the others.
func TestVecIsPersistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pair struct {
			v     vec[int]
			model []int
		}
		versions := []pair{{}}
		stamp := uint64(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			k := rapid.IntRange(0, len(versions)-1).Draw(t, "version")
			p := pair{versions[k].v, slices.Clone(versions[k].model)}
			stamp++
			for range rapid.SampledFrom([]int{1, 3, 40, 1100}).Draw(t, "changes") {
				x := rapid.Int().Draw(t, "x")
				if n := len(p.model); n > 0 && x%3 == 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "i")
					p.v.set(stamp, i, x)
					p.model[i] = x
				} else {
					p.v.push(stamp, x)
					p.model = append(p.model, x)
				}
			}
			versions = append(versions, p)
		}
		for _, p := range versions {
			checkVec(t, &p.v, p.model)
		}
	})
}

func checkVec(t *rapid.T, v *vec[int], model []int) {
	if v.len() != len(model) {
		t.Fatalf("%d elements, not %d", v.len(), len(model))
	}
	for i, want := range model {
		if got := v.at(i); got != want {
			t.Fatalf("element %d is %d, not %d", i, got, want)
		}
	}
	from := len(model) / 3
	i := from
	for j, x := range v.from(from) {
		if j != i || x != model[i] {
			t.Fatalf("element %d of the walk is %d: %d", i, j, x)
		}
		i++
	}
	if i != len(model) {
		t.Fatalf("the walk ended at %d of %d", i, len(model))
	}
}

// A tree behaves like a sorted map, stays balanced, and copies stay as they are.
func TestTreeIsPersistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tree[int, int]
		model := map[int]int{}
		var olds []tree[int, int]
		var models []map[int]int
		stamp := uint64(1)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.IntRange(0, 60).Draw(t, "key")
			if rapid.Bool().Draw(t, "seen") { // the editor must not touch these versions any more
				olds, models = append(olds, tr), append(models, maps.Clone(model))
				stamp++
			}
			if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				tr.delete(stamp, key)
				delete(model, key)
			} else {
				x := rapid.Int().Draw(t, "x")
				tr.set(stamp, key, x)
				model[key] = x
			}
		}
		olds, models = append(olds, tr), append(models, model)
		for i := range olds {
			checkTree(t, &olds[i], models[i])
		}
	})
}

func checkTree(t *rapid.T, tr *tree[int, int], model map[int]int) {
	keys := slices.Sorted(maps.Keys(model))
	if tr.len() != len(keys) {
		t.Fatalf("%d keys, not %d", tr.len(), len(keys))
	}
	i := 0
	for k, v := range tr.all() {
		if i >= len(keys) || k != keys[i] || v != model[k] {
			t.Fatalf("key %d is %d: %d", i, k, v)
		}
		i++
	}
	if k, _, ok := tr.first(); ok != (len(keys) > 0) || ok && k != keys[0] {
		t.Fatalf("first is %d, %v", k, ok)
	}
	for key := -1; key <= 61; key++ {
		at, _ := slices.BinarySearch(keys, key)
		if k, v, ok := tr.ceiling(key); ok != (at < len(keys)) || ok && (k != keys[at] || v != model[k]) {
			t.Fatalf("not below %d is %d: %d, %v", key, k, v, ok)
		}
	}
	checkBalance(t, tr.root)
}

func checkBalance(t *rapid.T, n *treeNode[int, int]) int {
	if n == nil {
		return 0
	}
	l, r := checkBalance(t, n.left), checkBalance(t, n.right)
	if l-r > 1 || r-l > 1 || n.height != 1+max(l, r) {
		t.Fatalf("node %d: heights %d and %d, says %d", n.key, l, r, n.height)
	}
	return n.height
}
