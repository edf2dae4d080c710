package datagen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// brittle is a store that fails the calls of an outage, which begins when it is told so.
type brittle struct {
	objstore.Store
	left   atomic.Int64 // calls that fail
	failed atomic.Int64
}

func newBrittle(s objstore.Store) *brittle {
	b := &brittle{}
	b.Store = objstore.NewFault(s, func(objstore.Call) objstore.Fate {
		if b.left.Add(-1) < 0 {
			return objstore.Fate{}
		}
		b.failed.Add(1)
		return objstore.Fate{Err: errors.New("storage is down")}
	})
	return b
}

// patient are options under which writers outlast an outage of some calls.
var patient = Options{LeaseTerm: 10 * time.Second, RetryFor: time.Minute}

// TestClaimsOutlastAnOutage has the storage fail at every stage of working on a list.
func TestClaimsOutlastAnOutage(t *testing.T) {
	mem := objstore.NewMemory()
	store := newBrittle(mem)
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", patient)
	check(t, err)
	w := newWriter(t, l)
	keys := []string{"a", "b", "c", "d", "e"}
	const calls = 4
	store.left.Store(calls)
	claims, err := w.Claims(t.Context(), keys, ClaimsOptions{})
	check(t, err)
	ran := map[string]int{}
	for {
		store.left.Store(calls)
		s, err := claims.Next(t.Context())
		if err == io.EOF {
			break
		}
		check(t, err)
		ran[s.ID()]++
		store.left.Store(calls)
		check(t, s.Checkpoint(t.Context(), step(0), []Change{set("x", 1)}))
		store.left.Store(calls)
		check(t, s.End(t.Context(), EndCompleted))
	}
	if failed := store.failed.Load(); failed < int64(3*calls*len(keys)) {
		t.Errorf("%d calls failed", failed)
	}
	store.left.Store(0)
	check(t, w.Close(t.Context()))
	got := outcome(t, mem)
	for _, key := range keys {
		if ran[key] != 1 || got[key] != "completed x=1" {
			t.Errorf("%s ran %d times: %s", key, ran[key], got[key])
		}
	}
	stats, err := newLog(t, mem).Verify(t.Context(), func(err error) { t.Error(err) })
	check(t, err)
	if stats.Items != len(keys) || stats.Events != int64(4*len(keys)) {
		t.Errorf("verified %+v", stats)
	}
}

func TestAnOutageThatLastsIsToldInTheEnd(t *testing.T) {
	store := newBrittle(objstore.NewMemory())
	opts := patient
	opts.RetryFor = 50 * time.Millisecond
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", opts)
	check(t, err)
	w := newWriter(t, l)
	claims, err := w.Claims(t.Context(), []string{"a"}, ClaimsOptions{})
	check(t, err)
	store.left.Store(1 << 40)
	_, openErr := w.Open(t.Context(), "b", CreateOptions{})
	_, nextErr := claims.Next(t.Context())
	store.left.Store(0)
	if openErr == nil || nextErr == nil || !outage(openErr) || !outage(nextErr) {
		t.Errorf("errors %v and %v", openErr, nextErr)
	}
	for _, key := range []string{"a", "b"} { // nothing stays reserved
		s, err := w.Open(t.Context(), key, CreateOptions{})
		check(t, err)
		check(t, s.End(t.Context(), EndCompleted))
	}
}

func TestOnlyFailuresOfTheStorageAreOutages(t *testing.T) {
	in := func(err error) error { return fmt.Errorf("open: %w", &objstore.Error{Op: "get", Key: "k", Err: err}) }
	for err, want := range map[error]bool{
		in(errors.New("503")):              true,
		in(objstore.ErrAmbiguous):          true,
		in(context.DeadlineExceeded):       true,
		in(context.Canceled):               false,
		in(objstore.ErrNotFound):           false,
		errors.New("column k"):             false,
		errors.Join(ErrFenced, in(io.EOF)): false,
	} {
		if outage(err) != want {
			t.Errorf("%v: outage %t", err, !want)
		}
	}
}
