package logkind

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/lance"
)

// datagenKind is a datagen log in a directory: a Lance dataset that has the columns
// of one. Its events are told as the log means them, those of shards too.
type datagenKind struct{ World }

var _ Kind = datagenKind{}

func (datagenKind) Name() string { return DatagenLog }

// Identify leaves what cannot be opened to the kind of any Lance dataset.
func (k datagenKind) Identify(c Candidate) (string, error) {
	log, err := lanceKind{}.Identify(c)
	if err != nil || log == "" {
		return "", err
	}
	if _, ok := refAway(log); InBucket(log) && !ok {
		return "", nil // the names of a log are those of its place
	}
	if !k.holds(context.Background(), log) {
		return "", nil
	}
	return log, nil
}

// holds tells whether a dataset has the columns of a log.
func (k datagenKind) holds(ctx context.Context, log string) bool {
	_, d, err := k.openLance(ctx, log)
	if err != nil {
		return false
	}
	_, err = datagen.CheckSchema(d.Schema())
	return err == nil || errors.Is(err, datagen.ErrNewer)
}

// Parts has none: ls does not look into a directory that is a log, and beside it
// are only files that are none.
func (datagenKind) Parts(string) []string { return nil }

func (k datagenKind) openLog(ctx context.Context, log string) (*datagen.Log, error) {
	if ref, ok := refAway(k.NameOf(log)); ok {
		ref.Server = k.Server
		return ref.Open(ctx, datagen.Options{})
	}
	return datagen.OpenDirIn(ctx, k.liveFS(), log, datagen.Options{})
}

func (k datagenKind) Summarize(ctx context.Context, log string, _ SummarizeOptions) (Summary, error) {
	return k.summarizeTable(ctx, log, func(_ *lance.Dataset, rows, waiting int64) string {
		if waiting > 0 {
			return cli.Plural(rows+waiting, "event") + ", " + cli.Count(waiting) + " of them to be merged"
		}
		return cli.Plural(rows, "event")
	})
}

// DatagenDetail is the detail of an inspection of a datagen log.
type DatagenDetail struct {
	Items     int                       `json:"items"` // sub-items too
	Roots     int                       `json:"roots"`
	Suspects  int                       `json:"suspects"` // items whose events may contradict each other
	States    datagenview.States        `json:"states"`
	Steps     []datagenview.StepCounts  `json:"steps"`
	Failures  []datagenview.FailureRoll `json:"failures"`
	Version   uint64                    `json:"version"` // of the table
	Fragments int                       `json:"fragments"`
	Waiting   int64                     `json:"waiting"` // rows that are not merged into the table
}

func (k datagenKind) Inspect(ctx context.Context, log string) (Inspection, error) {
	found := Inspection{Path: log, Kind: k.Name(), State: StateGood}
	l, err := k.openLog(ctx, log)
	if err != nil {
		return found, err
	}
	v, err := l.View(ctx)
	if err != nil {
		return found, err
	}
	o, err := v.Overview(ctx)
	if err != nil {
		return found, err
	}
	s, err := datagenview.StatusOf(ctx, l, o)
	if err != nil {
		return found, err
	}
	base, err := l.Table().Base(ctx)
	if err != nil {
		return found, err
	}
	if found.Files, found.Bytes, _, err = k.treeSize(ctx, log); err != nil {
		return found, err
	}
	schema, _ := datagen.CheckSchema(base.Schema())
	found.Format, found.Program, found.Events = fmt.Sprintf("v%d", schema), base.Writer(), s.Events
	found.Detail = &DatagenDetail{s.Items, s.Roots, s.Suspects, s.States, s.Steps, s.Failures, s.Upkeep.Version, s.Upkeep.Fragments, s.Upkeep.Waiting}
	found.Counts = map[string]int64{
		"items": int64(s.Items), "sub-items": int64(s.Items - s.Roots), "completed": int64(s.States.Completed), "filtered": int64(s.States.Filtered),
		"failed": int64(s.States.Failed), "running": int64(s.States.Running + s.States.Pending),
	}
	for _, w := range o.Writers {
		found.Writers = append(found.Writers, Writer{Name: w.Epoch, Events: w.Events, LastMS: serde.Millis(w.Last)})
		if first := serde.Millis(w.First); found.FirstMS == 0 || first < found.FirstMS {
			found.FirstMS = first
		}
		found.LastMS = max(found.LastMS, serde.Millis(w.Last))
	}
	if n := len(found.Writers); n > maxWriters {
		found.Writers = found.Writers[:maxWriters]
		found.Notes = append(found.Notes, fmt.Sprintf("the latest %d of %d writer epochs are told", maxWriters, n))
	}
	if s.Suspects > 0 {
		found.Notes = append(found.Notes, cli.Plural(int64(s.Suspects), "item")+" may be at fault; foldlog verify looks closer")
	}
	return found, nil
}

// maxWriters is how many writer epochs an inspection tells: each item that is
// opened has one.
const maxWriters = 20

