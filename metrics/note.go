package metrics

import (
	"fmt"
	"strings"
)

// NoteClass is which of the document's annotations a text is.
type NoteClass uint8

// The annotations of the document.
const (
	NoteOther       NoteClass = iota // any other text
	NoteLowering                     // lowering: ...
	NoteMemoryPlan                   // memory: ... before the first step
	NoteMemoryRetry                  // memory: allocation failed at step N; ...
	NoteMemoryPeak                   // memory: peak ... of ... planned
	NoteStacking                     // stacking ...
	NoteStage                        // stage A -> B
	NoteCheckpoint                   // checkpoint PATH
	NoteResumed                      // resumed from PATH, then what changed
	NoteInterrupted                  // interrupted by SIGNAL at step N
	NoteFailed                       // failed: MESSAGE
)

var noteNames = [...]string{"other", "lowering", "memory plan", "memory retry", "memory peak", "stacking", "stage", "checkpoint", "resumed", "interrupted", "failed"}

// String is the class in words.
func (c NoteClass) String() string { return noteNames[min(int(c), len(noteNames)-1)] }

// Note is an annotation taken apart. The functions that begin with Note's
// classes make one, [Note.Event] spells it, [ReadNote] recognises it.
type Note struct {
	Class NoteClass
	// Text is the annotation as written, within [MaxAnnotation].
	Text string
	// Metadata is the annotation's.
	Metadata Metadata

	From, To   string   // of a stage
	Checkpoint string   // the location, of a checkpoint or resume
	Seconds    float64  // of a checkpoint: how long writing took
	Changed    []string // of a resume: one line per source or knob
	Signal     string   // of an interruption, for example "SIGTERM"
	Error      string   // of a failure
	Device     string   // of a lowering
}

// Lowering reports how a GPU run was lowered on a device, before its first
// step.
func Lowering(block LoweringBlock, device string) Note {
	return note(block.text(), Meta("device", device))
}

// MemoryPlan gives the memory plan before the first step; parts holds its
// parts.
func MemoryPlan(text string, parts Metadata) Note { return note("memory: "+text, parts) }

// MemoryRetry tells that an allocation failed and was retried.
func MemoryRetry(step int64, what string) Note {
	return note(fmt.Sprintf("memory: allocation failed at step %d; %s", step, what), "")
}

// MemoryPeak compares the peak with the plan, both as people write them, when
// the run ends.
func MemoryPeak(peak, planned string) Note {
	return note(fmt.Sprintf("memory: peak %s of %s planned", peak, planned), "")
}

// Stacking gives the stacking choice; degrees holds what was measured.
func Stacking(text string, degrees Metadata) Note { return note("stacking "+text, degrees) }

// Stage tells that the curriculum moved the training loader.
func Stage(from, to string) Note {
	return note("stage "+from+" -> "+to, Meta("from", from, "to", to))
}

// Checkpoint tells that a checkpoint was written and how many seconds passed
// from the first tensor leaving the device to the last byte stored.
func Checkpoint(location string, took float64) Note {
	location = CutText(mend(location), MaxAnnotation)
	return note("checkpoint "+location, Metadata(`{"checkpoint":`+quote(location)+`,"seconds":`+seconds(took)+"}"))
}

// Resumed tells that the run continued from a checkpoint. Changed has one line
// per source or knob that moved; see [SourceChanged] and [KnobChanged].
func Resumed(location string, changed []string) Note {
	location = CutText(mend(location), MaxAnnotation)
	changed = cutLines(changed, MaxAnnotation)
	list := make([]string, len(changed))
	text := "resumed from " + location
	var lines strings.Builder
	for i, line := range changed {
		list[i] = quote(mend(line))
		lines.WriteString("\n" + line)
	}
	return note(text+lines.String(), Metadata(`{"checkpoint":`+quote(location)+`,"changed":[`+strings.Join(list, ",")+"]}"))
}

// SourceChanged and KnobChanged are the lines of [Resumed]; an empty value on
// one side means that the thing is new or gone.
func SourceChanged(path, from, to string) string { return changed("source", path, from, to) }

// KnobChanged is [SourceChanged] for a knob.
func KnobChanged(name, from, to string) string { return changed("knob", name, from, to) }

func changed(what, name, from, to string) string {
	switch {
	case from == "":
		return what + " " + name + " is new"
	case to == "":
		return what + " " + name + " is gone"
	}
	return what + " " + name + ": " + from + " -> " + to
}

// Interrupted tells that a signal stopped the run after a step.
func Interrupted(signal string, step int64) Note {
	return note("interrupted by "+signal+" at step "+itoa(step), Meta("signal", signal))
}

