package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// Kinds of log, as they are called everywhere.
const (
	kindStream  = "metrics stream"
	kindJournal = "study journal"
	kindDatagen = "datagen log"
	kindLance   = "lance dataset"
)

type logsInput struct {
	Under string `query:"under" maxLength:"4096" doc:"only the log at this path, those under this directory, the log that a file of this path is of, or those of the page at this path"`
}

// listLogs lists every log under a path. What has just been made is found if the path
// is its own.
func (s *Server) listLogs(ctx context.Context, in *logsInput) (*huma.StreamResponse, error) {
	under := strings.Trim(in.Under, "/")
	var items []wire.LogItem
	if one, ok := s.logAt(under); ok {
		items = append(items, one)
	} else {
		s.awaitReading(ctx)
		items = s.logsUnder(under)
	}
	if len(items) == 0 {
		items = s.logsOfPage(under)
	}
	return s.lines(func(put func(any) error) error {
		for i := range items {
			if err := put(items[i]); err != nil {
				return err
			}
		}
		return put(wire.LogItem{End: true, Waiting: s.index.pending()})
	}), nil
}

// awaitReading gives streams that were just found a moment to be read.
func (s *Server) awaitReading(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Listing)
	defer cancel()
	for s.index.pending() > 0 && sleep.For(ctx, 5*time.Millisecond) == nil {
	}
}

// logAt is the log that a path is, or is in.
func (s *Server) logAt(name string) (wire.LogItem, bool) {
	if name == "" || !s.fileOfLog(name) {
		return wire.LogItem{}, false
	}
	if head, ok := journalOf(name); ok {
		return wire.LogItem{Path: head, Kind: kindJournal}, true
	}
	if dir, ok := s.datasetOf(name); ok {
		if _, _, _, ok := datagenPlace(dir); ok {
			return wire.LogItem{Path: dir, Kind: kindDatagen}, true
		}
		s.find.lance(dir, nil)
		return wire.LogItem{Path: dir, Kind: kindLance}, true
	}
	if d := s.store.Digest(name); d != nil {
		return streamItem(d), true
	}
	return wire.LogItem{Path: name, Kind: kindStream}, true
}

// logsUnder lists the logs under a directory, "" the root, in the order in which one
// would come upon them.
func (s *Server) logsUnder(dir string) (items []wire.LogItem) {
	add := func(it wire.LogItem) {
		if dir == "" || strings.HasPrefix(it.Path, dir+"/") {
			items = append(items, it)
		}
	}
	for _, name := range s.store.Paths() {
		if d := s.store.Digest(name); d != nil {
			add(streamItem(d))
		}
	}
	for _, l := range s.studies.all() {
		add(wire.LogItem{Path: l.path, Kind: kindJournal})
	}
	for _, l := range s.datagens.all() {
		add(wire.LogItem{Path: l.path, Kind: kindDatagen})
	}
	for _, name := range s.find.datasets() {
		add(wire.LogItem{Path: name, Kind: kindLance})
	}
	slices.SortFunc(items, func(a, b wire.LogItem) int { return comparePaths(a.Path, b.Path) })
	return items
}

// logsOfPage are the logs that the page at a path shows: the streams of a run, the
// journal of a study or of a trial, the log of an experiment or of an item.
func (s *Server) logsOfPage(at string) (items []wire.LogItem) {
	kind, name, _ := strings.Cut(at, "/")
	switch kind {
	case "runs":
		if run := s.store.Run(name); run != nil {
			for _, d := range run.Streams {
				items = append(items, streamItem(d))
			}
		}
	case "studies":
		name, _, _ = strings.Cut(name, "/trials/")
		if ref, ok := s.studies.find(name); ok {
			items = append(items, wire.LogItem{Path: ref.log.path, Kind: kindJournal})
		}
	case "datagen":
		name, _, _ = strings.Cut(name, "/items/")
		if l, err := s.experiment(name); err == nil {
			items = append(items, wire.LogItem{Path: l.path, Kind: kindDatagen})
		}
	}
	return items
}

// comparePaths orders paths part by part.
func comparePaths(a, b string) int {
	for a != b {
		x, moreA, _ := strings.Cut(a, "/")
		y, moreB, _ := strings.Cut(b, "/")
		if x != y {
			return strings.Compare(x, y)
		}
		a, b = moreA, moreB
	}
	return 0
}

func streamItem(d *projection.Digest) wire.LogItem {
	size, modified := d.File()
	return wire.LogItem{Path: d.Path, Kind: kindStream, Bytes: size, ModifiedMS: modified, Slug: d.Slug, Step: d.LastStep, Stepped: d.Stepped, Points: d.Metrics,
		Ended: d.Status != metrics.StatusRunning, Failure: d.Failure, Signal: d.Interrupted}
}

func (s *Server) registerLogs(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/logs", "list-logs", "Every log under the root, of any kind", "files")
	op.Description = "JSON lines: a LogItem each, in the order of paths, and one with end, without which the answer is cut."
	ndjson(&op)
	huma.Register(api, op, s.listLogs)
}
