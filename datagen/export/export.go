// Package export writes the items of a datagen log for other programs: JSON Lines
// with an object for each item, Parquet with a row for each value. Both say where every
// value comes from.
package export

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
)

// Options says what an export holds. The zero value is the items without the bytes of
// their blobs.
type Options struct {
	// Blobs reads the bytes of blobs (datagen.View.Blob), one at a time; nil leaves
	// them references.
	Blobs func(ctx context.Context, ref datagen.BlobRef) ([]byte, error)
	// NoProvenance leaves out where the values come from; Parquet always has it.
	NoProvenance bool
}

// Stats counts what was written.
type Stats struct{ Items, Values int64 }

// Having selects the items with one of some states.
func Having(items iter.Seq2[*datagen.Item, error], states ...datagen.Status) iter.Seq2[*datagen.Item, error] {
	return func(yield func(*datagen.Item, error) bool) {
		for it, err := range items {
			if err == nil && !slices.Contains(states, it.Status) {
				continue
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// bytesOf reads the bytes of a blob, nil for any other value or without Blobs.
func (o *Options) bytesOf(ctx context.Context, v *datagen.Value) ([]byte, error) {
	if v.Kind != datagen.Blob || o.Blobs == nil {
		return nil, nil
	}
	b, err := o.Blobs(ctx, v.Blob)
	if err != nil {
		return nil, err
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// JSONL writes an object for each item on a line of its own: its identities, status,
// times, tags and fields, and the provenance of each value. A blob whose bytes are
// read is an object with "base64" besides its size and checksum.
func JSONL(ctx context.Context, w io.Writer, items iter.Seq2[*datagen.Item, error], opts Options) (Stats, error) {
	var stats Stats
	j := jsonWriter{ctx: ctx, opts: &opts, stats: &stats}
	for it, err := range items {
		if err != nil {
			return stats, err
		}
		j.Dst = j.Dst[:0]
		if err := j.item(it); err != nil {
			return stats, fmt.Errorf("export item %q: %w", it.ID, err)
		}
		if _, err := w.Write(append(j.Dst, '\n')); err != nil {
			return stats, err
		}
		stats.Items++
	}
	return stats, nil
}

// jsonWriter spells items.
type jsonWriter struct {
	ctx   context.Context
	opts  *Options
	stats *Stats
	serde.Object
}

func (j *jsonWriter) item(it *datagen.Item) error {
	j.Open()
	j.Text("item_id", it.ID)
	j.Text("root_item_id", it.Root)
	j.Optional("parent_item_id", it.Parent)
	j.Text("status", string(it.Status))
	j.Int("attempt", int64(it.Attempt))
	j.Text("run_id", it.Run)
	if !it.Created.IsZero() {
		j.Time("created", it.Created)
	}
	j.Time("updated", it.Updated)
	j.Raw("query_tags", it.Tags)
	j.Key("fields")
	if err := j.fields(it); err != nil {
		return err
	}
	if !j.opts.NoProvenance {
		j.Key("provenance")
		j.provenance(it)
	}
	j.Close()
	return nil
}

func (j *jsonWriter) fields(it *datagen.Item) error {
	j.Open()
	for i := range it.Fields {
		f := &it.Fields[i]
		j.Key(f.Name)
		if !f.Appended {
			if err := j.value(&f.Values[0].Value); err != nil {
				return err
			}
			continue
		}
		j.Dst = append(j.Dst, '[')
		for k := range f.Values {
			if k > 0 {
				j.Dst = append(j.Dst, ',')
			}
			if err := j.value(&f.Values[k].Value); err != nil {
				return err
			}
		}
		j.Dst = append(j.Dst, ']')
	}
	j.Close()
	return nil
}

func (j *jsonWriter) value(v *datagen.Value) error {
	j.stats.Values++
	b, err := j.opts.bytesOf(j.ctx, v)
	if err != nil {
		return err
	}
	if b == nil {
		j.Dst = datagen.AppendValue(j.Dst, v)
		return nil
	}
	j.Open()
	j.Int("size", v.Blob.Size)
	j.Text("checksum", v.Blob.Checksum)
	j.Key("base64")
	j.Dst = append(base64.StdEncoding.AppendEncode(append(j.Dst, '"'), b), '"')
	j.Close()
	return nil
}

// provenance is, for each field, an array with an object for each value.
func (j *jsonWriter) provenance(it *datagen.Item) {
	j.Open()
	for i := range it.Fields {
		f := &it.Fields[i]
		j.Key(f.Name)
		j.Dst = append(j.Dst, '[')
		for k := range f.Values {
			if k > 0 {
				j.Dst = append(j.Dst, ',')
			}
			j.origin(&f.Values[k])
		}
		j.Dst = append(j.Dst, ']')
	}
	j.Close()
}

func (j *jsonWriter) origin(v *datagen.FieldValue) {
	o := &v.From
	j.Open()
	j.Text("event_id", o.Event)
	j.Text("checkpoint_id", o.Checkpoint)
	j.Int("item_seq", o.Seq)
	if s := o.Step; s != nil {
		j.Text("step_name", s.Name)
		j.Int("step_index", s.Index)
		j.Optional("step_instance_id", s.Instance)
		if s.Iteration != nil {
			j.Int("iteration", *s.Iteration)
		}
	}
	j.Int("attempt", int64(o.Attempt))
	j.Text("run_id", o.Run)
	j.Text("writer_epoch", o.Epoch)
	j.Text("field_type", v.Type)
	j.Int("codec_version", int64(v.Codec))
	j.Time("event_ts", o.Time)
	j.Close()
}
