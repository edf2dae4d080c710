package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
)

// The operations of a journal, for clients that fold them themselves: whatever works
// on a journal on disk works on one at a server.

func recordOf(rec *journal.Record) wire.OpRecord {
	return wire.OpRecord{Seq: wire.Count(rec.Seq), Worker: wire.Count(rec.Worker), AtMS: wire.Count(rec.AtMillis), Op: wire.Object(append([]byte(nil), rec.Op...))}
}

func headOf(h journal.Header) wire.OpsHead {
	return wire.OpsHead{Format: h.Format, Program: h.Program,
		JournalIdentity: wire.JournalIdentity{CreatedMS: wire.Count(h.CreatedAtMillis), CreatedBy: wire.Count(h.CreatedBy)}}
}

type opsInput struct {
	Path  string `query:"path" required:"true" maxLength:"4096" doc:"of the journal under the root"`
	After uint64 `query:"after" doc:"the operations after this one, all of them from 0"`
}

// journal finds a journal by its path under the root.
func (s *Server) journal(name string) (*journalLog, error) {
	s.studies.mu.RLock()
	l := s.studies.journals[name]
	s.studies.mu.RUnlock()
	if l == nil {
		return nil, problem(http.StatusNotFound, fmt.Sprintf("there is no journal %.200q", name))
	}
	return l, nil
}

// journalNow looks for a journal that may have been made just now.
func (s *Server) journalNow(name string) (*journalLog, error) {
	if l, err := s.journal(name); err == nil || !journalName(name) || s.throughLink(name) {
		return l, err
	}
	if info, err := s.root.Lstat(filepath.FromSlash(name)); err == nil && info.Mode().IsRegular() {
		s.find.file(name, info, nil)
	}
	return s.journal(name)
}

// throughLink tells whether a symbolic link leads to a path. What is found by them would
// be one thing under any number of names.
func (s *Server) throughLink(name string) bool {
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if info, err := s.root.Lstat(filepath.FromSlash(name[:i])); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// journalName tells whether a journal may have that path.
func journalName(name string) bool {
	return path.Clean(name) == name && filepath.IsLocal(filepath.FromSlash(name)) && !hidden(name) && path.Ext(name) == ".atj" &&
		!strings.Contains(name, ".d/") && !strings.Contains(name, ".lance/") && !strings.ContainsAny(name, "\\:\x00")
}

func (s *Server) listOps(_ context.Context, in *opsInput) (*huma.StreamResponse, error) {
	l, err := s.journalNow(in.Path)
	if err != nil {
		return nil, err
	}
	tail := s.tails.of(in.Path)
	tail.mu.Lock()
	defer tail.mu.Unlock()
	if err := tail.refresh(l); err != nil {
		return nil, s.answer(err)
	}
	head := headOf(tail.reader.Header())
	head.Last = tail.mark(in.After)
	end := tail.reader.Applied()
	if in.After > end {
		return nil, problem(http.StatusConflict, "the journal does not go so far")
	}
	missing := uint64(0) // before the tail
	if len(tail.ops) > 0 {
		missing = uint64(tail.ops[0].Seq) - 1
	}
	if in.After < missing {
		return s.lines(func(put func(any) error) error { return l.replay(in.After, put) }), nil
	}
	ops := tail.ops[in.After-missing:]
	return s.lines(func(put func(any) error) error {
		if err := put(head); err != nil {
			return err
		}
		for i := range ops {
			if err := put(ops[i]); err != nil {
				return err
			}
		}
		return put(wire.OpsEnd{End: wire.Count(end)})
	}), nil
}

// replay reads a journal from its beginning for one client.
func (l *journalLog) replay(after uint64, put func(any) error) error {
	r, err := journal.OpenReader(l.fullPath(), journal.ReaderOptions{FS: l.owner.fs})
	if err != nil {
		return err
	}
	defer r.Close()
	head := headOf(r.Header())
	if after == 0 {
		if err := put(head); err != nil {
			return err
		}
	}
	if err := r.Refresh(applyFunc(func(rec *journal.Record) error {
		switch {
		case rec.Seq < after:
			return nil
		case rec.Seq == after:
			head.Last = &wire.OpMark{Worker: wire.Count(rec.Worker), AtMS: wire.Count(rec.AtMillis)}
			return put(head)
		}
		return put(recordOf(rec))
	})); err != nil {
		return err
	}
	return put(wire.OpsEnd{End: wire.Count(r.Applied())})
}

// applyFunc is a journal.Applier that sees the history once.
type applyFunc func(*journal.Record) error

// Apply implements journal.Applier.
func (f applyFunc) Apply(rec *journal.Record) error { return f(rec) }

// Reset implements journal.Applier.
func (f applyFunc) Reset() {}

// lines answers with JSON lines (see writeLines).
func (s *Server) lines(run func(put func(any) error) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		s.writeLines(w, run)
	}}
}

