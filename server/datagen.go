package server

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// datagens are the datagen logs under the root.
type datagens struct {
	server *Server

	mu   sync.RWMutex
	logs map[string]*datagenLog // by the path of the dataset
	byID map[string]*datagenLog

	work sync.WaitGroup // what goes on beside requests
	made atomic.Int64   // how often an index was brought up to date
	held atomic.Int64   // items of the indexes in memory
}

// datagenLog is one experiment. Lists are answered from an index in memory, which is
// stored with the projections; the rest is read from the log.
type datagenLog struct {
	owner                *datagens
	path, id             string
	base                 string // what Directory is in, under the root
	pipeline, experiment string

	mu      sync.Mutex // over what follows
	log     *datagen.Log
	index   *datagen.Index // nil while nobody needs it
	saved   uint64         // the version that is stored
	held    int            // items that it counts for
	gone    bool
	item    wire.ExperimentItem // as of the last look
	mark    string              // of the state of the log at the last look
	err     error
	used    time.Time // when somebody asked last
	moved   time.Time // when it changed last
	looked  time.Time
	reading *indexReading // that goes on
	next    *indexReading // that begins when it has ended, for those who came later

	refreshing sync.Mutex // one at a time, so that nothing is told after what came later

	// acked counts what clients of this server have changed, seen is what acked was when
	// the last look began.
	acked, seen atomic.Int64

	writing sync.Mutex // over what follows
	writer  *datagenWriter
}

const (
	// datagenHot is for how long a log that changed or was asked for is looked at
	// often, every datagenEvery; others are looked at every datagenCold.
	datagenHot   = 2 * time.Minute
	datagenEvery = 200 * time.Millisecond
	datagenCold  = 5 * time.Second
	// indexIdle is how long an index stays in memory that nobody asks for, if there are
	// more than mostIdleItems in all indexes: some 200 MB. An index that is let go of is
	// read again when somebody asks.
	indexIdle     = 5 * time.Minute
	mostIdleItems = 1_200_000
	// datagenRetry is for how long what the disk fails is tried again: clients are told
	// soon, and try again themselves.
	datagenRetry = time.Second
	// indexWait is how long a request waits for an index that is being made.
	indexWait = 5 * time.Second
)

// indexReading is one reading of what is new, for all who asked before it began.
type indexReading struct {
	done  chan struct{}
	index *datagen.Index
	err   error
}

// datagenOptions are how the server opens logs.
var datagenOptions = datagen.Options{RetryFor: datagenRetry}

func newDatagens(s *Server) *datagens {
	return &datagens{server: s, logs: map[string]*datagenLog{}, byID: map[string]*datagenLog{}}
}

// datagenPlace takes the path of a dataset under the root apart.
func datagenPlace(name string) (base, pipeline, experiment string, ok bool) {
	parts := strings.Split(name, "/")
	n := len(parts)
	if n < 4 || parts[n-1] != "log.lance" || parts[n-4] != datagen.Directory ||
		datagen.CheckName(parts[n-3]) != nil || datagen.CheckName(parts[n-2]) != nil {
		return "", "", "", false
	}
	return strings.Join(parts[:n-4], "/"), parts[n-3], parts[n-2], true
}

func datagenID(name string) string {
	sum := sha256.Sum256([]byte("datagen\x00" + name))
	return hex.EncodeToString(sum[:8])
}

// look takes note of a directory that may be a log.
func (d *datagens) look(name string) *datagenLog {
	base, pipeline, experiment, ok := datagenPlace(name)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.logs[name]
	if l == nil {
		l = &datagenLog{owner: d, path: name, id: datagenID(name), base: base, pipeline: pipeline, experiment: experiment}
		l.item = wire.ExperimentItem{ID: l.id, Path: name, Pipeline: pipeline, Experiment: experiment}
		d.logs[name], d.byID[l.id] = l, l
	}
	return l
}

// wrote takes note that a client has changed a file of a log.
func (d *datagens) wrote(key string) {
	name, _, ok := strings.Cut(key, "/log.lance/")
	d.mu.RLock()
	l := d.logs[name+"/log.lance"]
	d.mu.RUnlock()
	if ok && l != nil {
		l.wrote()
	}
}

// wrote takes note that a client has changed the log.
func (l *datagenLog) wrote() {
	l.acked.Add(1)
	l.mu.Lock()
	l.moved = time.Now() // so that it is looked at soon
	l.mu.Unlock()
}

// keep forgets the logs that were known before a scan and that it has not seen.
func (d *datagens) keep(known []*datagenLog, seen map[string]bool) {
	d.mu.Lock()
	var gone []*datagenLog
	for _, l := range known {
		if !seen[l.path] && d.logs[l.path] == l {
			delete(d.logs, l.path)
			delete(d.byID, l.id)
			gone = append(gone, l)
		}
	}
	d.mu.Unlock()
	for _, l := range gone {
		l.mu.Lock()
		l.gone = true
		l.count()
		l.mu.Unlock()
		d.server.live.change("experiment-gone", l.id, func() (any, bool) { return goneItem{ID: l.id}, true })
		l.endWriter()
	}
}

