package logkind

import (
	"strconv"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
)

// The structs here are the --json contract of the general verbs: fields are
// added and never renamed or removed. Times are Unix milliseconds, sizes are
// bytes, and a count of what a kind does not have is 0.

// States of a log in a summary and an inspection. A kind may have others.
const (
	StateGood       = "good"       // opens and reads
	StateFaulty     = "faulty"     // damaged
	StateUnreadable = "unreadable" // could not be opened
)

// Summary is one line of `foldlog ls --json`.
type Summary struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"`
	State      string `json:"state"`            // see the constants
	Bytes      int64  `json:"bytes"`            // all of its files
	ModifiedMS int64  `json:"modified_ms"`      // the last change of any of its files, 0 if unknown
	Detail     string `json:"detail,omitempty"` // a few words for people, what it holds or what is wrong
}

// Inspection is the output of `foldlog inspect --json`.
type Inspection struct {
	Path    string           `json:"path"`
	Kind    string           `json:"kind"`
	Format  string           `json:"format"`           // the version of the format, as "v6"
	State   string           `json:"state"`            // as in summary
	Program string           `json:"program"`          // what created it, "" if it does not say
	Bytes   int64            `json:"bytes"`            // all of its files
	Files   int64            `json:"files"`            // how many they are
	Events  int64            `json:"events"`           // committed events
	FirstMS int64            `json:"first_ms"`         // the time of the first event
	LastMS  int64            `json:"last_ms"`          // the time of the last event; clocks may have stepped back
	Counts  map[string]int64 `json:"counts"`           // what the events fold into, by name, never null
	Writers []Writer         `json:"writers"`          // who wrote it, never null
	Notes   []string         `json:"notes"`            // what is odd but no fault, never null
	Detail  any              `json:"detail,omitempty"` // a documented struct of the kind
}

// Writer is one writer of a log.
type Writer struct {
	Name   string `json:"name"`    // how the log names it
	Events int64  `json:"events"`  // committed by it
	Bytes  int64  `json:"bytes"`   // of its events
	LastMS int64  `json:"last_ms"` // the time of its last event
}

// Verification is one line of `foldlog verify --json`.
type Verification struct {
	Path     string  `json:"path"`
	Kind     string  `json:"kind"`     // "" if it could not be told
	Format   string  `json:"format"`   // as in inspection
	OK       bool    `json:"ok"`       // there are no faults
	Events   int64   `json:"events"`   // committed events that were checked
	Bytes    int64   `json:"bytes"`    // that were checked
	Faults   []Place `json:"faults"`   // never null
	Warnings []Place `json:"warnings"` // what readers accept and writers should not write, never null
	Notes    []Place `json:"notes"`    // information, as unpublished bytes, never null
}

// Place is something found in a log, and where.
type Place struct {
	File   string `json:"file"`           // the file it is in
	Offset *int64 `json:"offset"`         // in bytes from the start of the file, null if it is about the whole
	Seq    int64  `json:"seq,omitempty"`  // the sequence number of the event, 0 if none
	What   string `json:"what"`           // what is wrong
	Hint   string `json:"hint,omitempty"` // what to do
}

// CopyStats is what Copy did.
type CopyStats struct {
	Events int64 // in the copy
	Bytes  int64 // of all its files
	// Lost is what is wrong with the copy: why that of a salvaged log ends where it
	// does, or which faults of a log it has too. Nil is nothing.
	Lost error
}

// leftOut says of a salvaged copy that it is there, and not all of the log.
func leftOut(dest string, err error) error {
	return cli.WithHint(err, "what "+dest+" has is sound, and is kept")
}

// String is the place as people read it.
func (p Place) String() string {
	s := p.File
	if p.Offset != nil {
		s += " offset " + strconv.FormatInt(*p.Offset, 10)
	}
	if p.Seq != 0 {
		s += " seq " + strconv.FormatInt(p.Seq, 10)
	}
	return s + ": " + p.What
}

// Normalize makes lists that are empty so in JSON, and not null, and tells whether all is well.
func (v *Verification) Normalize() {
	v.Faults, v.Warnings, v.Notes = serde.NotNil(v.Faults), serde.NotNil(v.Warnings), serde.NotNil(v.Notes)
	v.OK = len(v.Faults) == 0
}

// Normalize makes lists and counts that are empty so in JSON, and not null.
func (i *Inspection) Normalize() {
	i.Writers, i.Notes = serde.NotNil(i.Writers), serde.NotNil(i.Notes)
	if i.Counts == nil {
		i.Counts = map[string]int64{}
	}
}
