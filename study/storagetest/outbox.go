package storagetest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldlog/foldlog/study"
)

// counting is a sampler that counts the trials it was told of in its state.
func counting(_ context.Context, _ *study.Trial, state *study.StateBlob) (study.Callback, error) {
	n := 0
	if state != nil {
		n, _ = strconv.Atoi(string(state.Data))
	}
	return study.Callback{State: &study.Blob{Kind: "count", Version: 1, Data: strconv.AppendInt(nil, int64(n+1), 10)}}, nil
}

func counted(s study.Storage, id study.StudyID) string {
	if b := s.Snapshot().State(study.SamplerScope(id)); b != nil {
		return string(b.Data)
	}
	return "0"
}

func fail(t *testing.T, s study.Storage, f study.Fence, retries uint64) {
	t.Helper()
	update(t, s, func(tx *study.Tx) error {
		return tx.LifecycleTerminal(f, study.FailedWith("boom"), &study.RetryPolicy{MaxRetries: retries})
	})
}

func deliver(t *testing.T, s study.Storage, h study.OutboxHandlers) []study.TrialID {
	t.Helper()
	created, err := study.DeliverOutbox(context.Background(), s, h)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func testOutbox(t *testing.T, open Factory) {
	for name, run := range map[string]func(*testing.T, Factory){
		"failures and stale trials are retried alike, up to the cap, with a lineage": testRetriesHaveALineage,
		"the end of a trial and what follows from it are one transaction":            testSettledWithTheEnd,
		"without handlers an external effect is left, its replacement is not":        testDeliveredWithoutHandlers,
		"a crash after any operation resumes and takes effect once":                  testDeliveryThatCrashes,
		"concurrent deliverers take effect once":                                     testConcurrentDeliverers,
		"a replacement is idempotent":                                                testReplacementTwice,
		"external effects wait for their handler":                                    testExternalEffectsWait,
	} {
		t.Run(name, func(t *testing.T) { run(t, open) })
	}
}

// A11, A12
func testRetriesHaveALineage(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	f := claimed(t, s, id, 7)
	update(t, s, func(tx *study.Tx) error {
		return tx.LifecycleFenced(f, &study.MutateReport{Step: 1, Values: []float64{0.5}})
	})
	for attempt := range uint64(3) {
		if attempt%2 == 0 {
			fail(t, s, f, 3)
		} else {
			o := observation(trial(t, s, f.Trial))
			update(t, s, func(tx *study.Tx) error { return tx.LifecycleFailStale(o, "stale", &study.RetryPolicy{MaxRetries: 3}) })
		}
		created := deliver(t, s, study.OutboxHandlers{Sampler: counting})
		if len(created) != 1 {
			t.Fatalf("attempt %d: created %v", attempt, created)
		}
		tr := trial(t, s, created[0])
		if parent, _ := tr.Parent(); tr.Attempt != attempt+2 || tr.MaxAttempts != 4 || parent != f.Trial || !tr.Managed {
			t.Fatalf("replacement %+v", tr)
		}
		if len(tr.Template.Fixed) != 4 || tr.Template.Fixed[0].Name != "layers" || *tr.Template.Parent != f.Trial {
			t.Fatalf("template %+v", tr.Template)
		}
		update(t, s, func(tx *study.Tx) (err error) {
			f, err = tx.LifecycleClaim(tr.ID, study.Claim{Worker: 8})
			return err
		})
	}
	fail(t, s, f, 3)
	if created := deliver(t, s, study.OutboxHandlers{Sampler: counting}); created != nil {
		t.Errorf("a fifth attempt: %v", created)
	}
	chain, err := s.Snapshot().Lineage(f.Trial)
	if err != nil || len(chain) != 4 || chain[3].NumReports() != 1 {
		t.Errorf("lineage %v, %v", chain, err)
	}
	if st, _ := s.Snapshot().Study(id); counted(s, id) != "4" || s.Snapshot().NumPending() != 0 || st.Reserved() != 1 {
		t.Errorf("sampler heard of %s trials, %d pending, %d reserved", counted(s, id), s.Snapshot().NumPending(), st.Reserved())
	}
}

func testSettledWithTheEnd(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	f := claimed(t, s, id, 7)
	key := study.EntryKey{Trial: f.Trial, Epoch: f.Epoch}
	var created []study.TrialRef
	end := func(tx *study.Tx) (err error) {
		if err = tx.LifecycleTerminal(f, study.FailedWith("boom"), &study.RetryPolicy{MaxRetries: 1}); err == nil {
			created, err = tx.OutboxSettle(key)
		}
		return err
	}
	if err := s.Update(context.Background(), func(tx *study.Tx) error { return errors.Join(end(tx), errCrash) }); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	if tr := trial(t, s, f.Trial); tr.State != study.Running || s.Snapshot().NumTrials() != 1 {
		t.Fatalf("half of it is there: %v, %d trials", tr.State, s.Snapshot().NumTrials())
	}
	update(t, s, end)
	if len(created) != 1 || s.Snapshot().NumPending() != 0 {
		t.Fatalf("created %v, %d pending", created, s.Snapshot().NumPending())
	}
	tr := trial(t, s, created[0].ID)
	if parent, _ := tr.Parent(); parent != f.Trial || tr.Attempt != 2 || tr.MaxAttempts != 2 || tr.State != study.Waiting {
		t.Errorf("replacement %+v", tr)
	}
	update(t, s, func(tx *study.Tx) (err error) {
		created, err = tx.OutboxSettle(key)
		return err
	})
	if again := deliver(t, s, study.OutboxHandlers{}); created != nil || again != nil || s.Snapshot().NumTrials() != 2 {
		t.Errorf("settled again: %v, %v, %d trials", created, again, s.Snapshot().NumTrials())
	}
}

func testDeliveredWithoutHandlers(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	f := claimed(t, s, id, 7)
	fail(t, s, f, 1)
	key := study.EntryKey{Trial: f.Trial, Epoch: f.Epoch}
	update(t, s, func(tx *study.Tx) error {
		return tx.OutboxAdvance(key, study.PhaseSampler, study.Advance{Effects: []study.Effect{{Name: "mail", Payload: []byte("1")}}})
	})
	created := deliver(t, s, study.OutboxHandlers{})
	if again := deliver(t, s, study.OutboxHandlers{}); len(created) != 1 || again != nil || s.Snapshot().NumPending() != 1 {
		t.Errorf("created %v, then %v, %d pending", created, again, s.Snapshot().NumPending())
	}
	mail := study.OutboxHandlers{External: func(context.Context, study.EffectKey, []byte) error { return nil }}
	if created := deliver(t, s, mail); created != nil || s.Snapshot().NumPending() != 0 || s.Snapshot().NumTrials() != 2 {
		t.Errorf("created %v, %d pending, %d trials", created, s.Snapshot().NumPending(), s.Snapshot().NumTrials())
	}
}

func testDeliveryThatCrashes(t *testing.T, open Factory) {
	for stop := range 6 {
		s := open(t)
		id := newStudy(t, s, config("a"))
		fail(t, s, claimed(t, s, id, 7), 1)
		crashing := &limited{Storage: s, left: stop}
		h := study.OutboxHandlers{Sampler: counting, Scheduler: withExternal, External: func(context.Context, study.EffectKey, []byte) error { return nil }}
		_, err := study.DeliverOutbox(context.Background(), crashing, h)
		if stop < 3 && !errors.Is(err, errCrash) {
			t.Fatalf("stop %d: got %v", stop, err)
		}
		deliver(t, s, h)
		deliver(t, s, h)
		if st, _ := s.Snapshot().Study(id); st.NumTrials() != 2 || counted(s, id) != "1" || s.Snapshot().NumPending() != 0 {
			t.Errorf("stop %d: %d trials, sampler heard of %s, %d pending", stop, st.NumTrials(), counted(s, id), s.Snapshot().NumPending())
		}
	}
}

func testConcurrentDeliverers(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	for w := range uint64(10) {
		fail(t, s, claimed(t, s, id, w), 1)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { deliver(t, s, study.OutboxHandlers{Sampler: counting}) })
	}
	wg.Wait()
	if st, _ := s.Snapshot().Study(id); st.NumTrials() != 20 || counted(s, id) != "10" || s.Snapshot().NumPending() != 0 {
		t.Errorf("%d trials, sampler heard of %s, %d pending", st.NumTrials(), counted(s, id), s.Snapshot().NumPending())
	}
}

