package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/pruner"
	"github.com/foldlog/foldlog/study/sampler"
)

// studyID names a study in the API, the same as long as its journal stays where it
// is.
func studyID(path string, id study.StudyID) string {
	sum := sha256.Sum256([]byte(path + "\x00" + strconv.FormatUint(uint64(id), 10)))
	return hex.EncodeToString(sum[:8])
}

func (l *journalLog) itemOf(snap *study.Snapshot, st *study.Study) wire.StudyItem {
	c := st.Counts()
	v := wire.StudyItem{
		ID: studyID(l.path, st.ID), Journal: l.path, StudyID: wire.Count(st.ID), Name: st.Config.Name, Directions: st.DirectionNames(),
		Metrics: st.ObjectiveNames(), Unit: st.Config.ResourceUnit, CreatedMS: int64(st.CreatedMillis),
		Seq: wire.Count(snap.Seq()), Trials: st.NumTrials(), Sampler: sampler.TextOf(st),
		Pruner: pruner.TextOf(st),
		States: wire.StateCounts{Waiting: c[study.Waiting], Running: c[study.Running], Paused: c[study.Paused],
			Complete: c[study.Complete], Pruned: c[study.Pruned], Failed: c[study.Failed]},
	}
	if st.Config.Seed != nil {
		seed := wire.Count(*st.Config.Seed)
		v.Seed = &seed
	}
	best, last := l.digests.of(snap, st)
	if best != nil {
		v.Best = &wire.BestTrial{Number: int(best.Number), Values: best.Values}
	}
	v.LastMS = last
	return v
}

// study finds a study or answers 404.
func (s *Server) study(ctx context.Context, id string) (*journalLog, *study.Snapshot, *study.Study, error) {
	ref, ok := s.studies.find(id)
	if !ok {
		// It may be in a journal that has not been read yet, or since it was made.
		s.studies.readRest(ctx)
		ref, ok = s.studies.find(id)
	}
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
	Text   string `query:"q" maxLength:"500" doc:"only studies whose name or journal has this or matches it as a regular expression, whatever the case"`
	Limit  int    `query:"limit" minimum:"0" maximum:"1000" doc:"studies per page, 100 if 0"`
	Cursor string `query:"cursor" maxLength:"200"`
}

func (s *Server) listStudies(_ context.Context, in *studyListInput) (*struct{ Body wire.StudyPage }, error) {
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	page := wire.StudyPage{Items: []wire.StudyItem{}, Faulty: []wire.FaultyStudy{}}
	found := finder(in.Text)
	for _, log := range s.studies.all() {
		log.mu.Lock()
		items, err := log.items, log.err
		log.mu.Unlock()
		if err != nil {
			page.Faulty = append(page.Faulty, wire.FaultyStudy{Journal: log.path, Error: s.withoutRoot(err.Error())})
		}
		for _, item := range items {
			if found(item.Name) || found(item.Journal) {
				page.Items = append(page.Items, item)
			}
		}
	}
	slices.SortStableFunc(page.Items, func(a, b wire.StudyItem) int { return cmp.Compare(b.LastMS, a.LastMS) })
	page.Total = len(page.Items)
	page.Items, page.Next = pageOf(page.Items, from, pageSize(in.Limit))
	return &struct{ Body wire.StudyPage }{page}, nil
}

func (s *Server) registerStudies(api huma.API) {
	get := getting("/api/v1/studies", "studies")
	huma.Register(api, get("", "list-studies", "List studies"), s.listStudies)
	huma.Register(api, get("/{id}", "get-study", "One study"), s.getStudy)
	huma.Register(api, get("/{id}/trials", "list-trials", "Trials of a study"), s.listTrials)
	huma.Register(api, get("/{id}/trials/{number}", "get-trial", "One trial, with its reports and attributes"), s.getTrial)
	huma.Register(api, get("/{id}/trials/{number}/should-prune", "should-prune", "Whether a trial is worth going on with"), s.shouldPrune)
	columns := get("/{id}/columns", "study-columns", "All trials of a study by column")
	columns.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[wire.TrialColumns](), true, "")},
		packedType:         {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: "a PackedHead as the first line, and the bytes of the columns: docs/http-api.md has the layout"}},
	}}}
	huma.Register(api, columns, s.studyColumns)
	huma.Register(api, get("/{id}/curves", "study-curves", "Intermediate values of several trials"), s.studyCurves)
	huma.Register(api, get("/{id}/front", "study-front", "The Pareto front of a study, computed in the background"), s.studyFront)
	huma.Register(api, get("/{id}/importance", "study-importance", "How much each parameter matters, computed in the background"), s.studyImportance)
	huma.Register(api, get("/{id}/outbox", "study-outbox", "What is still to be done after trials ended"), s.studyOutbox)
	s.registerStudyWrites(api)
	s.registerStudyLive(api)
}
