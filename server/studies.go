package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
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

	mu     sync.Mutex // over what follows
	info   fs.FileInfo
	reader *study.JournalReader
	snap   *study.Snapshot
	items  []StudyItem // of all its studies, as of the last look
	err    error
	used   time.Time
	queued bool
	gone   bool

	writing sync.Mutex // over what follows
	writer  *study.Journal
	writes  int
	wrote   time.Time
}

const (
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
			st.journals[name] = log
		}
		st.mu.Unlock()
	}
	log.mu.Lock()
	known := log.info != nil && log.info.Size() == info.Size() && log.info.ModTime().Equal(info.ModTime()) && sameFile(log.info, info)
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

// keep forgets the journals that a scan has not seen.
func (st *studies) keep(seen map[string]bool) {
	st.mu.Lock()
	var gone []*journalLog
	for path, log := range st.journals {
		if !seen[path] {
			delete(st.journals, path)
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
		}
	}
}

func (st *studies) all() []*journalLog {
	st.mu.RLock()
	defer st.mu.RUnlock()
	list := make([]*journalLog, 0, len(st.journals))
	for _, log := range st.journals {
		list = append(list, log)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].path < list[j].path })
	return list
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

// rest lets go of what nobody uses.
func (st *studies) rest() {
	for _, log := range st.all() {
		log.mu.Lock()
		if log.reader != nil && time.Since(log.used) > readerIdle {
			log.reader.Close()
			log.reader, log.snap = nil, nil
		}
		log.mu.Unlock()
		log.writing.Lock()
		if log.writer != nil && log.writes == 0 && time.Since(log.wrote) > writerIdle {
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
	var errs []error
	if l.reader != nil {
		errs = append(errs, l.reader.Close())
		l.reader = nil
	}
	l.mu.Unlock()
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.writer != nil {
		errs = append(errs, l.writer.Close())
		l.writer = nil
	}
	return errors.Join(errs...)
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
	info, err := l.owner.fs.Stat(l.fullPath())
	if err == nil {
		err = l.read(ctx)
	}
	l.err = err
	if err != nil {
		if l.reader != nil {
			l.reader.Close()
			l.reader, l.snap = nil, nil
		}
		return err
	}
	l.info = info
	return nil
}

func (l *journalLog) read(ctx context.Context) error {
	if l.reader == nil {
		r, err := study.OpenJournalReader(l.fullPath(), &journal.ReaderOptions{FS: l.owner.fs})
		if err != nil {
			return err
		}
		l.reader = r
	} else if err := l.reader.Refresh(ctx); err != nil {
		return err
	}
	l.take(l.reader.Snapshot())
	return nil
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

// sameFile tells whether two looks saw one file.
func sameFile(a, b fs.FileInfo) bool { return os.SameFile(a, b) }

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
	return err != nil || l.info == nil || !sameFile(info, l.info) || !info.ModTime().Equal(l.info.ModTime())
}

// update changes the journal in one transaction.
func (l *journalLog) update(ctx context.Context, fn func(*study.Tx) error) (*study.Snapshot, error) {
	return l.write(ctx, func(w study.Storage) error { return w.Update(ctx, fn) })
}

// write hands the journal over for changes, and makes what came of them what
// readers see. All changes of the server go through one writer, so that those which
// come at one time share an extent and its syncs.
func (l *journalLog) write(ctx context.Context, change func(study.Storage) error) (*study.Snapshot, error) {
	w, err := l.openWriter(ctx)
	if err != nil {
		return nil, err
	}
	defer l.doneWriting()
	if err := change(w); err != nil {
		return nil, err
	}
	snap := w.Snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.take(snap)
	return snap, nil
}

func (l *journalLog) doneWriting() {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.writes--
	l.wrote = time.Now()
}

func (l *journalLog) openWriter(ctx context.Context) (*study.Journal, error) {
	if err := l.current(); err != nil {
		return nil, err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.writer == nil {
		w, err := study.OpenJournal(ctx, l.fullPath(), &journal.WriterOptions{FS: l.owner.fs, Program: l.owner.server.program})
		if err != nil {
			return nil, err
		}
		l.writer = w
	}
	l.writes++
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

// studyID names a study in the API, the same as long as its journal stays where it
// is.
func studyID(path string, id study.StudyID) string {
	sum := sha256.Sum256([]byte(path + "\x00" + strconv.FormatUint(uint64(id), 10)))
	return hex.EncodeToString(sum[:8])
}

// StudyItem is a study in a list.
type StudyItem struct {
	ID         string      `json:"id" doc:"names the study in this API"`
	Journal    string      `json:"journal" doc:"path of its journal under the root"`
	StudyID    Count       `json:"study_id" doc:"within the journal"`
	Name       string      `json:"name"`
	Directions []string    `json:"directions" doc:"minimize or maximize, one for each objective"`
	Metrics    []string    `json:"metrics" doc:"names of the objectives"`
	Unit       string      `json:"unit" doc:"what steps count, empty if it is not said"`
	Seed       *Count      `json:"seed" nullable:"true"`
	CreatedMS  int64       `json:"created_ms"`
	LastMS     int64       `json:"last_ms" doc:"the last sign of life of any trial"`
	Seq        Count       `json:"seq" doc:"operations in the journal as of this answer"`
	Trials     int         `json:"trials"`
	States     StateCounts `json:"states"`
	Best       *BestTrial  `json:"best,omitempty" doc:"of a study with one objective that has one; of several see the front"`
	Sampler    string      `json:"sampler"`
	Pruner     string      `json:"pruner"`
}

// StateCounts is the number of trials in every state.
type StateCounts struct {
	Waiting  int `json:"waiting"`
	Running  int `json:"running"`
	Paused   int `json:"paused"`
	Complete int `json:"complete"`
	Pruned   int `json:"pruned"`
	Failed   int `json:"failed"`
}

// BestTrial names a trial and its values.
type BestTrial struct {
	Number int     `json:"number"`
	Values Numbers `json:"values"`
}

func (l *journalLog) itemOf(snap *study.Snapshot, st *study.Study) StudyItem {
	c := st.Counts()
	v := StudyItem{
		ID: studyID(l.path, st.ID), Journal: l.path, StudyID: Count(st.ID), Name: st.Config.Name, Directions: directionNames(st),
		Metrics: metricNames(st), Unit: st.Config.ResourceUnit, CreatedMS: int64(st.CreatedMillis), LastMS: int64(st.CreatedMillis),
		Seq: Count(snap.Seq()), Trials: st.NumTrials(), Sampler: sampler.TextOf(st),
		Pruner: pruner.TextOf(st),
		States: StateCounts{c[study.Waiting], c[study.Running], c[study.Paused], c[study.Complete], c[study.Pruned], c[study.Failed]},
	}
	if st.Config.Seed != nil {
		seed := Count(*st.Config.Seed)
		v.Seed = &seed
	}
	if len(st.Config.Directions) == 1 {
		if best, err := snap.Best(st.ID); err == nil && len(best) > 0 {
			v.Best = &BestTrial{int(best[0].Number), best[0].Values}
		}
	}
	for t := range snap.Trials(st.ID, study.TrialFilter{}) {
		v.LastMS = max(v.LastMS, int64(t.EndedMillis), int64(t.StartedMillis), int64(t.HeartbeatMillis), int64(t.CreatedMillis))
	}
	return v
}

func directionNames(st *study.Study) []string {
	names := []string{}
	for _, d := range st.Config.Directions {
		names = append(names, strings.ToLower(d.String()))
	}
	return names
}

// metricNames are the names of the objectives; those without one are numbered.
func metricNames(st *study.Study) []string {
	names := slices.Clone(st.Config.MetricNames)
	for i := len(names); i < len(st.Config.Directions); i++ {
		names = append(names, "value "+strconv.Itoa(i))
	}
	if len(st.Config.Directions) == 1 && len(st.Config.MetricNames) == 0 {
		names = []string{"value"}
	}
	return names
}

// study finds a study or answers 404.
func (s *Server) study(ctx context.Context, id string) (*journalLog, *study.Snapshot, *study.Study, error) {
	s.studies.mu.RLock()
	ref, ok := s.studies.byStudy[id]
	s.studies.mu.RUnlock()
	if !ok {
		return nil, nil, nil, problem(http.StatusNotFound, fmt.Sprintf("there is no study %.100q", id))
	}
	snap, err := ref.log.snapshot(ctx)
	if err != nil {
		return nil, nil, nil, s.answer(err)
	}
	st, err := snap.Study(ref.id)
	if err != nil {
		return nil, nil, nil, s.answer(err)
	}
	return ref.log, snap, st, nil
}

type studyListInput struct {
	Text   string `query:"q" maxLength:"500" doc:"only studies whose name or journal contains this, whatever the case"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"studies per page, 100 if 0"`
	Cursor string `query:"cursor" maxLength:"200"`
}

// StudyPage is a part of the list of studies.
type StudyPage struct {
	Items  []StudyItem   `json:"items" doc:"the one that changed last first"`
	Next   string        `json:"next" doc:"the cursor of the next page, empty on the last"`
	Total  int           `json:"total"`
	Faulty []FaultyStudy `json:"faulty" doc:"journals that cannot be read"`
}

// FaultyStudy is a journal that cannot be read.
type FaultyStudy struct {
	Journal string `json:"journal"`
	Error   string `json:"error"`
}

func (s *Server) listStudies(_ context.Context, in *studyListInput) (*struct{ Body StudyPage }, error) {
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	page := StudyPage{Items: []StudyItem{}, Faulty: []FaultyStudy{}}
	text := strings.ToLower(in.Text)
	for _, log := range s.studies.all() {
		log.mu.Lock()
		items, err := log.items, log.err
		log.mu.Unlock()
		if err != nil {
			page.Faulty = append(page.Faulty, FaultyStudy{log.path, s.withoutRoot(err.Error())})
		}
		for _, item := range items {
			if strings.Contains(strings.ToLower(item.Name), text) || strings.Contains(strings.ToLower(item.Journal), text) {
				page.Items = append(page.Items, item)
			}
		}
	}
	sort.SliceStable(page.Items, func(i, j int) bool { return page.Items[i].LastMS > page.Items[j].LastMS })
	page.Total = len(page.Items)
	from = min(from, page.Total)
	page.Items = page.Items[from:min(page.Total, from+pageSize(in.Limit))]
	if end := from + len(page.Items); end < page.Total {
		page.Next = encodeCursor(itoa(end))
	}
	return &struct{ Body StudyPage }{page}, nil
}

func (s *Server) registerStudies(api huma.API) {
	get := func(path, id, summary string) huma.Operation {
		return operation(http.MethodGet, "/api/v1/studies"+path, id, summary, "studies")
	}
	huma.Register(api, get("", "list-studies", "List studies"), s.listStudies)
	huma.Register(api, get("/{id}", "get-study", "One study"), s.getStudy)
	huma.Register(api, get("/{id}/trials", "list-trials", "Trials of a study"), s.listTrials)
	huma.Register(api, get("/{id}/trials/{number}", "get-trial", "One trial, with its reports and attributes"), s.getTrial)
	huma.Register(api, get("/{id}/trials/{number}/should-prune", "should-prune", "Whether a trial is worth going on with"), s.shouldPrune)
	columns := get("/{id}/columns", "study-columns", "All trials of a study by column")
	columns.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[TrialColumns](), true, "")},
	}}}
	huma.Register(api, columns, s.studyColumns)
	huma.Register(api, get("/{id}/curves", "study-curves", "Intermediate values of several trials"), s.studyCurves)
	huma.Register(api, get("/{id}/front", "study-front", "The Pareto front of a study, computed in the background"), s.studyFront)
	huma.Register(api, get("/{id}/importance", "study-importance", "How much each parameter matters, computed in the background"), s.studyImportance)
	huma.Register(api, get("/{id}/outbox", "study-outbox", "What is still to be done after trials ended"), s.studyOutbox)
	s.registerStudyWrites(api)
	s.registerStudyLive(api)
}
