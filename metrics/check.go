package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/foldlog/foldlog/internal/serde"
)

// Finding is something that [Check] has to say about a line.
type Finding struct {
	// LineError has line, column and reason.
	LineError
	// Offset is where the line begins, in bytes.
	Offset int64
	// Warning tells that the stream is sound all the same: an odd spelling
	// that readers take, or the torn end of a killed process before an open.
	Warning bool
}

// CheckOptions says what is being checked.
type CheckOptions struct {
	// Mixed is for a captured standard output: lines that are no events and
	// the summary of `run --json` may stand between the events.
	Mixed bool
}

// CheckStats counts what [Check] has seen.
type CheckStats struct {
	Lines, Bytes     int64
	Events           int64 // of all kinds
	Opens, Metrics   int64
	Annotations      int64
	Faults, Warnings int64
	// Other is the lines between the events of a mixed output.
	Other int64
	// Slug is that of the first open.
	Slug string
	// Ended tells that the last event is done.
	Ended bool
}

// Check reads a whole stream strictly and hands every finding to found, in
// order of lines. A stream is faulty if Faults is not 0; the error is the
// reader's only. Memory does not grow with the stream.
func Check(r io.Reader, opts CheckOptions, found func(Finding)) (CheckStats, error) {
	c := checker{opts: opts, found: found}
	s := streamReader{handle: c.item}
	buf := make([]byte, readSize)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		c.sum.Bytes += int64(n)
		if err == nil {
			continue
		}
		s.end()
		c.release(false)
		if err != io.EOF {
			return c.sum, fmt.Errorf("check stream: %w", err)
		}
		if c.sum.Events == 0 && c.sum.Lines == 0 {
			c.report(Finding{LineError: LineError{1, 1, fmt.Errorf("%w: no open", ErrMissing)}})
		}
		return c.sum, nil
	}
}

type checker struct {
	opts  CheckOptions
	found func(Finding)
	sum   CheckStats
	held  *Finding // a bad line that an open may excuse
}

func (c *checker) report(f Finding) {
	if f.Warning {
		c.sum.Warnings++
	} else {
		c.sum.Faults++
	}
	c.found(f)
}

func (c *checker) fault(it *Item, column int, err error, warning bool) {
	c.report(Finding{LineError{it.Number, column, err}, it.Offset, warning})
}

// release reports the held line, as a warning if an open has come.
func (c *checker) release(open bool) {
	if c.held != nil {
		c.held.Warning = open
		c.report(*c.held)
		c.held = nil
	}
}

func (c *checker) item(it *Item) {
	c.sum.Lines = it.Number
	if it.Kind == ItemBad {
		c.bad(it)
		return
	}
	c.release(it.Event.Kind == KindOpen)
	c.sum.Events++
	c.order(it)
	c.lenient(it)
	c.limits(it)
	switch it.Event.Kind {
	case KindOpen:
		c.sum.Opens++
		c.open(it)
	case KindMetric:
		c.sum.Metrics++
	case KindAnnotation:
		c.sum.Annotations++
	}
	c.sum.Ended = it.Event.Kind == KindDone
}

// bad reports a line that is no event. One that is no JSON is held back: an
// open right after it makes it the torn end of a process that was killed.
func (c *checker) bad(it *Item) {
	c.release(false)
	if c.opts.Mixed && foreign(it) {
		c.sum.Other++
		return
	}
	f := Finding{*it.Err.(*LineError), it.Offset, false}
	if notJSON(it.Err) && !it.Torn {
		c.held = &f
		return
	}
	c.report(f)
}

// foreign tells a line of other output from a spoilt event.
func foreign(it *Item) bool {
	return errors.Is(it.Err, ErrKind) || errors.Is(it.Err, ErrEmpty) || !bytes.HasPrefix(bytes.TrimSpace(it.Line), []byte(`{"ts_ms"`))
}

func (c *checker) order(it *Item) {
	e := &it.Event
	switch {
	case e.Kind == KindOpen:
	case c.sum.Opens == 0:
		c.fault(it, 1, fmt.Errorf("%w: %s before the first open", ErrOrder, e.Kind), false)
	case c.sum.Ended:
		c.fault(it, 1, fmt.Errorf("%w: %s after done", ErrOrder, e.Kind), false)
	}
	if e.Kind != KindOpen && e.Kind != KindDone {
		return
	}
	if c.sum.Slug == "" {
		c.sum.Slug = e.Slug
	} else if e.Slug != c.sum.Slug {
		c.fault(it, column(it, e.Slug), fmt.Errorf("%w: %q in the stream of %q", ErrSlug, e.Slug, c.sum.Slug), false)
	}
}