// writeLines writes JSON lines. An error ends them in the middle, which the client
// notices by the end that is missing.
func (s *Server) writeLines(w http.ResponseWriter, run func(put func(any) error) error) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(&pacedWriter{w: w, control: http.NewResponseController(w), within: s.limits.Write})
	enc.SetEscapeHTML(false)
	if err := run(func(v any) error { return enc.Encode(v) }); err != nil {
		s.log.Debug("answer cut", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// pacedWriter lets a long answer go on as long as its client takes it.
type pacedWriter struct {
	w       io.Writer
	control *http.ResponseController
	within  time.Duration
	since   int
}

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	if p.since == 0 || p.since > pacedBytes {
		_ = p.control.SetWriteDeadline(time.Now().Add(p.within))
		p.since = 0
	}
	p.since += len(b)
	return p.w.Write(b)
}

type appendOpsInput struct {
	Path string `query:"path" required:"true" maxLength:"4096" doc:"of the journal under the root"`
	Body struct {
		ID    string                `json:"id" minLength:"8" maxLength:"100" doc:"drawn by the client; sending the same again is answered as the first time"`
		After wire.Count            `json:"after" doc:"the last operation that the client knows"`
		Head  *wire.JournalIdentity `json:"journal,omitempty" doc:"of the journal that the client has read, so that no other one is written to"`
		Last  *wire.OpMark          `json:"last,omitempty" doc:"of that last operation, so that no other history is gone on with"`
		Ops   []wire.Object         `json:"ops" minItems:"1" maxItems:"10000"`
	}
}

// errMoved ends a transaction whose client does not know the newest operations.
var errMoved = problem(http.StatusPreconditionFailed, "the journal has moved")

// appendOps publishes operations if the journal is where the client thinks.
func (s *Server) appendOps(ctx context.Context, in *appendOpsInput) (*struct{ Body wire.OpsAnswer }, error) {
	l, err := s.journalNow(in.Path)
	if err != nil {
		return nil, err
	}
	if err := need(ctx, ScopeWrite, ""); err != nil {
		return nil, err
	}
	tail := s.tails.of(in.Path)
	if answer, ok, err := tail.begin(ctx, in.Body.ID, uint64(in.Body.After)); ok || err != nil {
		return &struct{ Body wire.OpsAnswer }{answer}, err
	}
	defer tail.end(in.Body.ID)
	if err := tail.expect(l, in); err != nil {
		return nil, s.answer(err)
	}
	var answer wire.OpsAnswer
	_, err = l.update(context.WithoutCancel(ctx), func(tx *study.Tx) error {
		if tx.Snapshot().Seq() != uint64(in.Body.After) {
			return errMoved
		}
		answer = wire.OpsAnswer{Seq: in.Body.After + wire.Count(len(in.Body.Ops)), Worker: wire.Count(tx.Worker()), AtMS: wire.Count(tx.AtMillis())}
		return applyOps(ctx, tx, in.Body.Ops)
	})
	if err != nil {
		return nil, s.answer(err)
	}
	tail.remember(in.Body.ID, sentOps{uint64(in.Body.After), answer})
	return &struct{ Body wire.OpsAnswer }{answer}, nil
}

func applyOps(ctx context.Context, tx *study.Tx, ops []wire.Object) error {
	var d study.Decoder
	for i, raw := range ops {
		op, err := d.Decode(raw)
		if err != nil {
			return problem(http.StatusUnprocessableEntity, fmt.Sprintf("operation %d: %v", i, err))
		}
		if err := tx.Adopt(op); err != nil {
			return err
		}
	}
	for st := range tx.Snapshot().Studies() {
		if err := need(ctx, ScopeWrite, "studies/"+st.Config.Name); err != nil {
			return problem(http.StatusForbidden, "this token may not write to every study of the journal; the calls for studies and trials are for those that it may")
		}
	}
	return nil
}

type createJournalInput struct {
	Body struct {
		Path string      `json:"path" maxLength:"4096" doc:"under the root, with the extension .atj"`
		By   *wire.Count `json:"created_by,omitempty" doc:"the worker that makes it, at random below 2^53: a journal that it made before, when the answer was lost, counts as made now"`
	}
}

// createJournal makes an empty journal, and the directories on its way.
func (s *Server) createJournal(ctx context.Context, in *createJournalInput) (*struct{ Body wire.CreatedJournal }, error) {
	name := in.Body.Path
	if !journalName(name) {
		return nil, problem(http.StatusUnprocessableEntity, "a journal is a path under the root that ends in .atj")
	}
	if err := need(ctx, ScopeWrite, "journals/"+name); err != nil {
		return nil, err
	}
	if s.throughLink(name) {
		return nil, problem(http.StatusForbidden, "a link is on the way to that path")
	}
	dir := path.Dir(name)
	if dir != "." {
		if err := s.root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
			return nil, s.answer(err)
		}
	}
	by := (*uint64)(in.Body.By)
	if by != nil && *by >= 1<<53 {
		return nil, problem(http.StatusUnprocessableEntity, "a worker is a number below 2^53")
	}
	made, err := s.makeJournal(ctx, inRoot(s.root, name), by)
	if err != nil {
		return nil, s.answer(err)
	}
	if made {
		if err := syncNames(s.studies.fs, s.root, dir); err != nil {
			return nil, s.answer(err)
		}
	}
	if _, err := s.journalNow(name); err != nil {
		return nil, err
	}
	return &struct{ Body wire.CreatedJournal }{wire.CreatedJournal{Path: name, Created: made}}, nil
}