func (d *datagens) all() []*datagenLog {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.SortedFunc(maps.Values(d.logs), func(a, b *datagenLog) int { return strings.Compare(a.path, b.path) })
}

func (d *datagens) count() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.logs)
}

// run follows the logs until ctx ends.
func (d *datagens) run(ctx context.Context) {
	tick := time.NewTicker(datagenEvery)
	defer tick.Stop()
	for {
		for _, l := range d.all() {
			if ctx.Err() != nil {
				return
			}
			if l.due() {
				l.follow(ctx)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// close ends the writers and stores the indexes. What a writer has acknowledged is
// durable, and an index can be made again: a disk that is full is no error here.
func (d *datagens) close() {
	d.work.Wait()
	for _, l := range d.all() {
		l.endWriter()
		l.store()
	}
}

// due tells whether it is time to look at a log.
func (l *datagenLog) due() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	every := datagenCold
	if time.Since(l.used) < datagenHot || time.Since(l.moved) < datagenHot {
		every = datagenEvery
	}
	return time.Since(l.looked) >= every
}

// follow takes in what is new. It opens what is needed and lets go of what is not.
func (l *datagenLog) follow(ctx context.Context) {
	l.mu.Lock()
	l.looked = time.Now()
	l.mu.Unlock()
	moved, err := l.changed(ctx)
	if err == nil && moved {
		_, err = l.refresh(ctx)
	}
	if err != nil && ctx.Err() == nil {
		l.fault(err)
	}
	l.rest()
	l.endIdleWriter()
}

// changed tells whether the log is in another state than at the last look.
func (l *datagenLog) changed(ctx context.Context) (bool, error) {
	log, err := l.open(ctx)
	if err != nil {
		return false, err
	}
	v, err := log.Table().View(ctx)
	if err != nil {
		return false, err
	}
	mark := fmt.Sprint(v.Base().Version())
	for _, src := range v.Sources() {
		mark += fmt.Sprint(" ", src.Place)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if mark == l.mark {
		return false, nil
	}
	first := l.mark == ""
	if l.mark = mark; !first {
		l.moved = time.Now()
	}
	return true, nil
}

// open opens the log, once.
func (l *datagenLog) open(ctx context.Context) (*datagen.Log, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.log == nil {
		log, err := datagen.Open(ctx, l.owner.server.objects(l.base), l.pipeline, l.experiment, datagenOptions)
		if err != nil {
			return nil, err
		}
		l.log = log
	}
	return l.log, nil
}

// objects is the store of what lies in a directory under the root.
func (s *Server) objects(base string) objstore.Store { return objstore.Prefix(s.files, base) }

// openFiles makes the root a store. No key leads out of it.
func (s *Server) openFiles() (err error) {
	s.files, err = objstore.OpenLocal(s.base, objstore.LocalOptions{FS: belowRoot{fsx.InRoot(s.root), filepath.Dir(s.base)}})
	return err
}

// belowRoot is the file system under the root. That the root itself is durable in its
// parent is not the server's to see to.
type belowRoot struct {
	fsx.FS
	parent string
}

// SyncDir implements fsx.FS.
func (b belowRoot) SyncDir(name string) error {
	if name == b.parent {
		return nil
	}
	return b.FS.SyncDir(name)
}

// refresh brings the index up to date and tells who watches.
func (l *datagenLog) refresh(ctx context.Context) (*datagen.Index, error) {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	acked := l.acked.Load()
	x, err := l.loaded(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := x.Update(ctx); err != nil {
		return nil, err
	}
	l.seen.Store(acked)
	l.owner.made.Add(1)
	item := l.itemOf(x)
	l.mu.Lock()
	news := item.Seq != l.item.Seq || !l.item.Ready
	l.item, l.err = item, nil
	l.mu.Unlock()
	if news {
		l.owner.server.live.change("experiment", l.id, func() (any, bool) { return item, true })
	}
	return x, nil
}

// fault remembers why a log cannot be read, and tells it once.
func (l *datagenLog) fault(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil || l.err.Error() != err.Error() {
		l.owner.server.log.Warn("datagen log not read", "log", l.path, "err", err)
	}
	l.err, l.mark = err, ""
	if errors.Is(err, datagen.ErrNoLog) {
		l.log = nil // it may come back as another one
	}
}

// loaded is the index, read from what was stored if need be. One goroutine at a time
// asks for it; the others go on meanwhile.
func (l *datagenLog) loaded(ctx context.Context) (*datagen.Index, error) {
	log, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	x := l.index
	l.mu.Unlock()
	if x != nil {
		return x, nil
	}
	if x, err = loadIndex(log, l.storedPath()); err != nil {
		x = log.NewIndex()
	}
	// A server that was killed has told of versions after the one that it stored.
	x.StartAt(max(x.Version(), uint64(time.Now().UnixMilli())))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index, l.saved = x, x.Version()
	return x, nil
}

func (l *datagenLog) storedPath() string {
	return filepath.Join(l.owner.server.cache, "datagen-"+l.id)
}

func loadIndex(log *datagen.Log, path string) (*datagen.Index, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return log.LoadIndex(bufio.NewReaderSize(f, 256<<10), info.Size())
}

// save stores the index, if there is one that has changed. One goroutine at a time does.
func (l *datagenLog) save() error {
	l.mu.Lock()
	x, saved := l.index, l.saved
	l.mu.Unlock()
	if x == nil || x.Version() == saved {
		return nil
	}
	version := x.Version()
	if err := saveIndex(x, l.storedPath()); err != nil {
		return fmt.Errorf("store index: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.index == x {
		l.saved = version
	}
	return nil
}

func saveIndex(x *datagen.Index, path string) error {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 256<<10)
	if err := errors.Join(x.Save(w), w.Flush(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, path)
}

// store saves the index if it can.
func (l *datagenLog) store() bool {
	err := l.save()
	if err != nil && !errors.Is(err, datagen.ErrIndexMoved) {
		l.owner.server.log.Warn("index not stored", "log", l.path, "err", err)
	}
	return err == nil
}

// rest stores an index that has come to rest, and lets go of one that nobody uses if
// others need the memory.
func (l *datagenLog) rest() {
	l.mu.Lock()
	l.count()
	resting := l.index != nil && l.reading == nil && time.Since(l.moved) >= 10*time.Second
	l.mu.Unlock()
	if !resting || !l.store() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	much := l.owner.held.Load() > mostIdleItems
	if much && l.index != nil && l.reading == nil && l.index.Version() == l.saved && time.Since(l.used) > indexIdle {
		l.index = nil
		l.count()
	}
}

// count keeps the sum of the items of all indexes right. The caller holds the lock.
func (l *datagenLog) count() {
	items := 0
	if l.index != nil && !l.gone {
		items = l.index.Len()
	}
	l.owner.held.Add(int64(items - l.held))
	l.held = items
}

// ready is the index for a request, with everything that was in the log when the request
// came. While it is being made the answer is 503, after some patience.
func (l *datagenLog) ready(ctx context.Context) (*datagen.Index, error) {
	r := l.nextReading()
	wait := time.NewTimer(indexWait)
	defer wait.Stop()
	select {
	case <-r.done:
		return r.index, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-wait.C:
		return nil, problem(http.StatusServiceUnavailable, "the list of items is being made: ask again")
	}
}

// catchUp waits until the logs that clients have changed are as far as the clients were
// told, but no longer than for an index that is being made.
func (d *datagens) catchUp(ctx context.Context) {
	var readings []*indexReading
	for _, l := range d.all() {
		if l.acked.Load() != l.seen.Load() {
			readings = append(readings, l.nextReading())
		}
	}
	ctx, cancel := context.WithTimeout(ctx, indexWait)
	defer cancel()
	for _, r := range readings {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

// nextReading is one that has not begun: another that goes on may have passed by what the
// client was told is in the log.
func (l *datagenLog) nextReading() *indexReading {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.next == nil {
		l.next = &indexReading{done: make(chan struct{})}
		if l.reading == nil {
			l.reading, l.next = l.next, nil
			r := l.reading
			l.owner.work.Go(func() { l.read(r) })
			return r
		}
	}
	return l.next
}

// read brings the index up to date for those who wait, as long as there are some.
func (l *datagenLog) read(r *indexReading) {
	for r != nil {
		r.index, r.err = l.refresh(l.owner.server.stopped)
		if r.err != nil {
			l.fault(r.err)
		}
		close(r.done)
		l.mu.Lock()
		l.reading, l.next = l.next, nil
		r = l.reading
		l.mu.Unlock()
	}
}

// experiment finds a log or answers 404.
func (s *Server) experiment(id string) (*datagenLog, error) {
	s.datagens.mu.RLock()
	l := s.datagens.byID[id]
	s.datagens.mu.RUnlock()
	if l == nil {
		return nil, problem(http.StatusNotFound, fmt.Sprintf("there is no experiment %.100q", id))
	}
	return l, nil
}

// indexed is an experiment whose index is there.
func (s *Server) indexed(ctx context.Context, id string) (*datagenLog, *datagen.Index, error) {
	l, err := s.experiment(id)
	if err != nil {
		return nil, nil, err
	}
	x, err := l.ready(ctx)
	if err != nil {
		return nil, nil, s.answer(err)
	}
	return l, x, nil
}

// view is the present state of an experiment.
func (s *Server) view(ctx context.Context, id string) (*datagenLog, *datagen.View, error) {
	l, err := s.experiment(id)
	if err != nil {
		return nil, nil, err
	}
	log, err := l.open(ctx)
	if err != nil {
		return nil, nil, s.answer(err)
	}
	v, err := log.View(ctx)
	if err != nil {
		return nil, nil, s.answer(err)
	}
	return l, v, nil
}

// scope is what a token must be allowed to write.
func (l *datagenLog) scope() string { return path.Join("datagen", l.pipeline, l.experiment) }
