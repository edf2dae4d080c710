package studycmd

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// mute is a storage that writes and, while it is mute, does not say so.
type mute struct {
	study.Storage
	mute bool
}

// Update implements study.Storage.
func (m *mute) Update(ctx context.Context, fn func(*study.Tx) error) error {
	err := m.Storage.Update(ctx, fn)
	if err == nil && m.mute {
		err = &journal.UncertainError{Err: errors.New("the answer is lost")}
	}
	return err
}

func TestAReportThatIsToldAgainAfterAnUncertainWriteIsThereOnce(t *testing.T) {
	memory := study.NewMemory(study.MemoryOptions{Worker: 7})
	if _, _, err := study.OpenOrCreate(t.Context(), memory, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}}); err != nil {
		t.Fatal(err)
	}
	st := &mute{Storage: memory}
	s := &conversation{app: &app{Finder: logkind.Finder{Env: &cli.Env{}}}, opts: sessionOptions{lease: time.Minute}, st: st,
		running: map[uint64]*runningTrial{}, news: make(chan struct{}, 1)}
	if _, err := s.ask(t.Context(), &request{Do: "ask"}); err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		step, value string
		mute        bool
		want        int
	}{
		{"1", "0.5", false, 1},
		{"1", "0.5", false, 2},
		{"2", `"NaN"`, true, 3},
		{"2", `"NaN"`, true, 3},
		{"2", `"NaN"`, false, 3},
		{"2", `"NaN"`, false, 4},
		{"3", "1", true, 5},
		{"3", "2", false, 6},
	} {
		var r request
		if err := json.Unmarshal([]byte(`{"do":"report","trial":0,"step":`+tc.step+`,"values":[`+tc.value+`]}`), &r); err != nil {
			t.Fatal(err)
		}
		st.mute = tc.mute
		if _, err := s.do(t.Context(), &r); (err != nil) != tc.mute {
			t.Errorf("report %d: %v", i, err)
		}
		now, err := memory.Snapshot().TrialByNumber(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if now.NumReports() != tc.want {
			t.Errorf("%d reports after report %d, want %d", now.NumReports(), i, tc.want)
		}
	}
}

func TestTheTrialOfAnAskWhoseAnswerWasLostIsThatOfTheNextAsk(t *testing.T) {
	memory := study.NewMemory(study.MemoryOptions{Worker: 7})
	_, _, err := study.OpenOrCreate(t.Context(), memory, study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
	if err != nil {
		t.Fatal(err)
	}
	st := &mute{Storage: memory}
	s := &conversation{app: &app{Finder: logkind.Finder{Env: &cli.Env{}}}, opts: sessionOptions{lease: time.Minute}, st: st,
		running: map[uint64]*runningTrial{}, news: make(chan struct{}, 1)}
	ask := func() (uint64, error) {
		out, err := s.ask(t.Context(), &request{Do: "ask"})
		if err != nil {
			return 0, err
		}
		return out.(AskedTrial).Number, nil
	}
	first, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	st.mute = true
	if n, err := ask(); !cli.As[*journal.UncertainError](err) {
		t.Fatalf("trial %d: %v", n, err)
	}
	st.mute = false
	second, err := ask()
	if err != nil || second == first || memory.Snapshot().NumTrials() != 2 {
		t.Errorf("trials %d and %d of %d: %v", first, second, memory.Snapshot().NumTrials(), err)
	}
	if third, err := ask(); err != nil || third != 2 {
		t.Errorf("then trial %d: %v", third, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) != 3 {
		t.Errorf("%d trials run", len(s.running))
	}
}
