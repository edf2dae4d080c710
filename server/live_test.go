package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A client can tell a stream that is silent from one that is lost, and a wrong clock.
func TestEventStreamsBeginWithTheTime(t *testing.T) {
	s := newSite(t, Options{})
	population(s, 1)
	for _, path := range []string{"/api/v1/live", "/api/v1/runs/run-000/live"} {
		ctx, cancel := context.WithTimeout(t.Context(), longEnough)
		req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		first, _ := body.ReadString('\n')
		second, _ := body.ReadString('\n')
		resp.Body.Close()
		cancel()
		data, ok := strings.CutPrefix(first+second, "event: beat\ndata: ")
		var told struct {
			NowMS int64 `json:"now_ms"`
		}
		if err := json.Unmarshal([]byte(strings.TrimSpace(data)), &told); !ok || err != nil || time.Since(time.UnixMilli(told.NowMS)).Abs() > time.Hour {
			t.Errorf("%s begins with %q: %v", path, first+second, err)
		}
	}
}

func TestAStreamThatIsNeverSilentBeatsToo(t *testing.T) {
	w := httptest.NewRecorder()
	e := &eventStream{w: w, control: http.NewResponseController(w), ctx: t.Context(), within: time.Second}
	for range 3 {
		e.send("1", "run", []byte("{}"))
	}
	kinds := regexp.MustCompile(`(?m)^event: (.*)$`).FindAllString(w.Body.String(), -1)
	if got := strings.Join(kinds, " "); got != "event: beat event: run event: run event: run" {
		t.Errorf("sent %s", got)
	}
}
