package server

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// studies are the journals under the root.
type studies struct {
	server *Server
	fs     fsx.FS

	mu       sync.RWMutex
	journals map[string]*journalLog // by path
	byStudy  map[string]studyRef    // by the study's id in the API
	queue    chan *journalLog
}

type studyRef struct {
	log *journalLog
	id  study.StudyID
}

// journalLog is one journal. Readers take no lock of the journal; the one writer
// is opened with the first change and laid down when nobody has changed anything
// for a while.
type journalLog struct {
	path  string
	owner *studies

	digests digests

	mu     sync.Mutex  // over what follows
	info   fs.FileInfo // of the head that was read
	readAt time.Time   // when that began
	reader *study.JournalReader
	snap   *study.Snapshot
	items  []wire.StudyItem // of all its studies, as of the last look
	err    error
	used   time.Time
	queued bool
	gone   bool

	writing sync.Mutex // over what follows
	writer  *journalWriter
}

// journalWriter is a journal that is open for changes. The last who uses one that was
// lost closes it.
type journalWriter struct {
	*study.Journal
	users int
	used  time.Time
	lost  bool
}

const (
	// coarseClock is longer than a tick of a file system's clock.
	coarseClock = 50 * time.Millisecond
	// writerIdle is how long a journal stays open for writing after a change.
	writerIdle = 30 * time.Second
	// readerIdle is how long a replayed journal is kept that nobody asks for.
	readerIdle = 10 * time.Minute
)

func newStudies(s *Server) *studies {
	return &studies{server: s, fs: fsx.InRoot(s.root), journals: map[string]*journalLog{}, byStudy: map[string]studyRef{},
		queue: make(chan *journalLog, 1024)}
}

// look takes note of a file of a journal, and tells whether it is one.
func (st *studies) look(name string, info fs.FileInfo) bool {
	st.mu.RLock()
	log := st.journals[name]
	st.mu.RUnlock()
	if log == nil {
		if !st.server.find.isJournal(name) {
			return false
		}
		st.mu.Lock()
		if log = st.journals[name]; log == nil {
			log = &journalLog{path: name, owner: st}
			log.digests.failed = log.trialFailed
			st.journals[name] = log
		}
		st.mu.Unlock()
	}
	log.mu.Lock()
	known := log.knows(info)
	log.mu.Unlock()
	if !known {
		st.enqueue(log)
	}
	return true
}

func (st *studies) enqueue(log *journalLog) {
	log.mu.Lock()
	defer log.mu.Unlock()
	if log.queued || log.gone {
		return
	}
	select {
	case st.queue <- log:
		log.queued = true
	default: // the next scan comes by
	}
}

// keep forgets the journals that were known before a scan and that it has not seen.
func (st *studies) keep(known []*journalLog, seen map[string]bool) {
	st.mu.Lock()
	var gone []*journalLog
	for _, log := range known {
		if !seen[log.path] && st.journals[log.path] == log {
			delete(st.journals, log.path)
			gone = append(gone, log)
		}
	}
	for id, ref := range st.byStudy {
		if slices.Contains(gone, ref.log) {
			delete(st.byStudy, id)
			st.server.live.change("study-gone", id, func() (any, bool) { return goneItem{ID: id}, true })
		}
	}
	st.mu.Unlock()
	for _, log := range gone {
		st.server.failed.forget(log)
		if err := log.close(); err != nil {
			st.server.log.Warn("journal not closed", "journal", log.path, "err", err)
		}
	}
}

// run follows the journals until ctx ends.
func (st *studies) run(ctx context.Context) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case log := <-st.queue:
			log.mu.Lock()
			log.queued = false
			log.mu.Unlock()
			if err := log.refresh(ctx); err != nil && ctx.Err() == nil {
				st.server.log.Warn("journal not read", "journal", log.path, "err", err)
			}
		case <-tick.C:
			st.rest()
			st.server.tails.rest(readerIdle)
		}
	}
}

