package study

import (
	"bytes"
	"os"
	"testing"

	"github.com/foldlog/foldlog/internal/serde"
)

// opLine is one line of a journal's operation stream.
type opLine struct {
	seq, worker, at uint64
	op              []byte
}

// readLines splits an operation stream, the way a journal would.
func readLines(t testing.TB, path string) (lines []opLine) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var l opLine
		s := serde.NewScanner(line)
		for s.Object(); s.NextKey(); {
			switch string(s.Key()) {
			case "seq":
				l.seq = s.Uint64()
			case "worker":
				l.worker = s.Uint64()
			case "at_millis":
				l.at = s.Uint64()
			case "op":
				l.op = s.Raw()
			default:
				s.Skip()
			}
		}
		if err := s.End(); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

func TestGoldenReplaysAndEncodesTheSameBytes(t *testing.T) {
	var d Decoder
	f := NewFold()
	for _, l := range readLines(t, "testdata/golden.ops.jsonl") {
		op, err := d.Decode(l.op)
		if err != nil {
			t.Fatal(err)
		}
		again, err := AppendOp(nil, op)
		if err != nil || !bytes.Equal(again, l.op) {
			t.Fatalf("operation %d: %v\n read  %s\n wrote %s", l.seq, err, l.op, again)
		}
		if err := f.Apply(l.seq, l.worker, l.at, op); err != nil {
			t.Fatal(err)
		}
	}
	checkGoldenStudy(t, f.Snapshot())
}

func checkGoldenStudy(t *testing.T, s *Snapshot) {
	t.Helper()
	st, ok := s.StudyByName("golden")
	if !ok || s.Seq() != 27 || st.NumTrials() != 5 {
		t.Fatalf("study %v, seq %d", st, s.Seq())
	}
	if got, want := st.Counts(), (Counts{Waiting: 1, Complete: 2, Pruned: 1, Failed: 1}); got != want {
		t.Errorf("counts %v, want %v", got, want)
	}
	if best, err := s.Best(st.ID); err != nil || len(best) != 1 || best[0].Number != 0 {
		t.Errorf("best %v, %v", best, err)
	}
	if b := s.State(SamplerScope(0)); b == nil || b.Kind != "tpe" || string(b.Data) != `{"gamma":0.25,"observations":3}` {
		t.Errorf("sampler state %v", b)
	}
	if a, _ := st.Attr("team"); string(a.Value) != `"control"` {
		t.Errorf("attr %s", a.Value)
	}
	first, err := s.TrialByNumber(st.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := first.Param("layers"); p.Value != I64(4) || p.Dist != (IntDist{Low: 1, High: 8, Step: 1}) {
		t.Errorf("layers %+v", p)
	}
	if step, values, _ := first.LastReport(); step != 2 || len(values) != 2 || values[0] != 0.5 || first.NumReports() != 2 {
		t.Errorf("last report %d %v of %d", step, values, first.NumReports())
	}
}
