// Package algospec has what samplers and pruners have in common: the texts that name
// them, and where a study keeps one. A text is NAME, or NAME:OPTION=VALUE,OPTION,... An
// option without a value is true.
package algospec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxText bounds a text.
const maxText = 1000

// Options are the options of one text. Its methods take one each and keep the
// first error.
type Options struct {
	left  map[string]string
	names []string // in the order written
	known []string
	err   error
}

// parse takes a text apart.
func parse(text string) (name string, o *Options, err error) {
	if len(text) > maxText {
		return "", nil, fmt.Errorf("longer than %d bytes", maxText)
	}
	name, rest, has := strings.Cut(text, ":")
	o = &Options{left: map[string]string{}}
	if name == "" {
		return "", nil, fmt.Errorf("%q has no name", text)
	}
	if !has {
		return name, o, nil
	}
	for part := range strings.SplitSeq(rest, ",") {
		key, value, hasValue := strings.Cut(part, "=")
		if !hasValue {
			value = "true"
		}
		if _, twice := o.left[key]; twice || key == "" {
			return "", nil, fmt.Errorf("%.80q: want OPTION=VALUE, each once", part)
		}
		o.left[key] = value
		o.names = append(o.names, key)
	}
	return name, o, nil
}

func (o *Options) take(name string) (value string, ok bool) {
	o.known = append(o.known, name)
	value, ok = o.left[name]
	delete(o.left, name)
	return value, ok
}

// Fail records an error, unless there is one.
func (o *Options) Fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf(format, args...)
	}
}

// Has tells whether an option was given, without taking it.
func (o *Options) Has(name string) bool { return slices.Contains(o.names, name) }

// Text takes a text; it is empty if not given.
func (o *Options) Text(name string) string {
	text, _ := o.take(name)
	return text
}

// Int takes an integer from low to high; it is 0 if not given.
func (o *Options) Int(name string, low, high int) int {
	text, ok := o.take(name)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		o.Fail("%s=%.40s: must be an integer from %d to %d", name, text, low, high)
	}
	return n
}

// Uint takes an integer from low to high; it is 0 if not given.
func (o *Options) Uint(name string, low, high uint64) uint64 {
	text, ok := o.take(name)
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < low || n > high {
		o.Fail("%s=%.40s: must be an integer from %d to %d", name, text, low, high)
	}
	return n
}

// Float takes a number from low to high; it is 0 if not given.
func (o *Options) Float(name string, low, high float64) float64 {
	text, ok := o.take(name)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= low && f <= high) {
		o.Fail("%s=%.40s: must be a number from %g to %g", name, text, low, high)
	}
	return f
}

// Bool takes a truth value; it is false if not given.
func (o *Options) Bool(name string) bool {
	text, ok := o.take(name)
	if !ok {
		return false
	}
	b, err := strconv.ParseBool(text)
	if err != nil {
		o.Fail("%s=%.40s: must be true or false", name, text)
	}
	return b
}

// Err returns the first error, that of an option that nobody took included.
func (o *Options) Err() error {
	for _, name := range o.names {
		if _, left := o.left[name]; left && o.err == nil {
			if len(o.known) == 0 {
				return fmt.Errorf("unknown option %.40q: it has none", name)
			}
			return fmt.Errorf("unknown option %.40q (%s)", name, strings.Join(o.known, ", "))
		}
	}
	return o.err
}

// fromJSON reads a text that is stored as a JSON string.
func fromJSON(raw []byte) (text string, err error) {
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", fmt.Errorf("want a JSON string: %w", err)
	}
	return text, nil
}
