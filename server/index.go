package server

import (
	"context"
	"path"
	"strings"
	"sync"

	"github.com/foldlog/foldlog/metrics"
)

// index reads streams that have changed, several at a time, each by one.
type index struct {
	server *Server

	mu      sync.Mutex
	waiting map[string]bool // true while one reads it and there is news
	queue   []string
	ready   *sync.Cond
	ended   bool
}

// indexers is how many streams are read at once.
const indexers = 2

func newIndex(s *Server) *index {
	x := &index{server: s, waiting: map[string]bool{}}
	x.ready = sync.NewCond(&x.mu)
	return x
}

// add tells that a stream has changed. It never waits.
func (x *index) add(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, queued := x.waiting[path]; queued {
		x.waiting[path] = true
		return
	}
	x.waiting[path] = false
	x.queue = append(x.queue, path)
	x.ready.Signal()
}

// now reads what has come to a stream before it returns, so that whoever is told that it
// was taken finds it everywhere. Where very much is left to be read, the others do it.
func (x *index) now(path string) {
	more, err := x.server.store.Update(path)
	x.server.stats.indexed.Add(1)
	if more || err != nil {
		x.add(path)
	}
}

// pending is how many streams wait to be read.
func (x *index) pending() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(len(x.waiting))
}

func (x *index) run(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = true
		x.ready.Broadcast()
	})
	var workers sync.WaitGroup
	for range indexers {
		workers.Go(x.work)
	}
	workers.Wait()
}

func (x *index) work() {
	for {
		path, ok := x.next()
		if !ok {
			return
		}
		more, err := x.server.store.Update(path)
		x.server.stats.indexed.Add(1)
		if err != nil {
			x.server.stats.indexErrors.Add(1)
			x.server.log.Warn("stream not read", "stream", path, "err", err)
		}
		x.done(path, more && err == nil)
	}
}

func (x *index) next() (string, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.queue) == 0 && !x.ended {
		x.ready.Wait()
	}
	if x.ended {
		return "", false
	}
	path := x.queue[0]
	x.queue = x.queue[1:]
	x.waiting[path] = false
	return path, true
}

func (x *index) done(path string, more bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if more || x.waiting[path] {
		x.waiting[path] = false
		x.queue = append(x.queue, path)
		x.ready.Signal()
		return
	}
	delete(x.waiting, path)
}

// slugOf is the run of a stream. Of a stream in the layout of a root it is that of
// its directory, so that nobody can write into a run by what a line says.
func slugOf(name, says string) string {
	dir := path.Dir(name)
	if path.Dir(dir) != metrics.RunsDir || !strings.HasSuffix(name, metrics.Extension) {
		if metrics.CheckSlug(says) != nil {
			return ""
		}
		return says
	}
	if slug, err := metrics.DecodeSlug(path.Base(dir)); err == nil {
		return slug
	}
	if metrics.CheckSlug(says) == nil && metrics.EncodeSlug(says) == path.Base(dir) {
		return says
	}
	return ""
}
