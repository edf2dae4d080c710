package optuna

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
	pb "github.com/foldlog/foldlog/study/optuna/optunapb"
)

// importText makes a journal of a file and opens it.
func importText(t testing.TB, text string) (*study.Snapshot, *ImportStats, []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.atj")
	var faults []string
	done, err := Import(context.Background(), strings.NewReader(text), path, ImportOptions{
		Fault: func(f *LineError) { faults = append(faults, f.Error()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := journal.Verify(context.Background(), path, journal.VerifyOptions{Machine: study.NewReplay()},
		func(f journal.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
		t.Fatal(err)
	}
	return r.Snapshot(), done, faults
}

// viewOf is a trial as a client reads it.
func viewOf(t *study.Trial) *pb.Trial {
	m := new(pb.Trial)
	if err := proto.Unmarshal(newViewer().appendTrial(nil, t), m); err != nil {
		panic(err)
	}
	return m
}

// views are the trials of all studies as messages.
func views(snap *study.Snapshot) (list []*pb.Trial) {
	for st := range snap.Studies() {
		for t := range snap.Trials(st.ID, study.TrialFilter{}) {
			if !st.Deleted() {
				list = append(list, viewOf(t))
			}
		}
	}
	return list
}

// exported is a file of all studies that are not deleted.
func exported(t testing.TB, snap *study.Snapshot) string {
	t.Helper()
	var studies []*study.Study
	for st := range snap.Studies() {
		if !st.Deleted() {
			studies = append(studies, st)
		}
	}
	var b bytes.Buffer
	if err := Export(&b, snap, studies); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func goldenLog(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/study.log")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestImportKeepsEverything(t *testing.T) {
	defer func(was *time.Location) { zone = was }(zone)
	zone = time.FixedZone("", 2*3600)
	snap, done, faults := importText(t, goldenLog(t))
	if len(faults) > 0 || done.Lost > 0 || done.Torn || done.Studies != 3 || done.Trials != 6 || done.Ignored != 3 {
		t.Errorf("imported %+v, faults %v", done, faults)
	}
	st, ok := snap.StudyByName("double")
	if !ok || st.ID != 2 || st.Config.Directions[0] != study.Minimize || st.Config.Directions[1] != study.Maximize {
		t.Fatalf("study %+v", st)
	}
	user, system := attrMaps(st.Attrs())
	if diff := cmp.Diff([]map[string]string{{"u": `{"a":[NaN]}`}, {"study:metric_names": `["x","y"]`}}, []map[string]string{user, system}); diff != "" {
		t.Errorf("attributes of the study (-want +got)\n%s", diff)
	}
	got := views(snap)
	want := []*pb.Trial{
		{
			TrialId: 1, State: pb.TrialState_COMPLETE, Values: []float64{1, math.Inf(-1)},
			DatetimeStart: "2024-06-07 17:27:27.682770", DatetimeComplete: "2024-06-07 19:27:28.000001",
			Params:             map[string]float64{"lr": 0.01, "n": 3, "opt": 1, "old": 0.5, "q": 0.25},
			IntermediateValues: map[int64]float64{0: math.NaN(), 1: 2},
			UserAttributes:     map[string]string{"a": "[1,2]"}, SystemAttributes: map[string]string{"b": "NaN"},
		},
		{TrialId: 2, Number: 1, State: pb.TrialState_RUNNING, DatetimeStart: "2024-06-07 17:27:30.000000"},
		{TrialId: 3, Number: 2, State: pb.TrialState_FAIL, DatetimeStart: "2024-06-07 17:27:31.000000", DatetimeComplete: "2024-06-07 17:27:32.000000"},
		{TrialId: 4, Number: 3, State: pb.TrialState_WAITING, SystemAttributes: map[string]string{"fixed_params": `{"lr":0.02}`}},
		{
			TrialId: 5, Number: 4, State: pb.TrialState_PRUNED, Values: []float64{3}, Params: map[string]float64{"lr": 0.03},
			DatetimeStart: "2024-06-07 17:27:31.500000", DatetimeComplete: "2024-06-07 17:27:31.600000",
			IntermediateValues: map[int64]float64{7: 3}, UserAttributes: map[string]string{"é": `"ü"`},
		},
	}
	opts := []cmp.Option{protocmp.Transform(), protocmp.IgnoreFields(&pb.Trial{}, "distributions"), cmpopts.EquateEmpty(), cmpopts.EquateNaNs()}
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if d := got[0].Distributions["old"]; d != `{"type":"float","low":0.1,"high":1.0,"log":true}` {
		t.Errorf("an old distribution became %s", d)
	}

	again, done, faults := importText(t, exported(t, snap))
	if len(faults) > 0 || done.Ignored > 0 {
		t.Errorf("round trip: %+v, %v", done, faults)
	}
	opts[1] = protocmp.IgnoreFields(&pb.Trial{}, "trial_id")
	if diff := cmp.Diff(got, views(again), opts...); diff != "" {
		t.Errorf("round trip (-want +got)\n%s", diff)
	}
}

func TestImportTellsDamagedLines(t *testing.T) {
	create := `{"op_code": 0, "worker_id": "w", "study_name": "s", "directions": [1]}`
	trial := `{"op_code": 4, "worker_id": "w", "study_id": 0, "datetime_start": "2024-06-07T17:27:27.682770"}`
	for _, test := range []struct {
		name, text string
		faults     []string
		trials     int
	}{
		{"sound", create + "\n" + trial + "\n", nil, 1},
		{"line ends of Windows", create + "\r\n" + trial + "\r\n", nil, 1},
		{"empty", "", nil, 0},
		{"torn in the middle", create + "\n" + trial + "\n" + trial[:40], []string{"line 3: the last line is torn"}, 1},
		{"torn before its newline", create + "\n" + trial, []string{"line 2: the last line is torn"}, 0},
		{"blank lines", create + "\n\n" + trial + "\n \n", []string{"line 2: a blank line", "line 4: a blank line"}, 1},
		{"half a record glued to the next", create + "\n" + trial[:50] + trial + "\n" + trial + "\n",
			[]string{"line 2: half a record stands before this one"}, 2},
		{"noise", create + "\nnoise\n" + trial + "\n", []string{"line 2: no record of Optuna's journal: "}, 1},
		{"an unknown operation", create + "\n" + `{"op_code": 99}` + "\n" + trial + "\n", []string{"line 2: no record of Optuna's journal: invalid value: op_code 99"}, 1},
		{"a field of the wrong type", create + "\n" + `{"op_code": 4, "study_id": "0"}` + "\n", []string{`line 2: no record of Optuna's journal: field "study_id": `}, 0},
		{"bytes that are no text", create + "\n\xff\n", []string{"line 2: no record of Optuna's journal: not UTF-8"}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap, done, faults := importText(t, test.text)
			if snap.NumTrials() != test.trials || done.Trials != test.trials {
				t.Errorf("%d trials, want %d", snap.NumTrials(), test.trials)
			}
			same := cmp.Comparer(func(want, got string) bool { return strings.HasPrefix(got, want) || strings.HasPrefix(want, got) })
			if diff := cmp.Diff(test.faults, faults, same); diff != "" {
				t.Errorf("faults (-want +got)\n%s", diff)
			}
		})
	}
}

func TestImportNeverReplacesAJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	for i, want := range []error{nil, journal.ErrExist} {
		if _, err := Import(context.Background(), strings.NewReader(""), path, ImportOptions{}); !errors.Is(err, want) {
			t.Errorf("import %d: %v", i, err)
		}
	}
}

func TestExportNeedsOffsetsOnlyWhenTheHourComesTwice(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	defer func(was *time.Location) { zone = was }(zone)
	zone = berlin
	for _, at := range []string{"2024-10-27T00:30:00Z", "2024-10-27T01:30:00Z", "2024-03-31T01:30:00Z", "2024-06-07T17:27:27.68277Z"} {
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		m := momentOf(when)
		back, err := parseMoment(m.file())
		if err != nil || back != m {
			t.Errorf("%s is written %s and read %v, %v", at, m.file(), back, err)
		}
	}
}

func FuzzImport(f *testing.F) {
	log := goldenLog(f)
	f.Add([]byte(log))
	f.Add([]byte(log[:len(log)/2]))
	for line := range strings.Lines(log) {
		f.Add([]byte(`{"op_code":0,"study_name":"s","directions":[1]}` + "\n" + `{"op_code":4,"study_id":0,"datetime_start":null}` + "\n" + line))
	}
	f.Add([]byte(`{"op_code":0,"study_name":"s","directions":[1]}` + "\n" + strings.Repeat("[", 2000) + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, _, _ := importText(t, string(text))
		file := exported(t, first)
		again, done, faults := importText(t, file)
		if len(faults) > 0 || done.Ignored > 0 {
			t.Fatalf("its export has faults: %+v, %v\n%s", done, faults, file)
		}
		if diff := cmp.Diff(file, exported(t, again)); diff != "" {
			t.Fatalf("the export of the export differs (-first +second)\n%s", diff)
		}
	})
}

func FuzzDistribution(f *testing.F) {
	for _, text := range []string{floatDist, intDist, catDist, nanInside, `{"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 2}}`,
		`{"name": "IntDistribution", "attributes": {"low": 1, "high": 99999999999999999999}}`} {
		f.Add(text, 0.0)
	}
	f.Fuzz(func(t *testing.T, text string, x float64) {
		d, err := parseDist(text)
		if err != nil {
			return
		}
		short, _ := appendShortDist(nil, d)
		if again, err := parseDist(string(short)); err != nil || !cmp.Equal(again, d) {
			t.Fatalf("%q is written %q: %v", text, short, err)
		}
		out, ok := appendDist(nil, d)
		if !ok {
			t.Fatalf("%q cannot be written", text)
		}
		again, err := parseDist(string(out))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(d) && !cmp.Equal(again, d) {
			t.Fatalf("%q is written %q: %v", text, out, err)
		}
		if v, err := toValue(d, x); err == nil {
			if _, ok := toInternal(v); !ok {
				t.Fatalf("%v has no internal value", v)
			}
		}
	})
}
