package server

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
	"github.com/foldlog/foldlog/study"
	"github.com/foldlog/foldlog/study/asktell"
)

var _ huma.StatusError = (*wire.Problem)(nil)

func problem(status int, detail string) *wire.Problem {
	return &wire.Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// init makes huma spell its own errors, those of validation, as ours. No other
// package of a program that holds a server uses huma.
func init() {
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		p := problem(status, detail)
		for _, err := range errs {
			var d huma.ErrorDetailer
			if errors.As(err, &d) {
				e := d.ErrorDetail()
				p.Errors = append(p.Errors, wire.ProblemPart{Location: e.Location, Message: e.Message})
			} else if err != nil {
				p.Errors = append(p.Errors, wire.ProblemPart{Location: "", Message: err.Error()})
			}
		}
		return p
	}
}

// refuse answers outside of huma.
func refuse(w http.ResponseWriter, status int, detail string) {
	b, err := json.Marshal(problem(status, detail))
	if err != nil {
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(b)
}

// statuses maps the errors of the packages below to answers. The first match
// counts.
var statuses = []struct {
	err    error
	status int
}{
	{projection.ErrNotFound, http.StatusNotFound},
	{study.ErrNotFound, http.StatusNotFound},
	{metrics.ErrSlug, http.StatusBadRequest},
	{metrics.ErrRefused, http.StatusBadRequest},
	{datagen.ErrNoItem, http.StatusNotFound},
	{datagen.ErrNoLog, http.StatusNotFound},
	{datagen.ErrNoBlob, http.StatusNotFound},
	{datagen.ErrNoCheckpoint, http.StatusNotFound},
	{datagen.ErrHeld, http.StatusConflict},
	{datagen.ErrEnded, http.StatusConflict},
	{datagen.ErrFault, http.StatusConflict},
	{datagen.ErrFenced, http.StatusConflict},
	{datagen.ErrLogExists, http.StatusConflict},
	{datagen.ErrUnsure, http.StatusServiceUnavailable},
	{datagen.ErrClosed, http.StatusServiceUnavailable},
	{datagen.ErrName, http.StatusUnprocessableEntity},
	{datagen.ErrEvent, http.StatusUnprocessableEntity},
	{objstore.ErrNotFound, http.StatusNotFound},
	{objstore.ErrKey, http.StatusUnprocessableEntity},
	{study.ErrFenced, http.StatusConflict},
	{study.ErrConflict, http.StatusConflict},
	{study.ErrBadState, http.StatusConflict},
	{study.ErrManaged, http.StatusConflict},
	{study.ErrBudget, http.StatusConflict},
	{study.ErrExists, http.StatusConflict},
	{asktell.ErrKeyUsed, http.StatusConflict},
	{journal.ErrReplaced, http.StatusConflict},
	{study.ErrTooLarge, http.StatusRequestEntityTooLarge},
	{study.ErrReserved, http.StatusUnprocessableEntity},
	{study.ErrInvalid, http.StatusUnprocessableEntity},
	{study.ErrClosed, http.StatusServiceUnavailable},
	{syscall.ENAMETOOLONG, http.StatusUnprocessableEntity},
	{syscall.ENOTDIR, http.StatusConflict},
	{syscall.EISDIR, http.StatusConflict},
	{syscall.EROFS, http.StatusForbidden},
	{fs.ErrPermission, http.StatusForbidden},
	{fs.ErrNotExist, http.StatusNotFound},
	{fs.ErrExist, http.StatusConflict},
}

// leadsOut tells whether a path would have left the root. Package os has no name for
// that error.
func leadsOut(err error) bool {
	var path *fs.PathError
	for errors.As(err, &path) {
		if err = path.Err; err != nil && err.Error() == "path escapes from parent" {
			return true
		}
	}
	return false
}

// answer makes a problem of an error. What is not expected is logged and told
// without its words, which may name paths.
func (s *Server) answer(err error) error {
	var p *wire.Problem
	if err == nil || errors.As(err, &p) {
		return err
	}
	for _, known := range statuses {
		if errors.Is(err, known.err) {
			return problem(known.status, s.withoutRoot(err.Error()))
		}
	}
	if leadsOut(err) {
		return problem(http.StatusForbidden, "a link leads out of the root")
	}
	for _, full := range diskFull {
		if errors.Is(err, full) {
			return problem(http.StatusInsufficientStorage, s.withoutRoot(err.Error()))
		}
	}
	if errors.Is(err, context.Canceled) {
		// The client went, or the server ends: nothing is wrong with the log.
		s.log.Debug("request cancelled", "err", err)
		return problem(http.StatusServiceUnavailable, "the request was cancelled")
	}
	s.log.Error("request failed", "err", err)
	return problem(http.StatusInternalServerError, "the server's log has the reason")
}