// Verify checks the table, those of its versions that are still listed, its shards, that
// every item folds without a fault, and every blob.
func (k datagenKind) Verify(ctx context.Context, log string, opts VerifyOptions) (Verification, error) {
	var v Verification
	k.World = k.watched(ctx, log, 2, opts.Progress)
	l, err := k.openLog(ctx, log)
	if err != nil {
		return v, err
	}
	base, err := l.Table().Base(ctx)
	if err != nil {
		return v, err
	}
	schema, err := datagen.CheckSchema(base.Schema())
	if err != nil {
		return v, err
	}
	v.Format = fmt.Sprintf("v%d", schema)
	found := func(err error) { v.Faults = append(v.Faults, k.faultPlace(log, err)) }
	stats, err := l.VerifyVersions(ctx, opts.Versions, found)
	v.Events, v.Bytes = stats.Events, stats.Bytes
	if errors.Is(err, lance.ErrCorrupt) {
		found(err)
		err = nil
	}
	return v, err
}

func (k datagenKind) faultPlace(log string, err error) Place {
	var fault *datagen.Fault
	if errors.As(err, &fault) {
		return Place{File: k.NameOf(log), What: fault.Error(), Hint: "foldlog datagen item " + k.NameOf(log) + " " + fault.Item + " --trajectory shows the item; the others are not touched by it"}
	}
	return k.lanceFault(log, err)
}

// Cat writes the events as JSON, those that are not in the table yet first. A blob is its
// size and its checksum unless its bytes are asked for.
func (k datagenKind) Cat(ctx context.Context, log string, w io.Writer, opts CatOptions) error {
	v, err := k.view(ctx, log)
	if err != nil {
		return err
	}
	var line []byte
	n := int64(0)
	for e, err := range v.All(ctx) {
		if err != nil {
			return err
		}
		if n++; n < opts.From {
			continue
		}
		if e.Field != nil && e.Field.Value.Kind == datagen.Blob && opts.Blobs {
			blob := &e.Field.Value.Blob
			if blob.Bytes, err = v.Blob(ctx, *blob); err != nil {
				return err
			}
		}
		line = append(datagen.AppendEvent(line[:0], &e), '\n')
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (k datagenKind) view(ctx context.Context, log string) (*datagen.View, error) {
	l, err := k.openLog(ctx, log)
	if err != nil {
		return nil, err
	}
	return l.View(ctx)
}

// Tail writes the latest events by their time. With Follow those that were there
// before are held back until all are known, and then each new one is written once.
func (k datagenKind) Tail(ctx context.Context, log string, w io.Writer, opts TailOptions) error {
	l, err := k.openLog(ctx, log)
	if err != nil {
		return err
	}
	last := &latest{most: opts.Last}
	if !opts.Follow {
		v, err := l.View(ctx)
		if err != nil {
			return err
		}
		for e, err := range v.All(ctx) {
			if err != nil {
				return err
			}
			last.add(e)
		}
		return last.write(w)
	}
	live := false
	var failed error
	follow := datagen.FollowOptions{Poll: k.poll(), Existing: opts.Last > 0, Quiet: func() {
		if !live {
			live, failed = true, last.write(w)
		}
	}}
	for e, err := range l.Follow(ctx, follow) {
		if err = cmp.Or(failed, err); err != nil {
			return err
		}
		if !live && opts.Last > 0 {
			last.add(e)
		} else if err := writeEvent(w, &e); err != nil {
			return err
		}
	}
	return cmp.Or(failed, ctx.Err())
}

func writeEvent(w io.Writer, e *datagen.Event) error {
	_, err := w.Write(append(datagen.AppendEvent(nil, e), '\n'))
	return err
}

// latest keeps the latest events, so many at most, the earliest on top.
type latest struct {
	most   int64
	events []datagen.Event
}

func (l *latest) Len() int           { return len(l.events) }
func (l *latest) Less(i, j int) bool { return compareEvents(l.events[i], l.events[j]) < 0 }
func (l *latest) Swap(i, j int)      { l.events[i], l.events[j] = l.events[j], l.events[i] }

// Push implements heap.Interface.
func (l *latest) Push(e any) {
	if e, ok := e.(datagen.Event); ok {
		l.events = append(l.events, e)
	}
}

// Pop implements heap.Interface.
func (l *latest) Pop() any {
	n := len(l.events) - 1
	e := l.events[n]
	l.events = l.events[:n]
	return e
}

func (l *latest) add(e datagen.Event) {
	if heap.Push(l, e); int64(len(l.events)) > l.most {
		heap.Pop(l)
	}
}

func (l *latest) write(w io.Writer) error {
	slices.SortFunc(l.events, compareEvents)
	for i := range l.events {
		if err := writeEvent(w, &l.events[i]); err != nil {
			return err
		}
	}
	return nil
}

func compareEvents(x, y datagen.Event) int {
	return cmp.Or(x.Time.Compare(y.Time), strings.Compare(x.Item, y.Item), cmp.Compare(x.Seq, y.Seq))
}
