package server

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
)

// discovery finds the logs under the root and what has changed. The operating
// system tells of changes where it can; in case it does not, as on shared file
// systems, what has changed lately is looked at several times a second, and
// everything every few seconds.
type discovery struct {
	server *Server
	watch  *fsnotify.Watcher // nil where there is none
	full   bool              // the system takes no more watches

	mu      sync.Mutex
	watched map[string]bool
	hot     map[string]time.Time // streams by when they changed last
	none    map[string]fileState // files that are no streams, as they were then
	lances  map[string]bool      // Lance datasets that are no datagen logs
}

// fileState tells one state of a file from the next. Its time alone does not: what is
// written right after a file was created often has the same.
type fileState struct {
	at   int64
	size int64
}

func stateOf(info fs.FileInfo) fileState { return fileState{info.ModTime().UnixNano(), info.Size()} }

const (
	// hotFor is how long a stream is looked at often after it has changed.
	hotFor = 10 * time.Minute
	// hotEvery is how often.
	hotEvery = 250 * time.Millisecond
	// scanEvery is how often everything is looked at, at the least; it takes at
	// most a twentieth of the time.
	scanEvery = 5 * time.Second
	// mostWatches bounds what is asked of the operating system.
	mostWatches = 60_000
)

func newDiscovery(s *Server) *discovery {
	d := &discovery{server: s, watched: map[string]bool{}, hot: map[string]time.Time{}, none: map[string]fileState{}, lances: map[string]bool{}}
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("changes are found by looking, not told", "err", err)
		return d
	}
	d.watch = watch
	return d
}

func (d *discovery) close() error {
	if d.watch == nil {
		return nil
	}
	return d.watch.Close()
}

func (d *discovery) run(ctx context.Context) {
	var events chan fsnotify.Event
	var failures chan error
	if d.watch != nil {
		events, failures = d.watch.Events, d.watch.Errors
	}
	scan := time.NewTimer(scanEvery)
	defer scan.Stop()
	hot := time.NewTicker(hotEvery)
	defer hot.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-events:
			d.changed(e)
		case <-failures:
			// Events were lost: the next scan finds what they were about.
			scan.Reset(0)
		case <-hot.C:
			d.lookAtHot()
		case <-scan.C:
			start := time.Now()
			d.scan()
			scan.Reset(max(scanEvery, 20*time.Since(start)))
		}
	}
}

// rel is a path under the root, with slashes.
func (d *discovery) rel(full string) (string, bool) {
	rel, err := filepath.Rel(d.server.base, full)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

func (d *discovery) changed(e fsnotify.Event) {
	name, ok := d.rel(e.Name)
	if !ok || hidden(name) {
		return
	}
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		d.forgetWatch(name)
	}
	info, err := d.server.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		if path.Ext(name) == metrics.Extension {
			d.server.index.add(name)
		}
		return
	}
	if info.IsDir() {
		if d.server.datagens.look(name) == nil && e.Has(fsnotify.Create) && enters(name) {
			d.walk(name, nil)
		}
		return
	}
	d.file(name, info, nil)
}

func (d *discovery) forgetWatch(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watched, name)
}

// hidden tells whether any part of a path begins with a dot.
func hidden(name string) bool {
	return name != "." && (strings.HasPrefix(name, ".") || strings.Contains(name, "/."))
}

// sighting is what a scan has seen.
type sighting struct {
	streams  map[string]bool
	journals map[string]bool
	labels   map[string]bool
	datagen  map[string]bool
	lances   map[string]bool
}

// scan looks at everything under the root.
func (d *discovery) scan() {
	// What is made meanwhile, in a directory that was looked at before, is not seen.
	journals, datagens := d.server.studies.all(), d.server.datagens.all()
	seen := &sighting{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	if !d.walk(".", seen) {
		return
	}
	for _, name := range d.server.store.Paths() {
		if !seen.streams[name] {
			d.server.index.add(name)
		}
	}
	d.server.studies.keep(journals, seen.journals)
	d.server.datagens.keep(datagens, seen.datagen)
	d.mu.Lock()
	d.lances = seen.lances
	d.mu.Unlock()
}

// lance takes note of a directory that is a dataset by itself.
func (d *discovery) lance(dir string, seen *sighting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lances[dir] = true; seen != nil {
		seen.lances[dir] = true
	}
}

// dataset tells whether a directory was seen to be a dataset.
func (d *discovery) dataset(dir string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lances[dir]
}

// datasets are the Lance datasets that are no datagen logs.
func (d *discovery) datasets() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Keys(d.lances))
}

