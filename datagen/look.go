package datagen

import (
	"context"
	"sync"

	"github.com/foldlog/foldlog/lance/memwal"
)

// looker shares fresh views: who asks while one is being planned gets the next one,
// which begins later, so it has everything that was acknowledged before the question.
type looker struct {
	plan func(context.Context) (*memwal.View, error)

	mu   sync.Mutex
	next *look

	planning sync.Mutex
}

type look struct {
	done chan struct{}
	view *memwal.View
	err  error
}

// fresh returns a view that was begun after the call.
func (l *looker) fresh(ctx context.Context) (*memwal.View, error) {
	l.mu.Lock()
	k := l.next
	if k == nil {
		k = &look{done: make(chan struct{})}
		l.next = k
		go l.run(context.WithoutCancel(ctx), k)
	}
	l.mu.Unlock()
	select {
	case <-k.done:
		return k.view, k.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *looker) run(ctx context.Context, k *look) {
	l.planning.Lock()
	defer l.planning.Unlock()
	l.mu.Lock()
	l.next = nil
	l.mu.Unlock()
	k.view, k.err = l.plan(ctx)
	close(k.done)
}
