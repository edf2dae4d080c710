package study

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
)

// DiffSnapshots compares everything two snapshots show.
func DiffSnapshots(a, b *Snapshot) string { return cmp.Diff(dump(a), dump(b)) }

// dump spells a whole state as text, line by line.
func dump(s *Snapshot) []string {
	lines := []string{fmt.Sprintf("seq %d, %d studies, %d trials", s.Seq(), s.NumStudies(), s.NumTrials())}
	for st := range s.Studies() {
		cfg, err := AppendOp(nil, &CreateStudy{Study: st.ID, Config: st.Config})
		lines = append(lines, fmt.Sprintf("study %s %v at %d, counts %v, reserved %d", cfg, err, st.CreatedMillis, st.Counts(), st.Reserved()))
		lines = append(lines, dumpBlob("sampler", st.SamplerState), dumpBlob("scheduler", st.SchedulerState))
		for k, a := range st.Attrs() {
			lines = append(lines, fmt.Sprintf("  attr %q %s %d", k, a.Value, a.Seq))
		}
		for state := Waiting; state <= Paused; state++ {
			lines = append(lines, fmt.Sprintf("  %v:", state))
			for n, id := range st.Live(state) {
				lines = append(lines, fmt.Sprintf("    %d=%d", n, id))
			}
		}
		var ids []TrialID
		for t := range s.Trials(st.ID, TrialFilter{}) {
			ids = append(ids, t.ID)
		}
		lines = append(lines, fmt.Sprint("  trials ", ids))
	}
	for id := range s.NumTrials() {
		t, _ := s.Trial(TrialID(id))
		lines = append(lines, dumpTrial(t)...)
	}
	for t, e := range s.Pending() {
		lines = append(lines, fmt.Sprintf("pending %d %v", t.ID, e.Phase))
	}
	for k, b := range s.st.blobs.all() {
		lines = append(lines, dumpBlob(k, b))
	}
	for k, id := range s.st.effects.all() {
		lines = append(lines, fmt.Sprintf("effect %s %d", k, id))
	}
	return lines
}

func dumpBlob(name string, b *StateBlob) string {
	if b == nil {
		return name + " none"
	}
	return fmt.Sprintf("%s %q %d %s%s at %d", name, b.Kind, b.Version, b.Data, b.Raw, b.Seq)
}

func dumpTrial(t *Trial) []string {
	parent, has := t.Parent()
	lines := []string{fmt.Sprintf("trial %d/%d/%d %v managed=%v abandoned=%v replacement=%v values=%v error=%q times=%d/%d/%d owner=%d/%d beat=%d/%d attempt=%d/%d parent=%d/%v",
		t.ID, t.Study, t.Number, t.State, t.Managed, t.Abandoned, t.Replacement, t.Values, t.Error, t.CreatedMillis, t.StartedMillis, t.EndedMillis,
		t.Owner, t.Epoch, t.HeartbeatMillis, t.HeartbeatSeq, t.Attempt, t.MaxAttempts, parent, has)}
	created, err := AppendOp(nil, &CreateTrial{Template: t.Template})
	params, err2 := AppendOp(nil, &ParamsBatch{Params: t.Params})
	lines = append(lines, fmt.Sprintf("  %s %v %s %v", created, err, params, err2), dumpBlob("  blob", t.Blob))
	for k, a := range t.Attrs() {
		lines = append(lines, fmt.Sprintf("  attr %q %s %d", k, a.Value, a.Seq))
	}
	for step, values := range t.Reports() {
		lines = append(lines, fmt.Sprintf("  report %d %v", step, slices.Clone(values)))
	}
	if e := t.Outbox; e != nil {
		lines = append(lines, fmt.Sprintf("  outbox %+v %s phase=%v opaque=%v", e.Key, e.Intent.Raw, e.Phase, e.Opaque))
		for _, f := range e.Effects {
			lines = append(lines, fmt.Sprintf("    effect %q %v %s %s done=%v %d", f.Name, f.Retry, f.Payload, f.Raw, f.Done, f.Replacement))
		}
	}
	return lines
}

// CheckGoldenStudy compares what the golden's study must have become.
var CheckGoldenStudy = checkGoldenStudy
