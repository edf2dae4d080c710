package algospec

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
)

// Spell takes a sampler or pruner apart into the name and the options that its text has:
// the name of its type, and its fields that are not zero. Fields that are interfaces are
// the caller's to spell.
func Spell(v any) (name string, options []string) {
	s := reflect.Indirect(reflect.ValueOf(v))
	if s.Kind() != reflect.Struct {
		return fmt.Sprintf("%T", v), nil
	}
	for i := range s.NumField() {
		f := s.Field(i)
		key := snake(s.Type().Field(i).Name)
		switch {
		case f.IsZero() || f.Kind() == reflect.Interface:
		case f.Kind() == reflect.Bool:
			options = append(options, key)
		default:
			options = append(options, fmt.Sprint(key, "=", reflect.Indirect(f).Interface()))
		}
	}
	return strings.ToLower(s.Type().Name()), options
}

// Join is the text of a name with options.
func Join(name string, options []string) string {
	if len(options) == 0 {
		return name
	}
	return name + ":" + strings.Join(options, ",")
}

// same tells whether two samplers or pruners are the same, by pointer or not.
func same(a, b any) bool {
	return reflect.DeepEqual(value(a), value(b))
}

func value(v any) any {
	if s := reflect.Indirect(reflect.ValueOf(v)); s.IsValid() {
		return s.Interface()
	}
	return nil
}

// snake spells a field's name as options have it: MinDelta is min_delta.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
