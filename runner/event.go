package runner

import (
	"time"

	"github.com/foldlog/foldlog/study"
)

// EventKind is what a worker tells about.
type EventKind string

// The kinds of events.
const (
	// Started: a trial was claimed and its command runs.
	Started EventKind = "started"
	// Finished: a trial ended; State tells how, Text why it failed.
	Finished EventKind = "finished"
	// GivenBack: the command was stopped with the worker, and the trial can be
	// claimed again.
	GivenBack EventKind = "given-back"
	// PutOnHold: the command was stopped by [Hold], or has asked for it, and the
	// trial waits for [Resume].
	PutOnHold EventKind = "put-on-hold"
	// FailedStale: a trial whose worker had gone silent was failed.
	FailedStale EventKind = "failed-stale"
	// Retried: a replacement was created.
	Retried EventKind = "retried"
	// Late: a result came after the trial was taken away; it was kept beside
	// the journal.
	Late EventKind = "late"
	// TakenOver: the journal's lease was taken from a writer that had stopped.
	TakenOver EventKind = "taken-over"
	// Missing: something of a trial besides the trial itself, as its log, could
	// not be kept.
	Missing EventKind = "missing"
	// Cleared: processes were killed that trials of a dead worker had left running
	// on this machine.
	Cleared EventKind = "cleared"
	// Trouble: the journal could not be written and is tried again.
	Trouble EventKind = "trouble"
)

// Event is something that happened in a worker.
type Event struct {
	Kind EventKind `json:"kind"`
	// Trial and Number name the trial, if it is about one.
	Trial  study.TrialID `json:"trial"`
	Number uint64        `json:"number"`
	// Attempt counts from 1.
	Attempt uint64 `json:"attempt,omitempty"`
	// State is that of a finished trial.
	State string `json:"state,omitempty"`
	// Worker is the worker concerned, Epoch its claim.
	Worker uint64 `json:"worker,omitempty"`
	Epoch  uint64 `json:"epoch,omitempty"`
	// Text is for people: the error, who was overtaken, where it was kept.
	Text string `json:"text,omitempty"`
}

// Report counts what a worker did.
type Report struct {
	Complete  int `json:"complete"`
	Failed    int `json:"failed"`
	Pruned    int `json:"pruned"`
	GivenBack int `json:"given_back"`
	OnHold    int `json:"on_hold"`
	Stale     int `json:"stale"`   // trials of others that were failed
	Retried   int `json:"retried"` // replacements created
	Late      int `json:"late"`    // results that came too late
}

func (r *Report) count(e *Event) {
	switch {
	case e.Kind == Finished && e.State == study.Complete.String():
		r.Complete++
	case e.Kind == Finished && e.State == study.Pruned.String():
		r.Pruned++
	case e.Kind == Finished:
		r.Failed++
	case e.Kind == GivenBack:
		r.GivenBack++
	case e.Kind == PutOnHold:
		r.OnHold++
	case e.Kind == FailedStale:
		r.Stale++
	case e.Kind == Retried:
		r.Retried++
	case e.Kind == Late:
		r.Late++
	}
}

// Add adds another worker's counts.
func (r *Report) Add(o Report) {
	r.Complete += o.Complete
	r.Failed += o.Failed
	r.Pruned += o.Pruned
	r.GivenBack += o.GivenBack
	r.OnHold += o.OnHold
	r.Stale += o.Stale
	r.Retried += o.Retried
	r.Late += o.Late
}

func nowMillis() uint64 { return uint64(max(time.Now().UnixMilli(), 0)) }
