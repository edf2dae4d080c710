package projection

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// ErrNotFound means that there is no such run.
var ErrNotFound = errors.New("no such run")

// Options says where a store is and what it is of.
type Options struct {
	// Dir is the directory that it keeps its files in; it is made. Empty keeps
	// everything in memory.
	Dir string
	// Open opens the file of a stream, whose path is relative to the root with
	// slashes.
	Open func(path string) (*os.File, error)
	// Slug names the run of a stream by its path and the slug that it says; ""
	// is none. Nil believes the stream.
	Slug func(path, says string) string
	// Changed hears of every run that has something new; nil tells that it is
	// gone. It must be quick and must not call the store. Nil is nobody.
	Changed func(slug string, run *Run)
	// Log hears what went wrong with the projection itself; nil is nobody.
	Log *slog.Logger
}

// Store is the projection of all streams of a root. It is safe for concurrent
// use; only one process may have a directory.
type Store struct {
	dir      string
	open     func(string) (*os.File, error)
	slug     func(path, says string) string
	changed  func(string, *Run)
	log      *slog.Logger
	names    names
	catalog  *catalog
	decoders sync.Pool
	anew     atomic.Int64
	// mostSummaries is that of tests, or the constant.
	mostSummaries int

	mu      sync.RWMutex
	streams map[string]*stream
	runs    map[string]*runEntry
}

// runEntry is a run and the streams that it is made of.
type runEntry struct {
	run     *Run
	streams map[string]*Digest // by path
}

// Open opens the store in a directory, and removes those of other versions.
func Open(opts Options) (*Store, error) {
	s := &Store{open: opts.Open, changed: opts.Changed, log: opts.Log, mostSummaries: mostSummaries, streams: map[string]*stream{}, runs: map[string]*runEntry{}}
	s.decoders.New = func() any { return new(metrics.Decoder) }
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.slug = opts.Slug; s.slug == nil {
		s.slug = func(_, says string) string { return says }
	}
	if s.changed == nil {
		s.changed = func(string, *Run) {}
	}
	s.catalog = &catalog{}
	if opts.Dir == "" {
		return s, nil
	}
	if err := s.ready(opts.Dir); err != nil {
		return nil, fmt.Errorf("open projection: %w", err)
	}
	c, records, err := openCatalog(filepath.Join(s.dir, "catalog"), &s.names)
	if err != nil {
		return nil, err
	}
	s.catalog = c
	for path, r := range records {
		s.streams[path] = &stream{path: path, store: s, digest: r.digest, published: r.digest, record: r.state}
		s.place(nil, r.digest)
	}
	for _, e := range s.runs {
		e.merge()
	}
	return s, nil
}

func (s *Store) ready(dir string) error {
	s.dir = filepath.Join(dir, fmt.Sprintf("projection-v%d", Version))
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	others, err := filepath.Glob(filepath.Join(dir, "projection-v*"))
	for _, other := range others {
		if other != s.dir {
			err = errors.Join(err, os.RemoveAll(other))
		}
	}
	return err
}

// Flush stores what has not been stored, and lets go of every stream until it is
// needed again.
func (s *Store) Flush() error { return s.flush(0) }

// Close stores what has not been stored.
func (s *Store) Close() error {
	err := s.Flush()
	return errors.Join(err, s.catalog.close())
}

// Name is the metric name of a [CurveStat].
func (s *Store) Name(id uint32) string { return s.names.name(id) }

// NameID finds the number of a metric name.
func (s *Store) NameID(name string) (uint32, bool) { return s.names.find(name) }

// Fresh tells whether a stream has been read as of that size and time of change
// (nanoseconds of the Unix epoch); known tells whether it has been at all.
func (s *Store) Fresh(path string, size, mtime int64) (known, fresh bool) {
	d := s.Digest(path)
	return d != nil, d != nil && d.size == size && d.mtime == mtime
}

// Digest is what is known of a stream, nil if nothing is.
func (s *Store) Digest(path string) *Digest {
	s.mu.RLock()
	st := s.streams[path]
	s.mu.RUnlock()
	if st == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.digest
}

// Update reads what has come to a stream, up to 16 MiB; more tells that there is
// more. A file that is gone is removed.
func (s *Store) Update(path string) (more bool, err error) {
	for {
		s.mu.Lock()
		st := s.streams[path]
		if st == nil {
			st = &stream{path: path, store: s}
			s.streams[path] = st
		}
		s.mu.Unlock()
		more, err = st.catchUp()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			st.remove(st.isGone)
			return false, nil
		case !errors.Is(err, errRemoved):
			return more, err
		}
	}
}

// errRemoved is of a stream that was removed meanwhile, and may be there anew.
var errRemoved = errors.New("the stream was removed")

// Remove forgets a stream.
func (s *Store) Remove(path string) {
	if st := s.stream(path); st != nil {
		st.remove(func() bool { return true })
	}
}

// remove forgets the stream if it is still so. While it goes nobody begins another one of
// its path, which would have the same files.
func (s *stream) remove(still func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || !still() {
		return
	}
	s.gone = true
	if s.store.dir != "" {
		os.Remove(s.pointsPath())
	}
	if err := s.store.catalog.drop(s.path); err != nil {
		s.store.log.Warn("projection not written", "stream", s.path, "err", err)
	}
	if s.published != nil {
		s.store.announce(s.published, nil)
	}
	s.digest, s.published, s.state, s.record = nil, nil, nil, place{}
	s.store.mu.Lock()
	delete(s.store.streams, s.path)
	s.store.mu.Unlock()
}

