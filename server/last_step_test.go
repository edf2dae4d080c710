package server

import (
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// TestTheLastStepIsOneRule: that of the last event which has one, a metric or an
// annotation, is told by a server as by who reads the file.
func TestTheLastStepIsOneRule(t *testing.T) {
	s := newSite(t, Options{})
	checkpoint := `{"ts_ms":1790000000100,"step":48,"kind":"annotation","annotation":"checkpoint /c","metadata":{"checkpoint":"/c"}}` + "\n"
	text, at := stream("run", 40), 0
	for _, more := range []string{text, checkpoint, openLine("run", "{}"), pointLine(41), `{"ts_ms":1790000000200,"kind":"done","slug":"run"}` + "\n"} {
		s.post(streamAt("run", firstLine(text), at), []byte(more), nil)
		at += len(more)
		content := s.content(s.file("run", firstLine(text)))
		end, err := metricsview.EndingOf(strings.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		var run wire.RunDetail
		s.get("/api/v1/runs/run", &run)
		log := streamItem(s.store.Run("run").Streams[0])
		if end.Stepped != log.Stepped || end.Stepped && (end.Step != log.Step || end.Step != int64(run.LastStep)) {
			t.Errorf("after %sthe file says %+v, the list %+v, the run %d", more, end, log, run.LastStep)
		}
	}
}
