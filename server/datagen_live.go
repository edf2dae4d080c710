package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/server/internal/wire"
)

type experimentLiveInput struct {
	ID   string `path:"id" maxLength:"64"`
	Seq  string `query:"seq" maxLength:"20" doc:"of the answer that was read last"`
	Last string `header:"Last-Event-ID" maxLength:"20" doc:"of the last event that was seen; goes before seq"`
}

// mostLiveItems is how many items one event tells of.
const mostLiveItems = 500

func (s *Server) registerDatagenLive(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/datagen/{id}/live", "experiment-live", "What changes in an experiment, as server-sent events", "live")
	op.Description = "Events: items (a LiveItems), also with what has changed since seq; reset ({}): seq is not known here, read the list anew; gone ({}). The id of an event is its seq."
	streamed(&op)
	huma.Register(api, op, func(ctx context.Context, in *experimentLiveInput) (*huma.StreamResponse, error) {
		l, x, err := s.indexed(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		seen, reset := x.Version(), false
		if last := cmp.Or(in.Last, in.Seq); last != "" {
			n, err := strconv.ParseUint(last, 10, 64)
			if reset = err != nil || n > seen; !reset {
				seen = n
			}
		}
		return s.stream(func(e *eventStream) { s.followExperiment(e, l, seen, reset) }), nil
	})
}

func (s *Server) followExperiment(e *eventStream, l *datagenLog, seen uint64, reset bool) {
	if reset && !e.send(uitoa(seen), "reset", []byte("{}")) {
		return
	}
	for {
		changed, gone := s.live.topic("experiment", l.id), s.live.topic("experiment-gone", l.id)
		if _, err := s.experiment(l.id); err != nil {
			e.send("", "gone", []byte("{}"))
			return
		}
		x, err := l.ready(e.ctx)
		if err != nil {
			e.send("", "gone", []byte("{}"))
			return
		}
		if now := x.Version(); now > seen {
			if !s.sendItems(e, l, x, seen, now) {
				return
			}
			seen = now
		}
		if !e.wait(changed, gone) {
			return
		}
	}
}

func (s *Server) sendItems(e *eventStream, l *datagenLog, x *datagen.Index, seen, now uint64) bool {
	live := wire.LiveItems{Seq: wire.Count(now), Experiment: l.itemOf(x), Items: []wire.ItemLine{}}
	items, more := x.Changed(seen, mostLiveItems)
	live.More = more
	for _, item := range items {
		live.Items = append(live.Items, itemLine(item))
	}
	data, err := json.Marshal(live)
	if err != nil {
		s.log.Error("items not spelled", "experiment", l.path, "err", err)
		return false
	}
	return e.send(uitoa(now), "items", data)
}