func testReplacementTwice(t *testing.T, open Factory) {
	s := open(t)
	id := newStudy(t, s, config("a"))
	f := claimed(t, s, id, 7)
	fail(t, s, f, 1)
	key := study.EntryKey{Trial: f.Trial, Epoch: f.Epoch}
	effect := study.EffectKey{Trial: f.Trial, Epoch: f.Epoch, Effect: study.RetryEffect}
	update(t, s, func(tx *study.Tx) error {
		if _, early := tx.OutboxReplacement(effect); !errors.Is(early, study.ErrConflict) {
			t.Errorf("before its phase: %v", early)
		}
		return errors.Join(tx.OutboxAdvance(key, study.PhaseSampler, study.Advance{}), tx.OutboxAdvance(key, study.PhaseScheduler, study.Advance{}))
	})
	var refs [2]study.TrialRef
	for i := range refs {
		update(t, s, func(tx *study.Tx) (err error) {
			refs[i], err = tx.OutboxReplacement(effect)
			return err
		})
	}
	if refs[0] != refs[1] || s.Snapshot().NumTrials() != 2 {
		t.Errorf("%+v, %d trials", refs, s.Snapshot().NumTrials())
	}
	if err := s.Update(context.Background(), func(tx *study.Tx) error {
		return tx.OutboxAdvance(key, study.PhaseSampler, study.Advance{})
	}); !errors.Is(err, study.ErrConflict) {
		t.Errorf("a phase twice: %v", err)
	}
}

