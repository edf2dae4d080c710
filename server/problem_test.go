package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/server/internal/wire"
)

// TestWhatAClientCancelsIsNoErrorOfTheServer looks at what is logged of failures.
func TestWhatAClientCancelsIsNoErrorOfTheServer(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		status int
		logged bool
	}{
		"the client went":     {fmt.Errorf("read log: %w", context.Canceled), http.StatusServiceUnavailable, false},
		"it went while told":  {errors.Join(errors.New("read log"), context.Canceled), http.StatusServiceUnavailable, false},
		"a time limit passed": {fmt.Errorf("read log: %w", context.DeadlineExceeded), http.StatusInternalServerError, true},
		"a disk failed":       {errors.New("input/output error"), http.StatusInternalServerError, true},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			s := &Server{log: slog.New(slog.NewTextHandler(&logged, nil))}
			var p *wire.Problem
			if err := s.answer(test.err); !errors.As(err, &p) || p.Status != test.status {
				t.Errorf("answer: %v, want the status %d", err, test.status)
			}
			if got := strings.Contains(logged.String(), "level=ERROR"); got != test.logged {
				t.Errorf("logged %q", logged.String())
			}
		})
	}
}
