package datagencmd

import (
	"testing"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/objstore"
)

// TestALongRunMaintainsItsLog lets the maintenance begin at once.
func TestALongRunMaintainsItsLog(t *testing.T) {
	store := objstore.NewMemory()
	l, err := datagen.Create(t.Context(), store, "p", "e", datagen.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := l.NewWriter(t.Context(), datagen.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Open(t.Context(), "a", datagen.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CheckpointEnd(t.Context(), datagen.Step{Name: "s", Instance: "s"}, nil, datagen.EndCompleted); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := &app{logkind.Finder{Env: &cli.Env{}}}
	stop := a.maintaining(l, 0)
	for indexed := 0; indexed < 3; time.Sleep(5 * time.Millisecond) {
		base, err := l.Table().Base(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		indexed = 0
		for _, x := range base.Indexes() {
			if x.Kind == "btree" && x.Unindexed == 0 {
				indexed++
			}
		}
	}
	stop()
}
