// Package session is what the sessions with client libraries have in common: requests
// come as lines of JSON on standard input, and each is answered by one line.
package session

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/hints"
	"github.com/foldlog/foldlog/internal/cli"
)

// Answer is one line of the output of a session.
type Answer struct {
	ID    json.RawMessage `json:"id"`    // of the request, null if it has none
	OK    any             `json:"ok"`    // the result, null after an error
	Error *Problem        `json:"error"` // null if the request was done
}

// Problem says why a request was not done.
type Problem struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do about it, "" if there is nothing to say
}

// Kind tells errors apart that clients may act on.
type Kind struct {
	Name  string
	Match func(error) bool
}

// Describe is an error for a client. The first kind that matches names it, or else other.
func Describe(err error, kinds []Kind, other string) *Problem {
	p := &Problem{Kind: other, Message: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: cli.HintFor(err, hints.Rules())}
	for _, k := range kinds {
		if k.Match(err) {
			p.Kind = k.Name
			break
		}
	}
	return p
}

var errOrphaned = errors.New("the program that started the session has ended")

// Serve hands the lines of in that are not empty to do, one after the other, nil for one
// of more than most bytes. It returns when the input ends, when ctx does, with its cause,
// and when the program that started this process has ended, which is no error. The context
// of do ends in the last two cases.
func Serve(ctx context.Context, in io.Reader, most int, do func(ctx context.Context, line []byte) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go watchParent(ctx, os.Getppid(), stop)
	lines, broken := make(chan []byte), make(chan error, 1)
	go func() { broken <- readLines(ctx, in, most, lines) }()
	for {
		select {
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errOrphaned) {
				return err
			}
			return nil
		case line, ok := <-lines:
			if !ok {
				return <-broken
			}
			if err := do(ctx, line); err != nil {
				return err
			}
		}
	}
}

// OutliveTermination is a context that ends when ctx does, but not by SIGTERM, which
// clusters and service managers send to every process of a job: the program that started
// this one ends it, in its own time.
func OutliveTermination(ctx context.Context) (out context.Context, stop func()) {
	out, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		var signal *cli.SignalError
		cause := context.Cause(ctx)
		if errors.As(cause, &signal) && signal.Number == int(syscall.SIGTERM) {
			return
		}
		cancel(cause)
	})
	return out, func() { release(); cancel(context.Canceled) }
}

// watchParent stops a session whose program has ended.
func watchParent(ctx context.Context, parent int, stop context.CancelCauseFunc) {
	watch := time.NewTicker(time.Second)
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
			if os.Getppid() != parent {
				stop(errOrphaned)
				return
			}
		}
	}
}
