package metrics

import (
	"errors"
	"fmt"
	"strings"
)

// Report tells at the end of a run what became of its events.
type Report struct {
	Targets []TargetReport
}

// TargetReport is what one target took.
type TargetReport struct {
	// Target is as [Target.String] spells it.
	Target string
	// Sent is the events that arrived, Bytes their size.
	Sent, Bytes int64
	// Dropped is the events that are lost to this target.
	Dropped int64
	// NonFinite is the metrics left out because the target cannot take them.
	NonFinite int64
	// Left is the events that a server has not got and the file has: push
	// completes it.
	Left int64
	// Retries is how often something was tried again.
	Retries int64
	// Page is where the server shows the run, "" if it did not say.
	Page string
	// Err is why events are dropped or left, nil if none are; otherwise a
	// [TargetError] around one of the sentinels.
	Err error
}

// Lost is how many events some target did not get, besides the non-finite.
func (r Report) Lost() int64 {
	n := int64(0)
	for _, t := range r.Targets {
		n += t.Dropped + t.Left
	}
	return n
}

// Err joins the errors of the targets.
func (r Report) Err() error {
	var errs []error
	for _, t := range r.Targets {
		errs = append(errs, t.Err)
	}
	return errors.Join(errs...)
}

// String says in a line per target what people want to know at the end.
func (r Report) String() string {
	lines := make([]string, len(r.Targets))
	for i, t := range r.Targets {
		lines[i] = t.String()
	}
	return strings.Join(lines, "\n")
}

// String is the target's line of the report.
func (t TargetReport) String() string {
	text := fmt.Sprintf("%s: %d events", t.Target, t.Sent)
	for _, part := range []struct {
		n    int64
		what string
	}{{t.Dropped, "dropped"}, {t.Left, "left in the file"}, {t.NonFinite, "non-finite left out"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if t.Err != nil {
		text += ": " + t.Err.Error()
	}
	return text
}
