package study

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// manyKeys spells members with names of their own, the first of them again at the end.
func manyKeys(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%s,`, i, value)
	}
	return b.String() + `"k0":` + value
}

// TestVeryManyKeysAreLookedThroughOnce takes for ever where each key is compared with
// all keys before it.
func TestVeryManyKeysAreLookedThroughOnce(t *testing.T) {
	const n = 1 << 19
	for name, op := range map[string]string{
		"unknown fields":   `{"kind":"transition","trial":0,"from":"Waiting","to":"Running",` + manyKeys(n, "0") + `}`,
		"fixed parameters": `{"kind":"create-trial","study":0,"trial":0,"number":0,"template":{"fixed":{` + manyKeys(n, `{"I64":0}`) + `},"parent":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			_, err := d.Decode([]byte(op))
			if !errors.Is(err, ErrField) || !strings.Contains(err.Error(), "k0") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// takenBack is a storage whose history loses the end of a trial after the first look, as
// by a power loss of the machine that has the journal.
type takenBack struct {
	Storage
	first *Snapshot
}

func (s *takenBack) Snapshot() *Snapshot {
	if snap := s.first; snap != nil {
		s.first = nil
		return snap
	}
	return s.Storage.Snapshot()
}

func TestOutboxOfATrialWhoseEndWasTakenBack(t *testing.T) {
	running := func() (*Memory, Fence) {
		m := NewMemory(MemoryOptions{})
		var f Fence
		err := m.Update(t.Context(), func(tx *Tx) error {
			id, err := tx.CreateStudy(Config{Name: "a", Directions: []Direction{Minimize}})
			ref, err2 := tx.LifecycleReserve(id, nil, 0)
			var err3 error
			f, err3 = tx.LifecycleClaim(ref.ID, Claim{From: Waiting, HeartbeatMillis: 1})
			return errors.Join(err, err2, err3)
		})
		if err != nil {
			t.Fatal(err)
		}
		return m, f
	}
	ended, f := running()
	err := ended.Update(t.Context(), func(tx *Tx) error {
		return tx.LifecycleTerminal(f, FailedWith("x"), &RetryPolicy{MaxRetries: 1})
	})
	if err != nil || ended.Snapshot().NumPending() != 1 {
		t.Fatal(err)
	}
	before, _ := running()
	h := OutboxHandlers{Sampler: func(context.Context, *Trial, *StateBlob) (Callback, error) { return Callback{}, nil }}
	if _, err := DeliverOutbox(t.Context(), &takenBack{before, ended.Snapshot()}, h); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}
