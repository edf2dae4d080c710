package pipefile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// maxParts is how many sub-items one map makes at most.
const maxParts = 1_000_000

// fan is what a map goes over: so many, or as many as a field says, or what a
// field lists.
type fan struct {
	count int64
	field string
	as    string   // the field of a sub-item that gets its part, if that is no object
	with  []string // fields that a sub-item gets from the item
}

// parts depends on nothing but the item.
func (f *fan) parts(ctx context.Context, s *pipeline.State) ([]pipeline.Part, error) {
	shared, err := f.shared(ctx, s)
	if err != nil {
		return nil, err
	}
	count, elements := f.count, []json.RawMessage(nil)
	if f.field != "" {
		if count, elements, err = f.over(s); err != nil {
			return nil, err
		}
	}
	if count < 0 || count > maxParts {
		return nil, fmt.Errorf("a map over %d parts; from 0 to %d are allowed", count, maxParts)
	}
	parts := make([]pipeline.Part, count)
	for i := range parts {
		parts[i].Fields = shared[:len(shared):len(shared)]
		if elements == nil {
			parts[i].Fields = append(parts[i].Fields, datagen.Set(f.as, datagen.IntValue(int64(i))))
			continue
		}
		own, err := f.element(elements[i])
		if err != nil {
			return nil, fmt.Errorf("part %d of field %q: %w", i, f.field, err)
		}
		parts[i].Fields = append(parts[i].Fields, own...)
	}
	return parts, nil
}

func (f *fan) over(s *pipeline.State) (int64, []json.RawMessage, error) {
	v, ok := s.Value(f.field)
	switch {
	case !ok:
		return 0, nil, &pipeline.FieldError{Name: f.field, What: "is not set, and the map goes over it"}
	case v.Kind == datagen.Int:
		return v.Int, nil, nil
	case v.Kind == datagen.JSON:
		elements := []json.RawMessage{}
		if err := json.Unmarshal(v.JSON, &elements); err == nil && elements != nil {
			return int64(len(elements)), elements, nil
		}
	}
	return 0, nil, &pipeline.FieldError{Name: f.field, What: "is neither a list nor a number, and the map goes over it"}
}

// element is the fields that one part sets: the members of an object, or itself.
func (f *fan) element(raw json.RawMessage) (changes []datagen.Change, err error) {
	if !bytes.HasPrefix(raw, []byte("{")) {
		v, err := parseValue(raw, "")
		return []datagen.Change{datagen.Set(f.as, v)}, err
	}
	err = eachMember(raw, func(name string, raw json.RawMessage) error {
		v, err := parseValue(raw, "")
		changes = append(changes, datagen.Set(name, v))
		return err
	})
	return changes, err
}

// shared are the fields that every sub-item gets, blobs with their bytes.
func (f *fan) shared(ctx context.Context, s *pipeline.State) ([]datagen.Change, error) {
	var changes []datagen.Change
	for _, name := range f.with {
		v, ok := s.Value(name)
		if !ok {
			return nil, &pipeline.FieldError{Name: name, What: "is not set, and the map passes it on"}
		}
		if v.Kind == datagen.Blob {
			b, err := s.BlobOf(ctx, v.Blob)
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", name, err)
			}
			v = datagen.BlobValue(b)
		}
		changes = append(changes, datagen.Set(name, v))
	}
	return changes, nil
}
