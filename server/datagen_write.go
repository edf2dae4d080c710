package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// datagenWriter is the server's one writer of an experiment, for all its clients, and
// the items that they have claimed.
type datagenWriter struct {
	*datagen.Writer
	busy   int // requests that use it
	used   time.Time
	claims map[string]*itemClaim
	asks   map[string]*claimAsk // by key
	past   []string             // keys whose claims are gone, the oldest first
}

const (
	// datagenWriterIdle is how long a writer without claims stays open.
	datagenWriterIdle = time.Minute
	// datagenCloseTime bounds the end of a writer: what it leaves undone others do.
	datagenCloseTime = 20 * time.Second
)

// write calls do with the writer, which is opened if need be.
func (l *datagenLog) write(ctx context.Context, do func(*datagenWriter) error) error {
	w, err := l.takeWriter(ctx)
	if err != nil {
		return err
	}
	defer l.giveWriter(w)
	return do(w)
}

func (l *datagenLog) takeWriter(ctx context.Context) (*datagenWriter, error) {
	log, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.owner.server.stopped.Err() != nil {
		return nil, datagen.ErrClosed
	}
	if w := l.writer; w != nil && w.Err() != nil {
		l.dropWriter()
	}
	if l.writer == nil {
		w, err := log.NewWriter(context.WithoutCancel(ctx), datagen.WriterOptions{})
		if err != nil {
			return nil, err
		}
		l.writer = &datagenWriter{Writer: w, claims: map[string]*itemClaim{}, asks: map[string]*claimAsk{}}
	}
	l.writer.busy++
	return l.writer, nil
}

func (l *datagenLog) giveWriter(w *datagenWriter) {
	l.writing.Lock()
	w.busy--
	w.used = time.Now()
	l.writing.Unlock()
	l.wrote()
}

// dropWriter ends a writer that is of no use. The caller holds the lock.
func (l *datagenLog) dropWriter() {
	w := l.writer
	l.writer = nil
	l.owner.work.Go(func() { l.closeWriter(w) })
}

func (l *datagenLog) closeWriter(w *datagenWriter) {
	ctx, cancel := context.WithTimeout(context.Background(), datagenCloseTime)
	defer cancel()
	if err := w.Close(ctx); err != nil {
		l.owner.server.log.Warn("writer not closed", "log", l.path, "err", err)
	}
}

// endWriter closes the writer for good: what it acknowledged is merged and its items
// are free.
func (l *datagenLog) endWriter() {
	l.writing.Lock()
	w := l.writer
	l.writer = nil
	l.writing.Unlock()
	if w != nil {
		l.closeWriter(w)
	}
}

// endIdleWriter lets go of claims whose clients are silent, and of a writer that has
// none.
func (l *datagenLog) endIdleWriter() {
	l.writing.Lock()
	defer l.writing.Unlock()
	w := l.writer
	if w == nil {
		return
	}
	for _, c := range w.claims {
		if c.silent(time.Now()) {
			w.forget(c)
			l.owner.work.Go(func() { c.stream.Close(context.Background()) })
		}
	}
	if w.busy == 0 && len(w.claims) == 0 && time.Since(w.used) > datagenWriterIdle {
		l.dropWriter()
	}
}

// mayWriteTo finds an experiment and answers 403 if the token may not write to it.
func (s *Server) mayWriteTo(ctx context.Context, id string) (*datagenLog, error) {
	l, err := s.experiment(id)
	if err != nil {
		return nil, err
	}
	return l, need(ctx, ScopeWrite, l.scope())
}

type createExperimentInput struct {
	Body struct {
		Pipeline   string `json:"pipeline" maxLength:"200"`
		Experiment string `json:"experiment" maxLength:"200"`
	}
}

// createExperiment makes the log of an experiment directly under the root.
func (s *Server) createExperiment(ctx context.Context, in *createExperimentInput) (*struct{ Body wire.CreatedExperiment }, error) {
	b := &in.Body
	if err := errors.Join(datagen.CheckName(b.Pipeline), datagen.CheckName(b.Experiment)); err != nil {
		return nil, s.answer(err)
	}
	if err := need(ctx, ScopeWrite, "datagen/"+b.Pipeline+"/"+b.Experiment); err != nil {
		return nil, err
	}
	_, err := datagen.Create(ctx, s.files, b.Pipeline, b.Experiment, datagenOptions)
	created := err == nil
	if err != nil && !errors.Is(err, datagen.ErrLogExists) {
		return nil, s.answer(err)
	}
	l := s.datagens.look(datagen.Path(b.Pipeline, b.Experiment))
	x, err := l.ready(ctx)
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.CreatedExperiment }{wire.CreatedExperiment{Created: created, ExperimentItem: l.itemOf(x)}}, nil
}

