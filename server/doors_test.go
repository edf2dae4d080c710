package server

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// doorsStudy is a study of one objective with trial 0, raw and running, trial 1, managed
// and of worker 7, and trial 2, raw and ended.
func doorsStudy(t *testing.T, st study.Storage) {
	t.Helper()
	err := st.Update(t.Context(), func(tx *study.Tx) error {
		_, err := tx.CreateStudy(study.Config{Name: "s", Directions: []study.Direction{study.Minimize}})
		_, raw := tx.CreateTrial(0, nil)
		_, managed := tx.LifecycleReserve(0, nil, 0)
		_, claimed := tx.LifecycleClaim(1, study.Claim{From: study.Waiting, Worker: 7})
		_, ended := tx.CreateTrial(0, nil)
		return errors.Join(err, raw, tx.Transition(0, study.Waiting, study.Running), managed, claimed, ended,
			tx.Transition(2, study.Waiting, study.Running), tx.Transition(2, study.Running, study.Pruned))
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	unitX   = study.Param{Name: "x", Dist: study.FloatDist{Low: 0, High: 1}, Value: study.F64(0.5)}
	boolX   = study.Param{Name: "x", Dist: study.FloatDist{Low: 0, High: 1}, Value: study.Bool(true)}
	ownersF = study.Fence{Trial: 1, Worker: 7, Epoch: 1}
	othersF = study.Fence{Trial: 1, Worker: 8, Epoch: 1}
)

func config(name string, directions ...study.Direction) study.Config {
	return study.Config{Name: name, Directions: directions, ResourceUnit: "Steps"}
}

func withSpace(s *study.Space) study.Config {
	c := config("other", study.Minimize)
	c.Space = s
	return c
}

func withMetrics(names ...string) study.Config {
	c := config("other", study.Minimize)
	c.MetricNames = names
	return c
}

func createStudy(c study.Config) (study.Op, func(*study.Tx) error) {
	return &study.CreateStudy{Study: 1, Config: c}, func(tx *study.Tx) error { _, err := tx.CreateStudy(c); return err }
}

func fenced(f study.Fence, m study.Mutation) (study.Op, func(*study.Tx) error) {
	return &study.LifecycleFenced{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch, Mutation: m}, func(tx *study.Tx) error { return tx.LifecycleFenced(f, m) }
}

func ends(f study.Fence, o study.Outcome) (study.Op, func(*study.Tx) error) {
	return &study.LifecycleTerminal{Trial: f.Trial, Worker: f.Worker, Epoch: f.Epoch, Outcome: o}, func(tx *study.Tx) error { return tx.LifecycleTerminal(f, o, nil) }
}

// TestWhatIsRefusedOnDiskIsRefusedOverHTTP does the same at both doors of a journal: by
// the methods of a transaction, and by an operation that is posted.
func TestWhatIsRefusedOnDiskIsRefusedOverHTTP(t *testing.T) {
	type door = func() (study.Op, func(*study.Tx) error)
	of := func(op study.Op, local func(*study.Tx) error) door {
		return func() (study.Op, func(*study.Tx) error) { return op, local }
	}
	params := func(trial study.TrialID, list ...study.Param) door {
		return of(&study.ParamsBatch{Trial: trial, Params: list}, func(tx *study.Tx) error { return tx.ParamsBatch(trial, list) })
	}
	report := func(trial study.TrialID, values ...float64) door {
		return of(&study.Report{Trial: trial, Step: 1, Values: values}, func(tx *study.Tx) error { return tx.Report(trial, 1, values...) })
	}
	values := func(trial study.TrialID, values ...float64) door {
		return of(&study.SetValues{Trial: trial, Values: values}, func(tx *study.Tx) error { return tx.SetValues(trial, values...) })
	}
	move := func(trial study.TrialID, from, to study.State) door {
		return of(&study.Transition{Trial: trial, From: from, To: to}, func(tx *study.Tx) error { return tx.Transition(trial, from, to) })
	}
	attr := func(key, value string) door {
		return of(&study.SetStudyUserAttr{Study: 0, Key: key, Value: []byte(value)}, func(tx *study.Tx) error { return tx.SetStudyUserAttr(0, key, []byte(value)) })
	}
	for name, c := range map[string]struct {
		door door
		want error // nil is taken
	}{
		"a study":                            {of(createStudy(config("other", study.Minimize))), nil},
		"a study without objectives":         {of(createStudy(config("other"))), study.ErrInvalid},
		"a study without a name":             {of(createStudy(config("", study.Minimize))), study.ErrInvalid},
		"a study of a name that is taken":    {of(createStudy(config("s", study.Minimize))), study.ErrExists},
		"more metric names than objectives":  {of(createStudy(withMetrics("a", "b"))), study.ErrInvalid},
		"a space of unknown shape":           {of(createStudy(withSpace(&study.Space{Raw: `{"x":1}`}))), study.ErrInvalid},
		"a parameter that is declared twice": {of(createStudy(withSpace(&study.Space{Params: []study.SpaceParam{{Name: "x", Dist: unitX.Dist}, {Name: "x", Dist: unitX.Dist}}}))), study.ErrInvalid},
		"parameters":                         {params(0, unitX), nil},
		"parameters twice at once":           {params(0, unitX, unitX), study.ErrInvalid},
		"a value of another type":            {params(0, boolX), study.ErrInvalid},
		"raw parameters of a managed trial":  {params(1, unitX), study.ErrManaged},
		"parameters of an ended trial":       {params(2, unitX), study.ErrBadState},
		"parameters of no trial":             {params(9, unitX), study.ErrNotFound},
		"a report of NaN":                    {report(0, math.NaN()), nil},
		"a report of nothing":                {report(0), study.ErrInvalid},
		"a raw report of a managed trial":    {report(1, 1), study.ErrManaged},
		"a report of an ended trial":         {report(2, 1), study.ErrBadState},
		"an infinite value":                  {values(0, math.Inf(1)), nil},
		"two values of one objective":        {values(0, 1, 2), study.ErrInvalid},
		"no values":                          {values(0), study.ErrInvalid},
		"raw values of a managed trial":      {values(1, 1), study.ErrManaged},
		"values of an ended trial":           {values(2, 1), study.ErrBadState},
		"a move from a state it is not in":   {move(0, study.Waiting, study.Running), study.ErrConflict},
		"a move that does not exist":         {move(0, study.Running, study.Waiting), study.ErrBadState},
		"a raw move of a managed trial":      {move(1, study.Running, study.Failed), study.ErrManaged},
		"an attribute":                       {attr("k", `"<é>"`), nil},
		"a reserved attribute":               {attr("atune:k", "1"), study.ErrReserved},
		"an owner's report":                  {of(fenced(ownersF, &study.MutateReport{Step: 1, Values: []float64{1}})), nil},
		"another's report":                   {of(fenced(othersF, &study.MutateReport{Step: 1, Values: []float64{1}})), study.ErrFenced},
		"an owner's report of nothing":       {of(fenced(ownersF, &study.MutateReport{Step: 1})), study.ErrInvalid},
		"an owner's value of another type":   {of(fenced(ownersF, &study.MutateParams{Params: []study.Param{boolX}})), study.ErrInvalid},
		"an owner's reserved attribute":      {of(fenced(ownersF, &study.MutateUserAttr{Key: "atune:k", Value: []byte("1")})), study.ErrReserved},
		"an owner's end":                     {of(ends(ownersF, study.Outcome{State: study.Complete, Values: []float64{1}})), nil},
		"another's end":                      {of(ends(othersF, study.Outcome{State: study.Complete, Values: []float64{1}})), study.ErrFenced},
		"an owner's end with two values":     {of(ends(ownersF, study.Outcome{State: study.Complete, Values: []float64{1, 2}})), study.ErrInvalid},
		"a claim of what runs": {of(&study.LifecycleClaim{Trial: 1, From: study.Waiting, Worker: 8, Epoch: 2, HeartbeatSeq: 1},
			func(tx *study.Tx) error {
				_, err := tx.LifecycleClaim(1, study.Claim{From: study.Waiting, Worker: 8})
				return err
			}), study.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			op, local := c.door()
			m := study.NewMemory(study.MemoryOptions{Worker: 7})
			doorsStudy(t, m)
			if err := m.Update(t.Context(), local); !errors.Is(err, c.want) {
				t.Errorf("on disk: %v", err)
			}
			status, seq, want := postOp(t, op)
			if taken := status == 200; taken != (c.want == nil) || taken != (seq == want+1) || status >= 500 {
				t.Errorf("over HTTP: %d, %d operations after %d", status, seq, want)
			}
		})
	}
}

// postOp posts an operation to a journal that has the study, and returns the status and
// how many operations there are, and were.
func postOp(t *testing.T, op study.Op) (status int, after, before uint64) {
	t.Helper()
	s := newSite(t, Options{})
	path := filepath.Join(s.root, "s.atj")
	j, err := study.CreateJournal(t.Context(), path, journal.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	doorsStudy(t, j)
	before = j.Snapshot().Seq()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := study.AppendOp(nil, op)
	if err != nil {
		t.Fatal(err)
	}
	body := map[string]any{"id": "a-request", "after": strconv.FormatUint(before, 10), "ops": []json.RawMessage{text}}
	status = s.do("POST", "/api/v1/journals/ops?path=s.atj", body).status
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return status, r.Snapshot().Seq(), before
}
