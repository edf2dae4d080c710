package remote_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/remote"
)

// deaf loses the first answer to each claim that is put.
type deaf struct {
	http.RoundTripper
	mu   sync.Mutex
	lost map[string]bool
}

// RoundTrip implements http.RoundTripper.
func (d *deaf) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	key := r.URL.Query().Get("key")
	if err != nil || r.Method != http.MethodPut || !strings.Contains(key, "/claims/") {
		return resp, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost[key] {
		return resp, nil
	}
	d.lost[key] = true
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return nil, errLost
}

// TestAClaimWhoseAnswerWasLostIsItsClients: the file of a claim says whose it is.
func TestAClaimWhoseAnswerWasLostIsItsClients(t *testing.T) {
	_, c := newServer(t)
	ctx := t.Context()
	net := &deaf{RoundTripper: c.HTTP.Transport, lost: map[string]bool{}}
	away := &remote.Client{Base: c.Base, HTTP: &http.Client{Transport: net}, Patience: time.Minute}
	log, err := datagen.OpenOrCreate(ctx, away.Store(), "p", "e", datagen.Options{})
	must(t, err)
	w, err := log.NewWriter(ctx, datagen.WriterOptions{})
	must(t, err)
	var keys []string
	for i := range 5 {
		keys = append(keys, fmt.Sprint("item-", i))
	}
	for _, key := range keys {
		s, err := w.Open(ctx, key, datagen.CreateOptions{})
		must(t, err)
		must(t, s.Close(ctx))
	}
	claims, err := w.Claims(ctx, keys, datagen.ClaimsOptions{})
	must(t, err)
	for range keys {
		s, err := claims.Next(ctx)
		must(t, err)
		must(t, s.End(ctx, datagen.EndCompleted))
	}
	if _, err := claims.Next(ctx); !errors.Is(err, io.EOF) {
		t.Errorf("after the last item: %v", err)
	}
	must(t, w.Close(ctx))
	if len(net.lost) < len(keys) {
		t.Errorf("%d answers were lost", len(net.lost))
	}
}
