package pipeline

import (
	"context"
	"fmt"

	"github.com/foldlog/foldlog/datagen"
)

// State is an item as a condition sees it.
type State struct {
	// Item is the fold of the item so far; it must not be changed.
	Item *datagen.Item
	// Iteration is the round of the innermost loop around, from 0; -1 outside.
	Iteration int64

	log Log
}

// Value is the value of a field, the last one if it was appended to.
func (s *State) Value(name string) (datagen.Value, bool) {
	f, ok := s.Item.Field(name)
	if !ok {
		return datagen.Value{}, false
	}
	return f.Value(), true
}

// FieldError says that a field is not what a step needs.
type FieldError struct {
	Name string
	What string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("field %q %s", e.Name, e.What) }

func (s *State) typed(name string, kinds ...datagen.ValueKind) (datagen.Value, error) {
	v, ok := s.Value(name)
	if !ok {
		return v, &FieldError{name, "is not set"}
	}
	for _, k := range kinds {
		if v.Kind == k {
			return v, nil
		}
	}
	return v, &FieldError{name, fmt.Sprintf("is %s, not %s", v.Kind, kinds[0])}
}

// Int is the value of an integer field, or a *FieldError.
func (s *State) Int(name string) (int64, error) {
	v, err := s.typed(name, datagen.Int)
	return v.Int, err
}

// Float is the value of a number field, or a *FieldError.
func (s *State) Float(name string) (float64, error) {
	v, err := s.typed(name, datagen.Float, datagen.Int)
	if v.Kind == datagen.Int {
		return float64(v.Int), err
	}
	return v.Float, err
}

// Bool is the value of a truth field, or a *FieldError.
func (s *State) Bool(name string) (bool, error) {
	v, err := s.typed(name, datagen.Bool)
	return v.Bool, err
}

// Str is the value of a text field, or a *FieldError.
func (s *State) Str(name string) (string, error) {
	v, err := s.typed(name, datagen.Str)
	return v.Str, err
}

// Blob reads the bytes of a blob field, whose checksum is verified.
func (s *State) Blob(ctx context.Context, name string) ([]byte, error) {
	v, err := s.typed(name, datagen.Blob)
	if err != nil {
		return nil, err
	}
	return s.BlobOf(ctx, v.Blob)
}

// BlobOf reads the bytes that a reference stands for.
func (s *State) BlobOf(ctx context.Context, ref datagen.BlobRef) ([]byte, error) {
	if ref.Bytes != nil {
		return ref.Bytes, nil
	}
	return s.log.Blob(ctx, ref)
}

// Call is one attempt of one step.
type Call struct {
	State
	// Step says which execution this is.
	Step datagen.Step
	// Try counts the attempts of this run, from 1.
	Try int

	changes []datagen.Change
	filter  bool
}

// Set replaces a field.
func (c *Call) Set(name string, v datagen.Value) { c.changes = append(c.changes, datagen.Set(name, v)) }

// Append adds a value to those of a field.
func (c *Call) Append(name string, v datagen.Value) {
	c.changes = append(c.changes, datagen.Append(name, v))
}

// Change adds changes.
func (c *Call) Change(changes ...datagen.Change) { c.changes = append(c.changes, changes...) }

// Filter ends the item as filtered once the step is done.
func (c *Call) Filter() { c.filter = true }