func testExternalEffectsWait(t *testing.T, open Factory) {
	s := open(t)
	f := claimed(t, s, newStudy(t, s, config("a")), 7)
	fail(t, s, f, 0)
	deliver(t, s, study.OutboxHandlers{Scheduler: withExternal})
	if s.Snapshot().NumPending() != 1 {
		t.Fatal("the entry is done without its effect")
	}
	boom := errors.New("boom")
	var calls []string
	external := func(_ context.Context, key study.EffectKey, payload []byte) error {
		calls = append(calls, key.Effect+" "+string(payload))
		if len(calls) == 1 {
			return boom
		}
		return nil
	}
	if _, err := study.DeliverOutbox(context.Background(), s, study.OutboxHandlers{External: external}); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	deliver(t, s, study.OutboxHandlers{External: external})
	if diff := cmp.Diff([]string{`mail {"a":1,"b":2}`, `mail {"a":1,"b":2}`}, calls); diff != "" || s.Snapshot().NumPending() != 0 {
		t.Errorf("%s%d pending", diff, s.Snapshot().NumPending())
	}
}

func withExternal(context.Context, *study.Trial, *study.StateBlob) (study.Callback, error) {
	return study.Callback{Effects: []study.Effect{{Name: "mail", Payload: []byte(`{"b":2,"a":1}`)}}}, nil
}

var errCrash = errors.New("crash")

// limited is a storage that dies after some updates.
type limited struct {
	study.Storage
	left int
}

func (l *limited) Update(ctx context.Context, fn func(tx *study.Tx) error) error {
	if l.left == 0 {
		return errCrash
	}
	l.left--
	return l.Storage.Update(ctx, fn)
}
