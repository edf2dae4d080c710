package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/server/internal/wire"
)

// claims is the address of the claims of a new experiment.
func (s *site) claims() string {
	s.t.Helper()
	var made wire.CreatedExperiment
	s.post("/api/v1/datagen", map[string]any{"pipeline": "p", "experiment": "e"}, &made)
	return "/api/v1/datagen/" + made.ID + "/claims"
}

// unheard makes a request whose answer is lost: the server has carried it out, and the
// connection is cut before a byte of the answer.
func (s *site) unheard(path string, body any) {
	s.t.Helper()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		s.Handler().ServeHTTP(answer, r)
		if answer.Code != http.StatusOK {
			s.t.Errorf("%d %s", answer.Code, answer.Body)
		}
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	if resp, err := cut.Client().Post(cut.URL+path, "application/json", strings.NewReader(string(mustJSON(body)))); err == nil {
		_ = resp.Body.Close()
		s.t.Fatalf("there was an answer: %d", resp.StatusCode)
	}
}

func TestAClaimWhoseAnswerWasLostIsGivenAgain(t *testing.T) {
	s := newSite(t, Options{})
	at := s.claims()
	ask := map[string]any{"items": []string{"a", "b", "c"}, "lease_ms": 3_600_000, "key": "drawn-1"}
	s.unheard(at, ask)
	s.unheard(at, ask)
	var c, again wire.ItemClaim
	s.post(at, ask, &c)
	s.post(at+"/"+c.Claim+"/checkpoint", map[string]any{"key": "1", "step": map[string]any{"name": "draw"}}, nil)
	s.post(at, ask, &again)
	if c.Claim == "" || again.Claim != c.Claim || again.Name != c.Name || again.Epoch != c.Epoch {
		t.Errorf("%+v, then %+v", c, again)
	}
	if again.Item == nil || len(again.Item.Steps) != 1 {
		t.Errorf("the item as it stands: %+v", again.Item)
	}
	free := 0
	for key := 2; ; key++ {
		ask["key"] = fmt.Sprint("drawn-", key)
		if s.post(at, ask, &c); c.Claim == "" {
			break
		}
		free++
	}
	if free != 2 || c.Waiting != 3 {
		t.Errorf("%d items were left for others of 2, and %d are held", free, c.Waiting)
	}
}

func TestRequestsWithOneKeyAtOnceAreGivenOneClaim(t *testing.T) {
	s := newSite(t, Options{})
	at := s.claims()
	ask := map[string]any{"items": []string{"a", "b", "c", "d"}, "key": "drawn"}
	var (
		all sync.WaitGroup
		got [8]wire.ItemClaim
	)
	for i := range got {
		all.Go(func() { s.post(at, ask, &got[i]) })
	}
	all.Wait()
	for _, c := range got {
		if c.Claim == "" || c.Claim != got[0].Claim {
			t.Errorf("%+v, and %+v", got[0], c)
		}
	}
}

func TestAKeyIsForOneClaim(t *testing.T) {
	s := newSite(t, Options{})
	at := s.claims()
	ask := map[string]any{"items": []string{"a"}, "key": "drawn", "lease_ms": 3_600_000}
	var c wire.ItemClaim
	s.post(at, ask, &c)
	if a := s.do("POST", at, map[string]any{"items": []string{"b"}, "key": "drawn"}); a.status != http.StatusConflict {
		t.Errorf("the key of another request: %d %s", a.status, a.body)
	}
	s.post(at+"/"+c.Claim+"/release", nil, nil)
	if a := s.do("POST", at, ask); a.status != http.StatusGone {
		t.Errorf("a request that comes late: %d %s", a.status, a.body)
	}
	ask["key"] = "another"
	if s.post(at, ask, &c); c.Name != "a" {
		t.Errorf("what was given up is not had: %+v", c)
	}
	held := map[string]any{"items": []string{"a"}, "key": "waits"}
	if a := s.do("POST", at, held); a.status != http.StatusConflict {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.post(at+"/"+c.Claim+"/release", nil, nil)
	if s.post(at, held, &c); c.Name != "a" {
		t.Errorf("a key that was given nothing cannot be used again: %+v", c)
	}
}

// TestKeysOfClaimsThatAreGoneAreForgottenInTheEnd is about memory.
func TestKeysOfClaimsThatAreGoneAreForgottenInTheEnd(t *testing.T) {
	w := &datagenWriter{claims: map[string]*itemClaim{}, asks: map[string]*claimAsk{}}
	l := &datagenLog{}
	for i := range 3 * keptAsks {
		key := fmt.Sprint(i)
		ask, err := l.ask(w, key, "what")
		if err != nil {
			t.Fatal(err)
		}
		c := &itemClaim{id: "claim " + key, key: key, lease: time.Minute}
		w.keep(c)
		l.askDone(w, key, ask)
		w.forget(c)
	}
	if len(w.asks) != keptAsks || len(w.past) != keptAsks || len(w.claims) != 0 {
		t.Errorf("%d keys, %d past, %d claims", len(w.asks), len(w.past), len(w.claims))
	}
	ask, err := l.ask(w, fmt.Sprint(3*keptAsks-1), "what")
	if err != nil {
		t.Fatal(err)
	}
	var p *wire.Problem
	if _, err := l.askedFor(ask); !errors.As(err, &p) || p.Status != http.StatusGone {
		t.Errorf("the latest is not known: %v", err)
	}
}