// makeJournal tells whether the journal at a path was made by that worker, now or by the
// same request before.
func (s *Server) makeJournal(ctx context.Context, at string, by *uint64) (bool, error) {
	j, err := study.CreateJournal(ctx, at, journal.WriterOptions{FS: s.studies.fs, Program: s.program, Worker: by})
	if err == nil {
		return true, j.Close()
	}
	if !errors.Is(err, journal.ErrExist) {
		return false, err
	}
	if by == nil {
		return false, nil
	}
	r, err := journal.OpenReader(at, journal.ReaderOptions{FS: s.studies.fs})
	if err != nil {
		return false, err
	}
	defer r.Close()
	return r.Header().CreatedBy == *by, nil
}

func (s *Server) registerJournals(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/journals/ops", "list-ops", "The operations of a journal", "journals")
	op.Description = "JSON lines: an OpsHead, an OpRecord each, and an OpsEnd. Without the last one the answer is cut: ask for the rest."
	op.Errors = append(op.Errors, http.StatusConflict)
	ndjson(&op)
	huma.Register(api, op, s.listOps)
	op = operation(http.MethodPost, "/api/v1/journals/ops", "append-ops", "Publish operations as those that follow the last one that the client knows", "journals")
	op.Description = "412 means that others have published meanwhile and nothing was taken: read what is new, and try again. They are synced before the answer."
	op.Errors = append(op.Errors, http.StatusConflict, http.StatusPreconditionFailed, http.StatusUnprocessableEntity, http.StatusInsufficientStorage)
	op.MaxBodyBytes = s.limits.Body
	huma.Register(api, op, s.appendOps)
	op = operation(http.MethodPost, "/api/v1/journals", "create-journal", "Make an empty journal, or find the one that is there", "journals")
	op.Errors = append(op.Errors, http.StatusUnprocessableEntity, http.StatusInsufficientStorage)
	huma.Register(api, op, s.createJournal)
}

// ndjson makes the document say that the answer is JSON lines.
func ndjson(op *huma.Operation) {
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"application/x-ndjson": {Schema: &huma.Schema{Type: huma.TypeString}},
	}}}
}