type appendInput struct {
	ID      string `path:"id" maxLength:"64"`
	RawBody []byte `contentType:"application/x-ndjson"`
}

// appendEvents writes events that say themselves what they are.
func (s *Server) appendEvents(ctx context.Context, in *appendInput) (*struct{ Body wire.Appended }, error) {
	l, err := s.mayWriteTo(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events, batches, err := parseEvents(in.RawBody)
	if err != nil {
		return nil, err
	}
	err = l.write(ctx, func(w *datagenWriter) error { return w.Append(ctx, events) })
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.Appended }{wire.Appended{Events: len(events), Batches: batches}}, nil
}

func parseEvents(body []byte) (events []datagen.Event, batches int, err error) {
	line := 0
	for text := range bytes.Lines(body) {
		line++
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		e, err := datagen.ParseEvent(text)
		if err != nil {
			return nil, 0, problem(http.StatusUnprocessableEntity, fmt.Sprintf("line %d: %v", line, err))
		}
		if n := len(events); n == 0 || events[n-1].Item != e.Item || events[n-1].Checkpoint != e.Checkpoint {
			batches++
		}
		events = append(events, e)
	}
	if len(events) > datagen.MaxBatchEvents {
		return nil, 0, problem(http.StatusRequestEntityTooLarge, "too many events at once")
	}
	return events, batches, nil
}

func (s *Server) registerDatagenWrites(api huma.API) {
	post := func(path, id, summary string) huma.Operation {
		op := operation(http.MethodPost, "/api/v1/datagen"+path, id, summary, "datagen")
		op.Errors = append(op.Errors, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusServiceUnavailable, http.StatusInsufficientStorage)
		op.MaxBodyBytes = s.limits.Body
		return op
	}
	huma.Register(api, post("", "create-experiment", "Make an experiment, or open the one that is there"), s.createExperiment)
	op := post("/{id}/append", "append-events", "Append events that are given as JSON, one a line")
	op.Description = "Lines that follow one another with the same item_id and checkpoint_id are one batch: durable together or not at all. " +
		"Batches that the log has already are not written again, so a call whose answer was lost can be repeated; lines should say their event_ts. Batches before one that is refused are in the log."
	huma.Register(api, op, s.appendEvents)
	op = post("/{id}/claims", "claim-item", "Claim an item, or the first that can be had of several")
	op.Description = "The answer has the item with the steps that are complete, and a claim for what follows. A claim whose client is silent for lease_ms is given up; the item can be claimed again and goes on where it stopped. " +
		"A client whose answer was lost asks again with the same key: it is given the same claim, 410 if that is gone by now, 409 if the key was used for something else."
	op.Errors = append(op.Errors, http.StatusGone)
	huma.Register(api, op, s.claimItem)
	op = post("/{id}/claims/{claim}/checkpoint", "checkpoint", "Record that a step is complete, with all its changes, durable before the answer")
	op.Description = "Sending the same key again is answered as the first time. A claim that is gone is 410: claim the item again, its steps tell what was recorded."
	op.Errors = append(op.Errors, http.StatusGone)
	huma.Register(api, op, s.checkpoint)
	op = post("/{id}/claims/{claim}/fail", "fail-item", "Record that the attempt failed; what comes next is of the next attempt")
	op.Errors = append(op.Errors, http.StatusGone)
	huma.Register(api, op, s.failItem)
	op = post("/{id}/claims/{claim}/end", "end-item", "Record that nothing more is to be done for the item")
	op.Errors = append(op.Errors, http.StatusGone)
	huma.Register(api, op, s.endItem)
	op = post("/{id}/claims/{claim}/renew", "renew-claim", "Show that the client lives")
	op.Errors = append(op.Errors, http.StatusGone)
	huma.Register(api, op, s.renewClaim)
	huma.Register(api, post("/{id}/claims/{claim}/release", "release-claim", "Give an item up; what was recorded stays"), s.releaseClaim)
}
