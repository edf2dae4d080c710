package optuna

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// Why Optuna is refused something.
var (
	// ErrNotFound is Optuna's KeyError: there is no such study or trial, or the
	// study was deleted.
	ErrNotFound = errors.New("no such record")
	// ErrFinished is Optuna's UpdateFinishedTrialError: the trial has ended, or is
	// not Optuna's to change.
	ErrFinished = errors.New("the trial cannot be changed")
	// ErrDuplicate is Optuna's DuplicatedStudyError: a study has that name.
	ErrDuplicate = errors.New("a study of that name exists")
	// ErrInvalid is Optuna's ValueError.
	ErrInvalid = errors.New("invalid value")

	// errIncompatible is the ErrInvalid of a distribution that does not go with
	// another trial's.
	errIncompatible = fmt.Errorf("%w: incompatible distribution", ErrInvalid)
)

// codeOf tells an error as Optuna's own server does, where it does.
func codeOf(err error) codes.Code {
	var uncertain *journal.UncertainError
	var corrupt *journal.CorruptError
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, study.ErrNotFound):
		return codes.NotFound
	case errors.Is(err, ErrFinished):
		return codes.FailedPrecondition
	case errors.Is(err, ErrDuplicate), errors.Is(err, study.ErrExists):
		return codes.AlreadyExists
	case errors.Is(err, ErrInvalid), errors.Is(err, study.ErrInvalid):
		return codes.InvalidArgument
	case errors.Is(err, study.ErrTooLarge):
		return codes.ResourceExhausted
	case errors.Is(err, study.ErrClosed):
		return codes.Unavailable
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case errors.As(err, &uncertain):
		return codes.Aborted
	case errors.As(err, &corrupt):
		return codes.DataLoss
	}
	return codes.Internal
}

// answer is what the client gets to see of an error.
func answer(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codeOf(err), err.Error())
}
