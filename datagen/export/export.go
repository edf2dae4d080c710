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

	"github.com/foldlog/foldlog/datagen"
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
			if err == nil && !in(it.Status, states) {
				continue
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

func in(s datagen.Status, states []datagen.Status) bool {
	for _, o := range states {
		if s == o {
			return true
		}
	}
	return false
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
		j.dst = j.dst[:0]
		if err := j.item(it); err != nil {
			return stats, fmt.Errorf("export item %q: %w", it.ID, err)
		}
		if _, err := w.Write(append(j.dst, '\n')); err != nil {
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
	object
}

func (j *jsonWriter) item(it *datagen.Item) error {
	j.open()
	j.text("item_id", it.ID)
	j.text("root_item_id", it.Root)
	j.optional("parent_item_id", it.Parent)
	j.text("status", string(it.Status))
	j.int("attempt", int64(it.Attempt))
	j.text("run_id", it.Run)
	if !it.Created.IsZero() {
		j.time("created", it.Created)
	}
	j.time("updated", it.Updated)
	if it.Tags != nil {
		j.raw("query_tags", it.Tags)
	}
	j.key("fields")
	if err := j.fields(it); err != nil {
		return err
	}
	if !j.opts.NoProvenance {
		j.key("provenance")
		j.provenance(it)
	}
	j.close()
	return nil
}

func (j *jsonWriter) fields(it *datagen.Item) error {
	j.open()
	for i := range it.Fields {
		f := &it.Fields[i]
		j.key(f.Name)
		if !f.Appended {
			if err := j.value(&f.Values[0].Value); err != nil {
				return err
			}
			continue
		}
		j.dst = append(j.dst, '[')
		for k := range f.Values {
			if k > 0 {
				j.dst = append(j.dst, ',')
			}
			if err := j.value(&f.Values[k].Value); err != nil {
				return err
			}
		}
		j.dst = append(j.dst, ']')
	}
	j.close()
	return nil
}

func (j *jsonWriter) value(v *datagen.Value) error {
	j.stats.Values++
	b, err := j.opts.bytesOf(j.ctx, v)
	if err != nil {
		return err
	}
	if b == nil {
		j.dst = datagen.AppendValue(j.dst, v)
		return nil
	}
	j.open()
	j.int("size", v.Blob.Size)
	j.text("checksum", v.Blob.Checksum)
	j.text("base64", base64.StdEncoding.EncodeToString(b))
	j.close()
	return nil
}

// provenance is, for each field, an array with an object for each value.
func (j *jsonWriter) provenance(it *datagen.Item) {
	j.open()
	for i := range it.Fields {
		f := &it.Fields[i]
		j.key(f.Name)
		j.dst = append(j.dst, '[')
		for k := range f.Values {
			if k > 0 {
				j.dst = append(j.dst, ',')
			}
			j.origin(&f.Values[k])
		}
		j.dst = append(j.dst, ']')
	}
	j.close()
}

func (j *jsonWriter) origin(v *datagen.FieldValue) {
	o := &v.From
	j.open()
	j.text("event_id", o.Event)
	j.text("checkpoint_id", o.Checkpoint)
	j.int("item_seq", o.Seq)
	if s := o.Step; s != nil {
		j.text("step_name", s.Name)
		j.int("step_index", s.Index)
		j.optional("step_instance_id", s.Instance)
		if s.Iteration != nil {
			j.int("iteration", *s.Iteration)
		}
	}
	j.int("attempt", int64(o.Attempt))
	j.text("run_id", o.Run)
	j.text("writer_epoch", o.Epoch)
	j.text("field_type", v.Type)
	j.int("codec_version", int64(v.Codec))
	j.time("event_ts", o.Time)
	j.close()
}