// Failed tells why the run stopped; it is the last line before done.
func Failed(message string) Note {
	return note("failed: "+message, Meta("error", CutText(mend(message), MaxAnnotation)))
}

// OtherNote is any other text. Text that begins with the words of a class
// becomes a note of that class; a lowering block loses graph lines, which are
// those that begin with "graph", and the indented ones under them.
func OtherNote(text string, metadata Metadata) Note {
	if rest, ok := strings.CutPrefix(text, "lowering: "); ok {
		text = splitLowering(rest).text()
	}
	return note(text, metadata)
}

func splitLowering(text string) LoweringBlock {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, last := -1, -1
	for i, line := range lines[1:] {
		inGraph := first >= 0 && last == i && strings.TrimLeft(line, " \t") != line
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "graph") || inGraph {
			last = i + 1
			if first < 0 {
				first = i + 1
			}
		}
	}
	if first < 0 {
		return LoweringBlock{Head: lines[0], Graphs: lines[1:]}
	}
	return LoweringBlock{strings.Join(lines[:first], "\n"), lines[first : last+1], lines[last+1:]}
}

func note(text string, metadata Metadata) Note {
	return readNote(CutText(mend(text), MaxAnnotation), metadata)
}

// maxNoteMetadata is the most bytes of an annotation's metadata: room for
// every text within the limits, spelled with escapes.
const maxNoteMetadata = 256 << 10

// Event makes the annotation at a step, without a time. Metadata that is not
// an object, or beyond 256 KiB, is an error.
func (n Note) Event(step int64) (Event, error) {
	m, err := n.Metadata.compact()
	if err != nil {
		return Event{}, fmt.Errorf("annotate %.40q: %w", n.Text, err)
	}
	if len(m) > maxNoteMetadata {
		return Event{}, &LimitError{"annotation metadata", len(m), maxNoteMetadata, "bytes", ErrTooLarge}
	}
	return Event{Kind: KindAnnotation, Step: step, Text: CutText(mend(n.Text), MaxAnnotation), Metadata: m}, nil
}

// ReadNote recognises an annotation by its first words and its metadata. What
// the metadata lacks is taken from the text.
func ReadNote(e *Event) Note { return readNote(e.Text, e.Metadata) }

func readNote(text string, m Metadata) Note {
	n := Note{Text: text, Metadata: m}
	switch {
	case strings.HasPrefix(text, "lowering:"):
		n.Class, n.Device = NoteLowering, m.Text("device")
	case strings.HasPrefix(text, "memory: allocation failed"):
		n.Class = NoteMemoryRetry
	case strings.HasPrefix(text, "memory: peak "):
		n.Class = NoteMemoryPeak
	case strings.HasPrefix(text, "memory:"):
		n.Class = NoteMemoryPlan
	case strings.HasPrefix(text, "stacking "):
		n.Class = NoteStacking
	case strings.HasPrefix(text, "stage "):
		n.readStage(text[len("stage "):])
	case strings.HasPrefix(text, "checkpoint "):
		n.Class = NoteCheckpoint
		n.Checkpoint = orElse(m.Text("checkpoint"), firstLine(text[len("checkpoint "):]))
		n.Seconds, _ = m.Float64("seconds")
	case strings.HasPrefix(text, "resumed from "):
		n.readResumed(text[len("resumed from "):])
	case strings.HasPrefix(text, "interrupted by "):
		signal, _, _ := strings.Cut(text[len("interrupted by "):], " at step")
		n.Class, n.Signal = NoteInterrupted, orElse(m.Text("signal"), signal)
	case strings.HasPrefix(text, "failed:"):
		n.Class = NoteFailed
		n.Error = orElse(m.Text("error"), strings.TrimSpace(text[len("failed:"):]))
	}
	return n
}

func (n *Note) readStage(rest string) {
	from, to, ok := strings.Cut(rest, " -> ")
	if _, typed := n.Metadata.Get("to"); !typed && !ok {
		return
	}
	n.Class, n.From, n.To = NoteStage, orElse(n.Metadata.Text("from"), from), orElse(n.Metadata.Text("to"), to)
}

func (n *Note) readResumed(rest string) {
	lines := strings.Split(rest, "\n")
	n.Class, n.Checkpoint = NoteResumed, orElse(n.Metadata.Text("checkpoint"), lines[0])
	if n.Changed = n.Metadata.Strings("changed"); n.Changed == nil && len(lines) > 1 {
		n.Changed = lines[1:]
	}
}

func orElse(text, other string) string {
	if text != "" {
		return text
	}
	return other
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
