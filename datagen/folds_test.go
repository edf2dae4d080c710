package datagen

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/objstore"
)

func TestEveryItemIsFoldedOnceInWhateverParts(t *testing.T) {
	l := newLog(t, objstore.NewMemory())
	w := newWriter(t, l)
	const n = 40
	for i := range n {
		s, err := w.Open(t.Context(), fmt.Sprint("item-", i), CreateOptions{})
		check(t, err)
		check(t, s.CheckpointEnd(t.Context(), step(0), []Change{set("x", int64(i))}, EndCompleted))
	}
	v, err := l.View(t.Context())
	check(t, err)
	var whole, parts []string
	for it, err := range v.Folds(t.Context()) {
		check(t, err)
		whole = append(whole, fmt.Sprintf("%s %s x=%d", it.ID, it.Status, it.Fields[0].Value().Int))
	}
	if len(whole) != n || whole[0] != "item-0 completed x=0" || whole[n-1] != "item-39 completed x=39" {
		t.Errorf("%q", whole)
	}
	withTemporaryFiles(t)
	l.most = little
	for it, err := range v.Folds(t.Context()) {
		check(t, err)
		parts = append(parts, fmt.Sprintf("%s %s x=%d", it.ID, it.Status, it.Fields[0].Value().Int))
	}
	if slices.Equal(whole, parts) {
		t.Error("there is one part")
	}
	slices.Sort(whole)
	slices.Sort(parts)
	if !slices.Equal(whole, parts) {
		t.Errorf("%q, in parts %q", whole, parts)
	}
	for it, err := range v.Folds(t.Context()) {
		check(t, err)
		if !slices.ContainsFunc(whole, func(s string) bool { return strings.HasPrefix(s, it.ID+" ") }) {
			t.Errorf("the first is %s", it.ID)
		}
		break
	}
}
