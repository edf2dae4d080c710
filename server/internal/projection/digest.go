package projection

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/foldlog/foldlog/metrics"
)

// Digest is what is known of one stream without reading it. It is immutable.
type Digest struct {
	// Path is the stream's file, relative to the root, with slashes.
	Path string
	// ID is the stream's id ([metrics.StreamID]), Slug that of its newest open.
	ID, Slug string
	// Description and Metadata are those of its newest open, up to [MostDescription]
	// and [MostMetadata]; the metadata is without the sources, which can be long.
	Description string
	Metadata    metrics.Metadata
	Status      metrics.Status
	// Interrupted is the signal that stopped the newest process, Stage the
	// newest stage, Failure why the newest process failed.
	Interrupted, Stage, Failure string
	// Segments, Marks and Checkpoints count.
	Segments, Marks, Checkpoints int
	// FirstTSMS, LastTSMS and OpenedTSMS are the times of the first event, the
	// last one and the newest open.
	FirstTSMS, LastTSMS, OpenedTSMS int64
	// LastStep is the step of the last event that has one, a metric or an annotation.
	// Stepped tells that such has come since the newest open.
	LastStep int64
	Stepped  bool
	// Events, Metrics and Bad count events, those that are metrics, and lines
	// that are no events. Bytes is the size of all whole lines.
	Events, Metrics, Bad, Bytes int64
	// LeftOut counts what is in the stream and not here.
	LeftOut LeftOut
	// Curves has what is known of each metric name, in order of arrival.
	Curves []CurveStat

	size, mtime int64 // of the file when it was read to its end
}

// File is the size of the stream's file and when it was written to last, in
// milliseconds of the Unix epoch.
func (d *Digest) File() (size, modifiedMS int64) {
	if d.mtime == 0 {
		return d.size, d.LastTSMS
	}
	return d.size, d.mtime / 1e6
}

// CurveStat sums up the points of one name.
type CurveStat struct {
	// Name is a number of [Store.Name].
	Name uint32
	// Count is the number of points, NonFinite that of NaN and infinities.
	Count, NonFinite uint32
	// Last is the value that came last, Min and Max are over the finite ones.
	Last, Min, Max float64
	// LastStep is the step of Last.
	LastStep int64
}

// Finite tells whether Min and Max mean something.
func (c *CurveStat) Finite() bool { return c.Count > c.NonFinite }

func (c *CurveStat) add(step int64, v float64) {
	c.Count++
	c.Last, c.LastStep = v, step
	if v-v != 0 {
		c.NonFinite++
		return
	}
	if c.Count-c.NonFinite == 1 {
		c.Min, c.Max = v, v
		return
	}
	c.Min, c.Max = min(c.Min, v), max(c.Max, v)
}

// merge adds the points of a later stream.
func (c *CurveStat) merge(o *CurveStat) {
	switch {
	case !o.Finite():
	case !c.Finite():
		c.Min, c.Max = o.Min, o.Max
	default:
		c.Min, c.Max = min(c.Min, o.Min), max(c.Max, o.Max)
	}
	c.Count += o.Count
	c.NonFinite += o.NonFinite
	c.Last, c.LastStep = o.Last, o.LastStep
}

// Curve finds what is known of a name, nil if it never came.
func (d *Digest) Curve(name uint32) *CurveStat {
	for i := range d.Curves {
		if d.Curves[i].Name == name {
			return &d.Curves[i]
		}
	}
	return nil
}

// Run is what is known of a slug: of all its streams together. It is immutable.
type Run struct {
	// Digest is that of the whole: identity and status are those of the stream
	// that was opened last, counts and points those of all. Path and ID are
	// that stream's.
	Digest
	// Streams are the run's, in the order of their first events.
	Streams []*Digest

	values atomic.Pointer[[]MetaValue]
}

// MetaValue is one value in metadata that is no object.
type MetaValue struct {
	// Path is its key; keys of objects inside are joined with slashes.
	Path string
	// Raw is the value as it is written.
	Raw string
}

// Values are those of the run's metadata, in its order. They are taken apart once.
func (r *Run) Values() []MetaValue {
	if known := r.values.Load(); known != nil {
		return *known
	}
	list := Flatten(r.Metadata)
	r.values.Store(&list)
	return list
}

// Value finds a value by its path.
func (r *Run) Value(path string) (raw string, ok bool) {
	for _, v := range r.Values() {
		if v.Path == path {
			return v.Raw, true
		}
	}
	return "", false
}

// deepest is how far objects inside of objects are taken apart.
const deepest = 8

// Flatten takes metadata apart.
func Flatten(m metrics.Metadata) []MetaValue { return flatten(nil, m, "", 0) }

func flatten(list []MetaValue, m metrics.Metadata, prefix string, depth int) []MetaValue {
	for key, raw := range m.All() {
		if strings.HasPrefix(raw, "{") && depth < deepest {
			list = flatten(list, metrics.Metadata(raw), prefix+key+"/", depth+1)
			continue
		}
		list = append(list, MetaValue{prefix + key, raw})
	}
	return list
}

// mergeRun makes a run of streams, of which there is at least one.
func mergeRun(streams []*Digest) *Run {
	slices.SortFunc(streams, func(a, b *Digest) int {
		return cmp.Or(cmp.Compare(a.FirstTSMS, b.FirstTSMS), cmp.Compare(a.Path, b.Path))
	})
	if len(streams) == 1 {
		return &Run{Digest: *streams[0], Streams: streams}
	}
	newest := streams[0]
	for _, d := range streams[1:] {
		if d.OpenedTSMS >= newest.OpenedTSMS {
			newest = d
		}
	}
	r := &Run{Digest: *newest, Streams: streams}
	r.Segments, r.Marks, r.Checkpoints, r.Events, r.Metrics, r.Bad, r.Bytes = 0, 0, 0, 0, 0, 0, 0
	r.Curves, r.LeftOut = nil, LeftOut{}
	at := map[uint32]int{}
	for _, d := range streams {
		r.add(d, at)
	}
	return r
}

func (r *Run) add(d *Digest, at map[uint32]int) {
	r.FirstTSMS, r.LastTSMS = min(r.FirstTSMS, d.FirstTSMS), max(r.LastTSMS, d.LastTSMS)
	r.Segments += d.Segments
	r.Marks += d.Marks
	r.Checkpoints += d.Checkpoints
	r.Events += d.Events
	r.Metrics += d.Metrics
	r.Bad += d.Bad
	r.Bytes += d.Bytes
	r.LeftOut.add(d.LeftOut)
	for i := range d.Curves {
		c := &d.Curves[i]
		if j, ok := at[c.Name]; ok {
			r.Curves[j].merge(c)
			continue
		}
		at[c.Name] = len(r.Curves)
		r.Curves = append(r.Curves, *c)
	}
}
