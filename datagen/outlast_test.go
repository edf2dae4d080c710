package datagen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
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
	if !errors.Is(openErr, ErrOutage) || !errors.Is(nextErr, ErrOutage) {
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
		in(syscall.ENOSPC):                 true,
		in(objstore.ErrNotFound):           false,
		in(objstore.ErrDenied):             false,
		in(objstore.ErrNoBucket):           false,
		in(objstore.ErrRefused):            false,
		in(fs.ErrPermission):               false,
		in(syscall.ENOTDIR):                false,
		errors.New("column k"):             false,
		errors.Join(ErrFenced, in(io.EOF)): false,
	} {
		if outage(err) != want {
			t.Errorf("%v: outage %t", err, !want)
		}
	}
}

// TestAWriterBeginsOnceTheStorageIsBack has the storage fail before there is a log.
func TestAWriterBeginsOnceTheStorageIsBack(t *testing.T) {
	store := newBrittle(objstore.NewMemory())
	store.left.Store(5)
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", patient)
	check(t, err)
	store.left.Store(5)
	w := newWriter(t, l)
	if failed := store.failed.Load(); failed != 10 {
		t.Errorf("%d calls failed", failed)
	}
	check(t, w.Close(t.Context()))
	writers, err := l.Writers(t.Context())
	if err != nil || len(writers) > 1 {
		t.Errorf("left %v: %v", writers, err)
	}
}

// TestWhatTheStorageRefusesIsNotTriedAgain counts the calls of a store that will not
// change its mind.
func TestWhatTheStorageRefusesIsNotTriedAgain(t *testing.T) {
	refused := objstore.Fate{}
	calls := 0
	store := objstore.NewFault(objstore.NewMemory(), func(objstore.Call) objstore.Fate {
		if refused.Err != nil {
			calls++
		}
		return refused
	})
	// Nothing but the test calls the store: no lease is renewed meanwhile.
	unhurried := Options{LeaseTerm: 12 * time.Hour, RetryFor: time.Minute}
	l, err := OpenOrCreate(t.Context(), store, "digits", "first", unhurried)
	check(t, err)
	w := newWriter(t, l)
	s, err := w.Open(t.Context(), "a", CreateOptions{})
	check(t, err)
	for what, do := range map[string]func() error{
		"OpenOrCreate": func() error {
			_, err := OpenOrCreate(t.Context(), store, "digits", "second", unhurried)
			return err
		},
		"NewWriter": func() error {
			_, err := l.NewWriter(t.Context(), WriterOptions{})
			return err
		},
		"Open": func() error {
			_, err := w.Open(t.Context(), "b", CreateOptions{})
			return err
		},
		"Checkpoint": func() error { return s.Checkpoint(t.Context(), step(0), nil) },
	} {
		refused.Err, calls = objstore.ErrDenied, 0
		err := do()
		refused.Err = nil
		if !errors.Is(err, objstore.ErrDenied) || errors.Is(err, ErrOutage) || calls > 10 {
			t.Errorf("%s after %d calls: %v", what, calls, err)
		}
	}
	refused.Err, calls = objstore.ErrDenied, 0
	if err := w.Close(t.Context()); !errors.Is(err, objstore.ErrDenied) || calls > 10 {
		t.Errorf("Close after %d calls: %v", calls, err)
	}
}

func TestOutagesAreToldOnceAndWhenTheyAreOver(t *testing.T) {
	synctest.Test(t, outagesAreToldOnceAndWhenTheyAreOver)
}

func outagesAreToldOnceAndWhenTheyAreOver(t *testing.T) {
	var told []Outage
	o := outages{tell: func(x Outage) { told = append(told, x) }}
	down := errors.New("down")
	o.failed(down) // a moment is not told
	o.over()
	o.failed(down)
	time.Sleep(2 * toldAfter)
	for range 3 { // of those who wait at the same time
		o.failed(down)
	}
	for range 3 {
		o.over()
	}
	if len(told) != 2 || told[0].Took != 0 || told[0].Err != down || told[1].Took < 2*toldAfter || told[0].Began != told[1].Began {
		t.Errorf("told %+v", told)
	}
}
