package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

type studyLiveInput struct {
	ID   string `path:"id" maxLength:"64"`
	Seq  string `query:"seq" maxLength:"20" doc:"of the answer that was read last: what has come since makes a reset"`
	Last string `header:"Last-Event-ID" maxLength:"20" doc:"of the last event that was seen; goes before seq"`
}

// mostLiveTrials is how many trials one event tells of.
const mostLiveTrials = 500

func (s *Server) registerStudyLive(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/studies/{id}/live", "study-live", "What changes in a study, as server-sent events", "live")
	op.Description = "Events: trials (a LiveTrials); reset ({}): there was more since seq than is known, read the study anew; gone ({}). The id of an event is its seq."
	streamed(&op)
	huma.Register(api, op, func(ctx context.Context, in *studyLiveInput) (*huma.StreamResponse, error) {
		log, snap, st, err := s.study(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		last := cmp.Or(in.Last, in.Seq)
		missed := last != "" && last != strconv.FormatUint(snap.Seq(), 10)
		return s.stream(func(e *eventStream) { s.followStudy(e, in.ID, log, snap, st.ID, missed) }), nil
	})
}

func (s *Server) followStudy(e *eventStream, id string, log *journalLog, seen *study.Snapshot, st study.StudyID, missed bool) {
	if missed && !e.send(uitoa(seen.Seq()), "reset", []byte("{}")) {
		return
	}
	for {
		changed, gone := s.live.topic("study", id), s.live.topic("study-gone", id)
		snap, err := log.snapshot(e.ctx)
		if errors.Is(err, study.ErrNotFound) || lostJournal(err) {
			e.send("", "gone", []byte("{}"))
		}
		if err != nil { // the client comes back
			return
		}
		if snap.Seq() < seen.Seq() {
			if !e.send(uitoa(snap.Seq()), "reset", []byte("{}")) {
				return
			}
			seen = snap
		}
		if snap.Seq() != seen.Seq() {
			if !s.sendTrials(e, log, seen, snap, st) {
				return
			}
			seen = snap
		}
		if !e.wait(changed, gone) {
			return
		}
	}
}

func (s *Server) sendTrials(e *eventStream, log *journalLog, seen, snap *study.Snapshot, id study.StudyID) bool {
	now, err := snap.Study(id)
	if err != nil {
		return false
	}
	live := wire.LiveTrials{Seq: wire.Count(snap.Seq()), Study: log.itemOf(snap, now), Items: []wire.TrialItem{}}
	for t := range snap.Trials(id, study.TrialFilter{}) {
		// A trial that has not changed is the same one in both snapshots, unless one is
		// a writer's and the other a reader's: then it looks the same.
		old, err := seen.Trial(t.ID)
		if err == nil && old == t {
			continue
		}
		item := trialItem(snap, now, t)
		if err == nil && reflect.DeepEqual(item, trialItem(seen, now, old)) {
			continue
		}
		if live.More = len(live.Items) == mostLiveTrials; live.More {
			break
		}
		live.Items = append(live.Items, item)
	}
	data, err := json.Marshal(live)
	if err != nil {
		s.log.Error("trials not spelled", "study", now.Config.Name, "err", err)
		return false
	}
	return e.send(uitoa(snap.Seq()), "trials", data)
}
