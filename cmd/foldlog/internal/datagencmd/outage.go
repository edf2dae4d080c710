package datagencmd

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/remote"
)

// outageTeller tells people of outages of the storage, and counts them.
type outageTeller struct {
	note func(format string, args ...any)

	mu     sync.Mutex
	count  int
	waited time.Duration // in those that are over
	began  time.Time     // of the one that is not
}

// tell is a datagen.Options.OnOutage.
func (t *outageTeller) tell(o datagen.Outage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.Took == 0 {
		t.count++
		t.began = o.Began
		t.note("the storage fails, and is tried again for up to %v: %v", datagen.DefaultRetryFor, storageCause(o.Err))
		return
	}
	t.waited, t.began = t.waited+o.Took, time.Time{}
	t.note("the storage is back after %s", cli.Duration(o.Took))
}

// storageCause is what the storage says, without which of its objects it says that of.
func storageCause(err error) error {
	var failed *objstore.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// total is how many outages there were, and how long they took so far.
func (t *outageTeller) total() (count int, waited time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if waited = t.waited; !t.began.IsZero() {
		waited += time.Since(t.began)
	}
	return t.count, waited
}

// serverPatience is for how long one call to a server that is away is tried again.
const serverPatience = 2 * time.Second

// openBefore is openWriter for a run that its first interrupt ends while it waits to
// open, and that goes on writing after one that comes later.
func openBefore(first context.Context, ref logkind.DatagenRef, run string, outages *outageTeller) (*datagen.Writer, *datagen.Log, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(first))
	opened := context.AfterFunc(first, cancel)
	w, l, err := openWriter(ctx, ref, run, outages)
	if opened() && err == nil {
		return w, l, nil // which go on with ctx
	}
	cancel()
	if err == nil {
		_ = w.Close(context.WithoutCancel(ctx))
	}
	if first.Err() != nil {
		err = context.Cause(first)
	}
	return nil, nil, err
}

// openWriter opens a writer on a log, which is made if there is none. Outages are waited
// out, and told.
func openWriter(ctx context.Context, ref logkind.DatagenRef, run string, outages *outageTeller) (*datagen.Writer, *datagen.Log, error) {
	if ref.Server != nil { // it is the log that waits, and tells
		ref.Server = &remote.Client{Base: ref.Server.Base, Token: ref.Server.Token, Patience: serverPatience}
	}
	store, err := ref.Store()
	if err != nil {
		return nil, nil, err
	}
	l, err := datagen.OpenOrCreate(ctx, store, ref.Pipeline, ref.Experiment, datagen.Options{OnOutage: outages.tell})
	if err != nil {
		return nil, nil, err
	}
	w, err := l.NewWriter(ctx, datagen.WriterOptions{Run: run})
	return w, l, err
}