func (st *studies) all() []*journalLog {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return slices.SortedFunc(maps.Values(st.journals), func(a, b *journalLog) int { return strings.Compare(a.path, b.path) })
}

func (st *studies) count() int {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return len(st.journals)
}

func (st *studies) countStudies() int {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return len(st.byStudy)
}

func (st *studies) find(id string) (studyRef, bool) {
	st.mu.RLock()
	defer st.mu.RUnlock()
	ref, ok := st.byStudy[id]
	return ref, ok
}

// readRest reads the journals that have been found and not been read yet, as after a
// start, and those that have changed since.
func (st *studies) readRest(ctx context.Context) {
	for _, log := range st.all() {
		log.mu.Lock()
		if log.err == nil && !log.gone && ctx.Err() == nil && (log.readAt.IsZero() || log.stale()) {
			if err := log.load(ctx); err != nil {
				st.server.log.Warn("journal not read", "journal", log.path, "err", err)
			}
		}
		log.mu.Unlock()
	}
}

// rest lets go of what nobody uses.
func (st *studies) rest() {
	for _, log := range st.all() {
		log.mu.Lock()
		if time.Since(log.used) > readerIdle {
			_ = log.forget()
		}
		log.mu.Unlock()
		log.writing.Lock()
		if log.writer != nil && log.writer.users == 0 && time.Since(log.writer.used) > writerIdle {
			if err := log.writer.Close(); err != nil {
				st.server.log.Warn("journal not closed", "journal", log.path, "err", err)
			}
			log.writer = nil
		}
		log.writing.Unlock()
	}
}

func (st *studies) close() error {
	var errs []error
	for _, log := range st.all() {
		errs = append(errs, log.close())
	}
	return errors.Join(errs...)
}

func (l *journalLog) close() error {
	l.mu.Lock()
	l.gone = true
	err := l.forget()
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.writer != nil {
		err = errors.Join(err, l.writer.Close())
		l.writer = nil
	}
	return err
}

// forget lets go of what was replayed. The caller holds the lock.
func (l *journalLog) forget() error {
	if l.reader == nil {
		return nil
	}
	err := l.reader.Close()
	l.reader, l.snap = nil, nil
	l.digests.reset()
	return err
}

// refresh takes in what has been published.
func (l *journalLog) refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.load(ctx)
}

func (l *journalLog) load(ctx context.Context) error {
	if l.gone {
		return study.ErrNotFound
	}
	l.used = time.Now()
	began := l.used
	info, err := l.owner.fs.Stat(l.fullPath())
	if err == nil {
		err = l.read(ctx)
	}
	l.err = err
	if err != nil {
		_ = l.forget()
		return err
	}
	l.info, l.readAt = info, began
	return nil
}

func (l *journalLog) read(ctx context.Context) error {
	if l.reader == nil {
		r, err := study.OpenJournalReader(l.fullPath(), journal.ReaderOptions{FS: l.owner.fs})
		if err != nil {
			return err
		}
		l.reader = r
	} else {
		resets := l.reader.Resets()
		if err := l.reader.Refresh(ctx); err != nil {
			return err
		}
		if l.reader.Resets() != resets {
			l.rewind()
		}
	}
	l.take(l.reader.Snapshot())
	return nil
}

// rewind forgets what is no longer the journal's history: an older copy has taken its
// place, or a power loss has taken the end of it.
func (l *journalLog) rewind() {
	l.snap = nil
	l.digests.reset()
	l.owner.server.failed.forget(l)
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	for id, ref := range l.owner.byStudy {
		if ref.log == l {
			delete(l.owner.byStudy, id)
		}
	}
}

// take makes a newer snapshot what readers see.
func (l *journalLog) take(snap *study.Snapshot) {
	if l.snap != nil && snap.Seq() <= l.snap.Seq() {
		return
	}
	l.snap = snap
	l.items = l.items[:0:0]
	l.owner.mu.Lock()
	for one := range snap.Studies() {
		item := l.itemOf(snap, one)
		if one.Deleted() {
			delete(l.owner.byStudy, item.ID)
			continue
		}
		l.items = append(l.items, item)
		l.owner.byStudy[item.ID] = studyRef{l, one.ID}
		l.owner.server.live.change("study", item.ID, func() (any, bool) { return item, true })
	}
	l.owner.mu.Unlock()
}

