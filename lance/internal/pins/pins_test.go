package pins

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// TestAPinThatIsTakenAnewOutlivesTheRemovalOfTheOld: its reader comes back just when an
// observer has found it dead and is about to remove it.
func TestAPinThatIsTakenAnewOutlivesTheRemovalOfTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := objstore.NewMemory()
		var down atomic.Bool
		reader := objstore.NewFault(mem, func(objstore.Call) objstore.Fate {
			if down.Load() {
				return objstore.Fate{Err: errors.New("store is away")}
			}
			return objstore.Fate{}
		})
		p, err := Take(t.Context(), reader, Held{Version: 1, Keys: []string{"k"}}, func(context.Context) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		defer p.Release()
		down.Store(true)
		observer := objstore.NewFault(mem, func(c objstore.Call) objstore.Fate {
			if c.Op == "delete" && down.Swap(false) {
				time.Sleep(Default.Term) // it is taken anew
			}
			return objstore.Fate{}
		})
		var w Watch
		look := func() Names {
			held, _, err := w.Look(t.Context(), observer)
			if err != nil {
				t.Fatal(err)
			}
			return held
		}
		for down.Load() {
			look()
			time.Sleep(Default.Term)
		}
		for range 5 {
			if !look().Has("k") {
				t.Fatal("what the living pin holds is not known")
			}
			time.Sleep(Default.Term)
		}
	})
}

// What a pin holds that cannot be read is not known to be free.
func TestAPinThatCannotBeReadIsAnErrorUntilItIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := objstore.NewMemory()
		for _, dir := range []string{newDir(), newDir()} {
			if err := store.Put(t.Context(), dir+heldName, []byte(`{"keys":`)); err != nil {
				t.Fatal(err)
			}
		}
		var w Watch
		if _, _, err := w.Look(t.Context(), store); err == nil {
			t.Fatal("a pin that holds something unknown is passed over")
		}
		time.Sleep(3 * Default.Term)
		if _, unknown, err := w.Look(t.Context(), store); err != nil || unknown != 0 {
			t.Fatalf("%d pins are unknown, error %v", unknown, err)
		}
	})
}
