package export

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"

	"github.com/foldlog/foldlog/datagen"
)

// Row is a row of a Parquet export: one value of one field of one item, in the
// columns of the log and with their names. An item without fields is one row
// without a field.
type Row struct {
	Item    string `parquet:"item_id"`
	Root    string `parquet:"root_item_id,dict"`
	Parent  string `parquet:"parent_item_id,dict,optional"`
	Status  string `parquet:"status,dict"`
	Created int64  `parquet:"created,timestamp(microsecond),optional"`
	Updated int64  `parquet:"updated,timestamp(microsecond)"`
	Tags    string `parquet:"query_tags_json,dict,optional"`
	// Field is the field's name, Place the value's place among those appended.
	Field     *string  `parquet:"field_name,dict,optional"`
	Place     *int64   `parquet:"place,optional"`
	Appended  *bool    `parquet:"appended,optional"`
	Type      *string  `parquet:"field_type,dict,optional"`
	Codec     *int32   `parquet:"codec_version,optional"`
	Kind      *string  `parquet:"value_kind,dict,optional"`
	Int       *int64   `parquet:"value_i64,optional"`
	Float     *float64 `parquet:"value_f64,optional"`
	Bool      *bool    `parquet:"value_bool,optional"`
	Str       *string  `parquet:"value_str,optional"`
	JSON      *string  `parquet:"value_json,optional"`
	Blob      *[]byte  `parquet:"value_blob,optional"`
	Size      *int64   `parquet:"payload_size,optional"`
	Checksum  *string  `parquet:"payload_checksum,optional"`
	Event     *string  `parquet:"event_id,optional"`
	Seq       *int64   `parquet:"item_seq,optional"`
	Batch     *string  `parquet:"checkpoint_id,optional"`
	Step      *string  `parquet:"step_name,dict,optional"`
	Index     *int64   `parquet:"step_index,optional"`
	Instance  *string  `parquet:"step_instance_id,dict,optional"`
	Iteration *int64   `parquet:"iteration,optional"`
	Attempt   *int32   `parquet:"attempt,optional"`
	Run       *string  `parquet:"run_id,dict,optional"`
	Epoch     *string  `parquet:"writer_epoch,dict,optional"`
	Time      *int64   `parquet:"event_ts,timestamp(microsecond),optional"`
}

// The size of a row group.
const (
	groupRows  = 100_000
	groupBytes = 64 << 20
)

// Parquet writes a row for each value of each item (Row). It holds one row group in
// memory: 64 MiB of values, or a single value that is larger.
func Parquet(ctx context.Context, w io.Writer, items iter.Seq2[*datagen.Item, error], opts Options) (Stats, error) {
	p := parquetWriter{ctx: ctx, opts: &opts,
		out: parquet.NewGenericWriter[Row](w, parquet.Compression(&parquet.Zstd), parquet.CreatedBy("foldlog", "1", ""))}
	for it, err := range items {
		if err != nil {
			return p.stats, err
		}
		if err := p.item(it); err != nil {
			return p.stats, fmt.Errorf("export item %q: %w", it.ID, err)
		}
		p.stats.Items++
	}
	return p.stats, p.out.Close()
}

// parquetWriter writes rows and ends a group before it grows too large.
type parquetWriter struct {
	ctx   context.Context
	opts  *Options
	out   *parquet.GenericWriter[Row]
	rows  int
	bytes int64
	stats Stats
}

func (p *parquetWriter) item(it *datagen.Item) error {
	row := Row{Item: it.ID, Root: it.Root, Parent: it.Parent, Status: string(it.Status), Updated: it.Updated.UnixMicro(), Tags: string(it.Tags)}
	if !it.Created.IsZero() {
		row.Created = it.Created.UnixMicro()
	}
	if len(it.Fields) == 0 {
		return p.write(row)
	}
	for i := range it.Fields {
		f := &it.Fields[i]
		for k := range f.Values {
			one := row
			place := int64(k)
			one.Field, one.Appended, one.Place = &f.Name, &f.Appended, &place
			if err := p.value(&one, &f.Values[k]); err != nil {
				return err
			}
			if err := p.write(one); err != nil {
				return err
			}
			p.stats.Values++
		}
	}
	return nil
}

func (p *parquetWriter) value(row *Row, v *datagen.FieldValue) error {
	kind := string(v.Kind)
	row.Type, row.Codec, row.Kind = &v.Type, &v.Codec, &kind
	switch v.Kind {
	case datagen.Int:
		row.Int = &v.Int
	case datagen.Float:
		row.Float = &v.Float
	case datagen.Bool:
		row.Bool = &v.Bool
	case datagen.Str:
		row.Str = &v.Str
	case datagen.JSON:
		text := string(v.JSON)
		row.JSON = &text
	case datagen.Blob:
		b, err := p.opts.bytesOf(p.ctx, &v.Value)
		if err != nil {
			return err
		}
		if b != nil {
			row.Blob = &b
		}
		row.Size, row.Checksum = &v.Blob.Size, &v.Blob.Checksum
	}
	row.origin(&v.From)
	return nil
}

func (r *Row) origin(o *datagen.Origin) {
	r.Event, r.Seq, r.Batch, r.Attempt, r.Run, r.Epoch = &o.Event, &o.Seq, &o.Checkpoint, &o.Attempt, &o.Run, &o.Epoch
	if !o.Time.IsZero() {
		at := o.Time.UnixMicro()
		r.Time = &at
	}
	if s := o.Step; s != nil {
		r.Step, r.Index, r.Iteration = &s.Name, &s.Index, s.Iteration
		if s.Instance != "" {
			r.Instance = &s.Instance
		}
	}
}

func (p *parquetWriter) write(row Row) error {
	if _, err := p.out.Write([]Row{row}); err != nil {
		return err
	}
	p.rows++
	for _, s := range []*string{row.Str, row.JSON} {
		if s != nil {
			p.bytes += int64(len(*s))
		}
	}
	if row.Blob != nil {
		p.bytes += int64(len(*row.Blob))
	}
	if p.rows < groupRows && p.bytes < groupBytes {
		return nil
	}
	p.rows, p.bytes = 0, 0
	return p.out.Flush()
}
