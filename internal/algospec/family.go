package algospec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// Family is the algorithms of one kind, one of which a study names by its text.
type Family[T any] struct {
	// Kind is what they are called in errors.
	Kind string
	// Attribute is the system attribute of a study that holds the text as a JSON string;
	// Default is the text of a study without it.
	Attribute, Default string
	// Builders make an algorithm of each name from its options.
	Builders map[string]func(*Options) T
}

// Names are the names of the algorithms, sorted.
func (f *Family[T]) Names() []string { return slices.Sorted(maps.Keys(f.Builders)) }

// Parse makes an algorithm from its text. The error wraps [study.ErrInvalid].
func (f *Family[T]) Parse(text string) (made T, err error) {
	name, options, err := parse(text)
	if err != nil {
		return made, fmt.Errorf("%s: %w: %w", f.Kind, study.ErrInvalid, err)
	}
	build, ok := f.Builders[name]
	if !ok {
		return made, fmt.Errorf("%s: %w: unknown name %.40q (%s)", f.Kind, study.ErrInvalid, name, strings.Join(f.Names(), ", "))
	}
	built := build(options)
	if err := options.Err(); err != nil {
		return made, fmt.Errorf("%s %s: %w: %w", f.Kind, name, study.ErrInvalid, err)
	}
	return built, nil
}

// CheckText refuses a text that does not make the same algorithm again. The error wraps
// [study.ErrInvalid].
func (f *Family[T]) CheckText(text string, of T) error {
	made, err := f.Parse(text)
	if err == nil && !same(of, made) {
		err = fmt.Errorf("%s: %w: a %T has no text", f.Kind, study.ErrInvalid, of)
	}
	return err
}

// Choose stores a text in a study whose configuration passes the check.
func (f *Family[T]) Choose(tx *study.Tx, id study.StudyID, text string, check func(study.Config) error) error {
	st, err := tx.Snapshot().Study(id)
	if err != nil {
		return err
	}
	if err := check(st.Config); err != nil {
		return err
	}
	return tx.SetStudySystemAttr(id, f.Attribute, serde.AppendString(nil, text))
}

// TextOf is the text of a study for people: the default without one, and what is stored
// as it is if that is no text.
func (f *Family[T]) TextOf(st *study.Study) string {
	a, ok := st.Attr(f.Attribute)
	if !ok {
		return f.Default
	}
	text, err := fromJSON(a.Value)
	if err != nil {
		return string(a.Value)
	}
	return text
}

// Of makes the algorithm that a study names. The error wraps [study.ErrInvalid].
func (f *Family[T]) Of(st *study.Study) (none T, err error) {
	a, ok := st.Attr(f.Attribute)
	if !ok {
		return f.Parse(f.Default)
	}
	text, err := fromJSON(a.Value)
	if err != nil {
		return none, fmt.Errorf("attribute %s: %w: %w", f.Attribute, study.ErrInvalid, err)
	}
	return f.Parse(text)
}