// walk looks at a directory and what is under it. Links are not followed. It is
// false if the directory itself could not be read.
func (d *discovery) walk(dir string, seen *sighting) bool {
	if d.server.stopped.Err() != nil {
		return false
	}
	d.addWatch(dir)
	full := filepath.Join(d.server.base, filepath.FromSlash(dir))
	entries, err := os.ReadDir(full)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == "_versions" && e.IsDir() }) && d.server.holdsVersions(dir) {
		d.lance(dir, seen)
		return true
	}
	whole := true
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case hidden(e.Name()):
		case e.IsDir() && d.server.datagens.look(name) != nil:
			if seen != nil {
				seen.datagen[name] = true
			}
		case e.IsDir():
			if enters(name) && !d.walk(name, seen) {
				whole = whole && d.goneDir(name)
			}
		case e.Type().IsRegular():
			if info, err := e.Info(); err == nil {
				d.file(name, info, seen)
			}
		}
	}
	return whole
}

// enters tells which directories are looked into: not those of a journal, nor the one by
// which the writers of a datagen log agree, where whoever may write to the log may put
// anything.
func enters(name string) bool {
	if path.Base(name) == coordination {
		_, _, _, ok := datagenPlace(path.Join(path.Dir(name), "log.lance"))
		return !ok
	}
	return !strings.HasSuffix(name, ".atj.d")
}

// goneDir tells whether a directory that could not be read is simply gone.
func (d *discovery) goneDir(name string) bool {
	_, err := d.server.root.Lstat(filepath.FromSlash(name))
	return errors.Is(err, fs.ErrNotExist)
}

func (d *discovery) addWatch(dir string) {
	if d.watch == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full || d.watched[dir] || len(d.watched) >= mostWatches {
		return
	}
	if err := d.watch.Add(filepath.Join(d.server.base, filepath.FromSlash(dir))); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			d.full = true
			d.server.log.Warn("the system takes no more watches; further changes are found by looking", "watches", len(d.watched), "err", err)
		}
		return
	}
	d.watched[dir] = true
}

// file looks at one file: a stream, a head of a journal, or labels.
func (d *discovery) file(name string, info fs.FileInfo, seen *sighting) {
	switch {
	case path.Ext(name) == metrics.Extension:
		d.stream(name, info, seen)
	case path.Base(name) == labelsFile:
		d.server.labels.look(name, info)
	case path.Ext(name) == ".atj" || strings.HasSuffix(path.Dir(name), ".atj.d"):
		if strings.HasSuffix(path.Dir(name), ".atj.d") {
			name = strings.TrimSuffix(path.Dir(name), ".d")
		}
		if d.server.studies.look(name, info) && seen != nil {
			seen.journals[name] = true
		}
	}
}

func (d *discovery) stream(name string, info fs.FileInfo, seen *sighting) {
	known, fresh := d.server.store.Fresh(name, info.Size(), info.ModTime().UnixNano())
	if !known && !d.isStream(name, info) {
		return
	}
	if seen != nil {
		seen.streams[name] = true
	}
	if time.Since(info.ModTime()) < hotFor {
		d.mu.Lock()
		d.hot[name] = info.ModTime()
		d.mu.Unlock()
	}
	if !fresh {
		d.server.index.add(name)
	}
}

// isStream looks into a file. One that is none is not looked at again before it
// changes.
func (d *discovery) isStream(name string, info fs.FileInfo) bool {
	d.mu.Lock()
	at, ok := d.none[name]
	d.mu.Unlock()
	if ok && at == stateOf(info) {
		return false
	}
	if start, err := d.start(name); err == nil && metrics.IsStream(start) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.none) > 100_000 {
		clear(d.none)
	}
	d.none[name] = stateOf(info)
	return false
}

func (d *discovery) start(name string) ([]byte, error) {
	f, err := d.server.openLog(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return b[:n], err
}

// isJournal looks into the head of what may be a study journal.
func (d *discovery) isJournal(name string) bool {
	start, err := d.start(name)
	return err == nil && journal.Sniff(start)
}

// lookAtHot looks at the streams that have changed lately.
func (d *discovery) lookAtHot() {
	d.mu.Lock()
	names := make([]string, 0, len(d.hot))
	for name, at := range d.hot {
		if time.Since(at) > hotFor {
			delete(d.hot, name)
			continue
		}
		if len(names) < 2000 {
			names = append(names, name)
		}
	}
	d.mu.Unlock()
	for _, name := range names {
		info, err := d.server.root.Stat(filepath.FromSlash(name))
		if err != nil {
			d.mu.Lock()
			delete(d.hot, name)
			d.mu.Unlock()
			d.server.index.add(name)
			continue
		}
		d.stream(name, info, nil)
	}
}
