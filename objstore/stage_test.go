package objstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/internal/fsx"
)

var staged = []Object{
	{"gen/data/d", []byte("data")}, {"gen/_versions/m", []byte("version")}, {"gen/bloom", nil},
}

// stageAll stages the objects and commits them.
func stageAll(ctx context.Context, s Store) error {
	commit, err := Stage(ctx, s, staged, Object{"manifest/2", []byte("two")})
	if err != nil {
		return err
	}
	return commit(ctx)
}

func TestStagedObjectsCountWithTheLast(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		for _, s := range []Store{Prefix(s, "below"), s} {
			commit, err := Stage(t.Context(), s, staged, Object{"manifest/2", []byte("two")})
			ok(t, err)
			_, err = s.Get(t.Context(), "manifest/2", 10)
			want(t, err, ErrNotFound)
			ok(t, commit(t.Context()))
			for _, o := range append(slices.Clone(staged), Object{"manifest/2", []byte("two")}) {
				got, err := s.Get(t.Context(), o.Key, 10)
				ok(t, err)
				if string(got) != string(o.Data) {
					t.Errorf("%s is %q", o.Key, got)
				}
			}
		}
	})
}

func TestACommitOfAStageIsWonOnce(t *testing.T) {
	forEach(t, func(t *testing.T, s Store) {
		mine := func(n int) (func(context.Context) error, error) {
			return Stage(t.Context(), s, []Object{{fmt.Sprintf("gen-%d/x", n), []byte("x")}}, Object{"manifest/2", fmt.Append(nil, n)})
		}
		first, err := mine(1)
		ok(t, err)
		second, err := mine(2)
		ok(t, err)
		ok(t, second(t.Context()))
		want(t, first(t.Context()), ErrExists)
		if got, err := s.Get(t.Context(), "manifest/2", 10); string(got) != "2" || err != nil {
			t.Errorf("the winner's is %q, %v", got, err)
		}
	})
}

// TestStagesSurviveAPowerLossAtEveryCall kills the power before each call: where the
// last object is, all the others are whole, and what was acknowledged is there.
func TestStagesSurviveAPowerLossAtEveryCall(t *testing.T) {
	for at := 1; ; at++ {
		mem := fsx.NewMem()
		fault := fsx.NewFault(mem, func(c fsx.Call) fsx.Fate { return fsx.Fate{Crash: c.Mutates() && c.N == at} })
		err := stageAll(t.Context(), memLocal(t, fault))
		after := memLocal(t, mem.PowerLoss(nil))
		_, lastErr := after.Get(t.Context(), "manifest/2", 10)
		if err == nil && lastErr != nil {
			t.Fatalf("acknowledged, and gone after a power loss: %v", lastErr)
		}
		for _, o := range staged {
			got, err := after.Get(t.Context(), o.Key, 10)
			if lastErr == nil && (err != nil || string(got) != string(o.Data)) {
				t.Fatalf("crash at call %d left the last object and %s as %q, %v", at, o.Key, got, err)
			}
		}
		if err == nil && fault.Changes() < at {
			return
		}
	}
}

func TestAStageThatFailsLeavesNothingThatCounts(t *testing.T) {
	full := errors.New("no space left")
	for _, op := range []string{"create", "write", "sync", "syncdir", "mkdir"} {
		var n atomic.Int32
		fsys := fsx.NewFault(fsx.NewMem(), func(c fsx.Call) fsx.Fate {
			if c.Op != op {
				return fsx.Fate{}
			}
			if n.Add(1) < 4 { // the first ones succeed
				return fsx.Fate{}
			}
			return fsx.Fate{Err: full}
		})
		s := memLocal(t, fsys)
		want(t, stageAll(t.Context(), s), full)
		if got := list(t, s, ListOptions{}); len(got) != 0 {
			t.Errorf("%s fails, and %q are left", op, got)
		}
	}
}

// TestAStageSyncsEachDirectoryOnce counts what an append of a shard costs a disk.
func TestAStageSyncsEachDirectoryOnce(t *testing.T) {
	var mu sync.Mutex
	calls := map[string]int{}
	fsys := fsx.NewFault(fsx.NewMem(), func(c fsx.Call) fsx.Fate {
		mu.Lock()
		defer mu.Unlock()
		calls[c.Op]++
		return fsx.Fate{}
	})
	s := memLocal(t, fsys)
	ok(t, s.Put(t.Context(), "manifest/1", []byte("one"))) // the directories above are there
	clear(calls)
	ok(t, stageAll(t.Context(), s))
	got := maps.Clone(calls)
	for _, op := range []string{"stat", "open", "read"} {
		delete(got, op)
	}
	// The root, gen and its two directories, and manifest once the link is made.
	want := map[string]int{"create": 4, "write": 4, "sync": 4, "mkdir": 4, "syncdir": 5, "link": 1, "remove": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