func (l *journalLog) fullPath() string { return inRoot(l.owner.server.root, l.path) }

// snapshot is the newest state that is known, read if need be.
func (l *journalLog) snapshot(ctx context.Context) (*study.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = time.Now()
	if l.snap == nil || l.stale() {
		if err := l.load(ctx); err != nil {
			return nil, err
		}
	}
	return l.snap, nil
}

// stale tells whether the head has changed since it was read.
func (l *journalLog) stale() bool {
	info, err := l.owner.fs.Stat(l.fullPath())
	return err != nil || !l.knows(info)
}

// knows tells whether a head is the one that was read. One that had changed just
// before it was read may have changed again within the same tick of the file system's
// clock, and its number may have been given to a new file: it is read once more.
func (l *journalLog) knows(info fs.FileInfo) bool {
	return l.info != nil && os.SameFile(info, l.info) && info.Size() == l.info.Size() && info.ModTime().Equal(l.info.ModTime()) &&
		l.readAt.Sub(info.ModTime()) > coarseClock
}

// update changes the journal in one transaction.
func (l *journalLog) update(ctx context.Context, fn func(*study.Tx) error) (*study.Snapshot, error) {
	change := func(w study.Storage) error { return w.Update(ctx, fn) }
	snap, err := l.write(ctx, change)
	var uncertain *journal.UncertainError
	if errors.Is(err, journal.ErrReplaced) && !errors.As(err, &uncertain) {
		return l.write(ctx, change) // to the one that is there now
	}
	return snap, err
}

// write hands the journal over for changes, and makes what came of them what
// readers see. All changes of the server go through one writer, so that those which
// come at one time share an extent and its syncs.
func (l *journalLog) write(ctx context.Context, change func(study.Storage) error) (*study.Snapshot, error) {
	w, err := l.openWriter(ctx)
	if err != nil {
		return nil, err
	}
	err = change(w)
	snap := w.Snapshot()
	l.doneWriting(w, err)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(snap)
	return snap, nil
}

// doneWriting gives a writer back after a change. One whose journal is not there any
// more is of no use to anybody: the next change opens what is there now.
func (l *journalLog) doneWriting(w *journalWriter, err error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	w.users--
	w.used = time.Now()
	if lostJournal(err) {
		w.lost = true
		if l.writer == w {
			l.writer = nil
		}
	}
	if w.lost && w.users == 0 {
		if err := w.Close(); err != nil {
			l.owner.server.log.Warn("journal not closed", "journal", l.path, "err", err)
		}
	}
}

// lostJournal tells that another journal, or none, is where one was.
func lostJournal(err error) bool {
	return errors.Is(err, journal.ErrReplaced) || errors.Is(err, journal.ErrHeadMissing) || errors.Is(err, journal.ErrDataMissing) ||
		errors.Is(err, fs.ErrNotExist)
}

func (l *journalLog) openWriter(ctx context.Context) (*journalWriter, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.current(); err != nil { // here, so that none is opened after close
		return nil, err
	}
	if l.writer == nil {
		w, err := study.OpenJournal(ctx, l.fullPath(), journal.WriterOptions{FS: l.owner.fs, Program: l.owner.server.program})
		if err != nil {
			return nil, err
		}
		l.writer = &journalWriter{Journal: w}
	}
	l.writer.users++
	return l.writer, nil
}

// current refuses a journal of an older format: a server does not migrate what
// old writers may still be using.
func (l *journalLog) current() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return study.ErrNotFound
	}
	if l.reader != nil && l.reader.Header().Format < journal.FormatVersion {
		return problem(http.StatusConflict, "the journal has an older format: foldlog study migrate brings it to the present one")
	}
	return nil
}
