package trainlog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/metrics/tensorboard"
)

// Importer makes one stream of files: Read takes each of them, and Stream spells it.
// The same files make the same stream.
type Importer struct {
	Slug        string           // names the run
	Description string           // of the run
	Meta        metrics.Metadata // of the run's identity
	Running     bool             // the run goes on: the stream has no done
	Reading     Reading          // of JSON lines
	Told        func(error)      // is told each record that is passed over, and torn ends; nil for nobody

	Points int64 // the numbers that were read
	Others int64 // the histograms, images and texts that were left out
	Lost   int64 // the records and lines that were passed over
	First  error // why the first of them was

	parts []part
}

// part is the points of one file, and of a merged stream those of all.
type part struct {
	dir    string
	points []point
}

// point is one number.
type point struct {
	ms, step int64
	name     string
	value    metrics.Number
	metadata metrics.Metadata
}

// File is a file to import.
type File struct {
	Name string // in errors
	// Dir tells runs apart that write to several directories, as train and
	// validation. Files of the same one are processes one after another.
	Dir      string
	Modified time.Time // the time of lines that do not say theirs
	io.Reader
}

// Read takes the points of a file. Its error is that of the file's Reader, or
// ErrFormat.
func (im *Importer) Read(f File) error {
	in := bufio.NewReaderSize(f.Reader, 256<<10)
	start, err := in.Peek(tensorboard.StartSize)
	if err != nil && err != io.EOF {
		return err
	}
	p := part{dir: f.Dir}
	if tensorboard.IsEvents(start) {
		err = im.events(in, &f, &p)
	} else {
		err = im.lines(in, &f, &p)
	}
	im.parts = append(im.parts, p)
	im.Points += int64(len(p.points))
	return err
}

func (im *Importer) refuse(name string, err error) {
	err = fmt.Errorf("read %s: %w", name, err)
	if im.Lost++; im.Lost == 1 {
		im.First = err
	}
	im.tell(err)
}

func (im *Importer) tell(err error) {
	if im.Told != nil {
		im.Told(err)
	}
}

func (im *Importer) events(in io.Reader, f *File, p *part) error {
	log, err := tensorboard.Read(in)
	if err != nil {
		return err
	}
	for _, bad := range log.Bad {
		im.refuse(f.Name, bad)
	}
	if log.Torn != nil {
		im.tell(fmt.Errorf("read %s: %w", f.Name, log.Torn))
	}
	im.Others += log.Others
	for _, s := range log.Scalars {
		ms := math.Round(s.WallTime * 1000)
		if !(math.Abs(ms) < 1<<53) {
			ms = 0
		}
		p.points = append(p.points, point{int64(ms), s.Step, s.Tag, s.Value, ""})
	}
	return nil
}

// lineReader reads the lines of one file of JSON lines.
type lineReader struct {
	*Importer
	file *File
	part *part
	ms   int64 // the time of the latest line that has one
	next int64 // the step of a line that has none
	seen bool  // there was a line with values
}

func (im *Importer) lines(in io.Reader, f *File, p *part) error {
	l := &lineReader{Importer: im, file: f, part: p, ms: f.Modified.UnixMilli()}
	mixed := metrics.NewMixed(0, func(it *metrics.Item) {
		if err := l.item(it); err != nil {
			im.refuse(f.Name, onLine(it, err))
		}
	})
	if _, err := io.Copy(mixed, in); err != nil {
		return err
	}
	mixed.Close()
	if !l.seen {
		return ErrFormat
	}
	return nil
}

func (l *lineReader) item(it *metrics.Item) error {
	switch it.Kind {
	case metrics.ItemValues:
		l.seen = true
		return l.values(it.Values)
	case metrics.ItemEvent:
		return errors.New("an event of a metrics stream, which needs no import")
	case metrics.ItemText:
		if len(bytes.TrimSpace(it.Line)) == 0 {
			return nil
		}
		return errors.New("neither JSON nor name=value")
	}
	return cmp.Or(it.Err, errors.New("no values"))
}

func (l *lineReader) values(values []metrics.Value) error {
	values = slices.DeleteFunc(slices.Clone(values), func(v metrics.Value) bool {
		at, ok := lineTime(v)
		if ok {
			l.ms = at
		}
		return ok
	})
	line, err := l.Reading.line(values)
	if err != nil {
		return err
	}
	if line.hasStep {
		l.next = line.step
	}
	for _, v := range line.metrics {
		l.part.points = append(l.part.points, point{l.ms, l.next, v.Name, v.Number, line.metadata})
	}
	l.next++
	return nil
}

// timeNames are members that hold the time of a line: ts_ms in milliseconds,
// the others in seconds of the Unix epoch.
var timeNames = []string{"ts_ms", "_timestamp", "timestamp", "wall_time", "time"}

// lineTime is the time that a member holds, in milliseconds.
func lineTime(v metrics.Value) (ms int64, ok bool) {
	if !v.IsNumber || !slices.Contains(timeNames, v.Name) {
		return 0, false
	}
	at := v.Number.Float64()
	if v.Name != "ts_ms" {
		at *= 1000
	}
	// Before 2001 it is no time but a duration.
	return int64(at), at > 1e12 && at < 1e14
}

// Stream spells the stream: the files of one directory are processes one after
// another, those of several directories are merged by time.
func (im *Importer) Stream() ([]byte, error) {
	parts := im.parts
	if slices.ContainsFunc(parts, func(p part) bool { return p.dir != parts[0].dir }) {
		parts = []part{merged(parts)}
	}
	var out []byte
	last := int64(0)
	for i := range parts {
		p := &parts[i]
		if len(p.points) == 0 && i > 0 {
			continue
		}
		open, err := metrics.NewOpen(im.Slug, im.Description, im.Meta)
		if err != nil {
			return nil, err
		}
		open.TSMS = last
		if len(p.points) > 0 {
			open.TSMS = p.points[0].ms
		}
		out = open.Append(out)
		for _, point := range p.points {
			e, err := metrics.NewMetric(point.step, point.name, point.value, point.metadata)
			if err != nil {
				im.refuse(p.dir, err)
				continue
			}
			e.TSMS = point.ms
			out, last = e.Append(out), point.ms
		}
	}
	if !im.Running {
		done := metrics.NewDone(im.Slug)
		done.TSMS = last
		out = done.Append(out)
	}
	return out, nil
}

// merged makes one part of all, by time.
func merged(parts []part) part {
	var all []point
	for _, p := range parts {
		for _, point := range p.points {
			point.metadata = metrics.Meta("run", p.dir).Merge(point.metadata)
			all = append(all, point)
		}
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.ms, b.ms) })
	return part{points: all}
}