// column finds a text on the line, 1 if it is spelled otherwise.
func column(it *Item, text string) int {
	return max(bytes.Index(it.Line, []byte(quote(text))), 0) + 1
}

var leniences = []struct {
	flag    Lenience
	err     error
	warning bool
}{
	{LenientNumber, fmt.Errorf("value: %w: not spelled \"NaN\", \"Infinity\" or \"-Infinity\"", serde.ErrNonFinite), true},
	{LenientInteger, fmt.Errorf("%w: an integer is spelled as a float", serde.ErrType), true},
	{LenientKeys, serde.ErrDuplicateKey, true},
	{LenientMetadata, fmt.Errorf("%w: metadata", ErrMissing), false},
	{LenientDescription, fmt.Errorf("%w: description of open", ErrMissing), false},
}

func (c *checker) lenient(it *Item) {
	for _, l := range leniences {
		if it.Event.Lenient&l.flag == 0 {
			continue
		}
		col := 1
		if l.flag == LenientNumber {
			col = column(it, "value") + len(`"value":`)
		}
		c.fault(it, col, l.err, l.warning)
	}
}

func (c *checker) limits(it *Item) {
	var err error
	e := &it.Event
	switch e.Kind {
	case KindOpen, KindDone:
		err = CheckSlug(e.Slug)
		if m, bad := e.Metadata.compact(); err == nil && e.Kind == KindOpen && bad == nil && len(m) > MaxOpenMetadata {
			err = &LimitError{"open metadata", len(m), MaxOpenMetadata, "bytes", ErrTooLarge}
		}
	case KindMetric:
		err = checkName(e.Name)
	case KindAnnotation:
		if n := units16(e.Text); n > MaxAnnotation {
			err = &LimitError{"annotation", n, MaxAnnotation, "UTF-16 units", ErrTooLarge}
		}
	}
	if err != nil {
		c.fault(it, 1, err, false)
	}
}

// open checks the types of the metadata that the document knows, where they
// are there.
func (c *checker) open(it *Item) {
	base := max(bytes.Index(it.Line, []byte(`"metadata"`)), 0)
	for key, raw := range it.Event.Metadata.All() {
		want := openTypes[key]
		if want == "" || allowed(want, raw) {
			if key == "run" {
				c.run(it, base, Metadata(raw))
			}
			continue
		}
		c.mistyped(it, base, key, want)
	}
}

func (c *checker) run(it *Item, base int, run Metadata) {
	for key, raw := range run.All() {
		if want := runTypes[key]; want != "" && !allowed(want, raw) {
			c.mistyped(it, base, key, want)
		}
	}
}

func (c *checker) mistyped(it *Item, base int, key, want string) {
	col := base + max(bytes.Index(it.Line[base:], []byte(quote(key))), 0) + 1
	c.fault(it, col, fmt.Errorf("metadata %s: %w: %s expected", key, serde.ErrType, typeWords(want)), false)
}

// The types are the first bytes that a value may have, "#" for an integer.
var openTypes = map[string]string{
	"sexpgpu": `"`, "entry": `"`, "variant": `"n`, "knobs": `{`, "run": `{`, "sources": `["`, "device": `"`, "devices": `[`,
}

var runTypes = map[string]string{
	"steps": "#n", "microbatches": "#n", "evals": "[n", "checkpoint_every": "#n", "precision": `"n`, "seed": "#n",
}

func allowed(want, raw string) bool {
	for i := range len(want) {
		if want[i] == raw[0] {
			return true
		}
		if want[i] == '#' {
			s := serde.NewScanner([]byte(raw))
			s.Int64()
			u := serde.NewScanner([]byte(raw))
			u.Uint64()
			if s.End() == nil || u.End() == nil {
				return true
			}
		}
	}
	return false
}

func typeWords(want string) string {
	words := map[byte]string{'"': "a string", 'n': "null", '{': "an object", '[': "an array", '#': "an integer"}
	out := words[want[0]]
	for i := 1; i < len(want); i++ {
		out += " or " + words[want[i]]
	}
	return out
}
