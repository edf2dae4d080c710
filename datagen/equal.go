package datagen

import (
	"bytes"
	"math"
)

// Equal reports whether two events say the same in every column. A blob's
// checksum stands for its bytes.
func (e *Event) Equal(o *Event) bool {
	return e.ID == o.ID && e.Item == o.Item && e.Root == o.Root && e.Parent == o.Parent &&
		e.Seq == o.Seq && e.Checkpoint == o.Checkpoint && e.Kind == o.Kind && e.Step.equal(o.Step) &&
		e.Attempt == o.Attempt && e.Run == o.Run && e.Epoch == o.Epoch && e.Field.equal(o.Field) &&
		bytes.Equal(e.Tags, o.Tags) && e.End == o.End && e.Failure.equal(o.Failure) &&
		e.Time.Equal(o.Time) && e.Schema == o.Schema && e.Frame.equal(o.Frame)
}

func (s *Step) equal(o *Step) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Name == o.Name && s.Index == o.Index && s.Instance == o.Instance && sameInt(s.Iteration, o.Iteration)
}

func sameInt(a, b *int64) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (f *Field) equal(o *Field) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.Name == o.Name && f.Type == o.Type && f.Codec == o.Codec && f.Value.Equal(&o.Value)
}

// Equal reports whether two values are the same, bit for bit for floats and by
// checksum for blobs.
func (v *Value) Equal(o *Value) bool {
	return v.Kind == o.Kind && v.Int == o.Int && math.Float64bits(v.Float) == math.Float64bits(o.Float) &&
		v.Bool == o.Bool && v.Str == o.Str && bytes.Equal(v.JSON, o.JSON) &&
		v.Blob.Size == o.Blob.Size && v.Blob.Checksum == o.Blob.Checksum
}

func (f *Failure) equal(o *Failure) bool {
	if f == nil || o == nil {
		return f == o
	}
	return f.Type == o.Type && bytes.Equal(f.Dump, o.Dump) && f.Traceback == o.Traceback
}

func (f *Frame) equal(o *Frame) bool {
	if f == nil || o == nil {
		return f == o
	}
	return *f == *o
}
