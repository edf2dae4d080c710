package images

import (
	"testing"

	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/examples/digits"
)

func TestImagesAreMadeOnce(t *testing.T) {
	p := digits.Params{Epochs: 2}
	if testing.Short() {
		p = digits.Params{Epochs: 1, Hidden: 8, Batch: 64} // it is sure of little
	}
	net, err := digits.Fit(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	made := func() map[pipeline.EventKind]int {
		told := map[pipeline.EventKind]int{}
		if err := Make(t.Context(), root, net, func(kind pipeline.EventKind, _ string) { told[kind]++ }); err != nil {
			t.Fatal(err)
		}
		return told
	}
	// Each image is perturbed and classified at least once.
	if told := made(); told[pipeline.Done] < 2*Sources*Variants || told[pipeline.Started] < 2*Sources*Variants {
		t.Errorf("%v", told)
	}
	if told := made(); len(told) != 0 {
		t.Errorf("a second run: %v", told)
	}
}