// isGone tells whether the file is not there: it may have come again.
func (s *stream) isGone() bool {
	f, err := s.store.open(s.path)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// Anew is how often a stream had to be read from its beginning although it was known:
// its file was rewritten, or its projection damaged.
func (s *Store) Anew() int64 { return s.anew.Load() }

// Paths lists the streams that are known.
func (s *Store) Paths() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	paths := make([]string, 0, len(s.streams))
	for path := range s.streams {
		paths = append(paths, path)
	}
	return paths
}

// publish makes a digest what readers see.
func (s *stream) publish(d *Digest) {
	old := s.published
	s.digest, s.published = d, d
	s.store.announce(old, d)
}

// announce puts a digest in the place of an older one, either of which may be
// nil, and tells of the runs that have changed.
func (s *Store) announce(old, d *Digest) {
	s.mu.Lock()
	slugs := s.place(old, d)
	runs := make([]*Run, len(slugs))
	for i, slug := range slugs {
		e := s.runs[slug]
		if len(e.streams) == 0 {
			delete(s.runs, slug)
			continue
		}
		e.merge()
		runs[i] = e.run
	}
	s.mu.Unlock()
	for i, slug := range slugs {
		s.changed(slug, runs[i])
	}
}

// place files digests under their runs. A stream without an open is no run yet.
func (s *Store) place(old, d *Digest) (slugs []string) {
	if old != nil && old.Slug != "" && (d == nil || d.Slug != old.Slug) {
		delete(s.runs[old.Slug].streams, old.Path)
		slugs = append(slugs, old.Slug)
	}
	if d != nil && d.Slug != "" {
		e := s.runs[d.Slug]
		if e == nil {
			e = &runEntry{streams: map[string]*Digest{}}
			s.runs[d.Slug] = e
		}
		e.streams[d.Path] = d
		slugs = append(slugs, d.Slug)
	}
	return slugs
}

// merge makes the run. Of two files with the same stream, one pushed from the
// other, the longer counts.
func (e *runEntry) merge() {
	list := make([]*Digest, 0, len(e.streams))
	for _, d := range e.streams {
		i := slices.IndexFunc(list, func(o *Digest) bool { return o.ID == d.ID })
		switch {
		case i < 0:
			list = append(list, d)
		case longer(d, list[i]):
			list[i] = d
		}
	}
	e.run = mergeRun(list)
}

func longer(a, b *Digest) bool {
	if a.Bytes != b.Bytes {
		return a.Bytes > b.Bytes
	}
	own := func(d *Digest) bool { return strings.HasPrefix(d.Path, metrics.RunsDir+"/") }
	if own(a) != own(b) {
		return own(a)
	}
	return a.Path < b.Path
}

// Run finds a run by its slug, nil if there is none.
func (s *Store) Run(slug string) *Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e := s.runs[slug]; e != nil {
		return e.run
	}
	return nil
}

// Runs are all runs, in no order.
func (s *Store) Runs() []*Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]*Run, 0, len(s.runs))
	for _, e := range s.runs {
		list = append(list, e.run)
	}
	return list
}

// idle is how long a stream that nobody writes to or asks for stays loaded.
const idle = 30 * time.Second

// storeEvery is how often a stream that is always busy is stored, so that a
// server that is killed need not read all of it again.
const storeEvery = 2 * time.Minute

// Maintain stores what has changed, and lets go of what is at rest. It is to be
// called every few seconds.
func (s *Store) Maintain() error {
	err := s.flush(idle)
	if s.catalog.wasteful() {
		err = errors.Join(err, s.compact())
	}
	return err
}

// flush stores and lets go of the streams that have been idle that long.
func (s *Store) flush(idle time.Duration) error {
	if s.dir == "" {
		return nil
	}
	s.mu.RLock()
	list := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		list = append(list, st)
	}
	s.mu.RUnlock()
	var errs []error
	for _, st := range list {
		if err := st.rest(idle); err != nil && len(errs) < 10 {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// rest stores the state if it is time, and lets it go if nobody has used it for a
// while.
func (s *stream) rest(idle time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	resting := time.Since(s.used) >= idle
	if s.state == nil || s.gone || !resting && time.Since(s.stored) < storeEvery {
		return nil
	}
	if s.dirty && s.digest != nil {
		if s.state.end.ok {
			s.sealAt(blockLeast)
		}
		b, err := s.state.store()
		if err != nil {
			return err
		}
		if s.record, err = s.store.catalog.put(s.digest, b, &s.store.names); err != nil {
			return err
		}
		s.dirty = false
	}
	s.stored = time.Now()
	if resting {
		s.state = nil
	}
	return nil
}

// compact rewrites the catalog without what counts no more.
func (s *Store) compact() error {
	s.mu.RLock()
	list := make([]*stream, 0, len(s.streams))
	for _, st := range s.streams {
		list = append(list, st)
	}
	s.mu.RUnlock()
	for _, st := range list {
		st.mu.Lock()
		defer st.mu.Unlock()
	}
	return s.catalog.rewrite(list, &s.names)
}
