package serde

import (
	"strconv"
	"time"
)

// Object appends JSON objects member by member, nested ones too. Strings must be UTF-8.
type Object struct{ Dst []byte }

// Open begins an object, which is a value where one is due.
func (o *Object) Open() { o.Dst = append(o.Dst, '{') }

// Close ends it.
func (o *Object) Close() { o.Dst = append(o.Dst, '}') }

// Key begins a member, whose value the caller appends.
func (o *Object) Key(k string) {
	if o.Dst[len(o.Dst)-1] != '{' {
		o.Dst = append(o.Dst, ',')
	}
	o.Dst = append(AppendString(o.Dst, k), ':')
}

// Text adds a string.
func (o *Object) Text(k, v string) {
	o.Key(k)
	o.Dst = AppendString(o.Dst, v)
}

// Optional adds a string that is not empty.
func (o *Object) Optional(k, v string) {
	if v != "" {
		o.Text(k, v)
	}
}

// Int adds an integer.
func (o *Object) Int(k string, v int64) {
	o.Key(k)
	o.Dst = strconv.AppendInt(o.Dst, v, 10)
}

// Raw adds a JSON value, unless it is nil.
func (o *Object) Raw(k string, v []byte) {
	if v != nil {
		o.Key(k)
		o.Dst = append(o.Dst, v...)
	}
}

// Time adds a time in UTC with microseconds, as RFC 3339 spells it.
func (o *Object) Time(k string, t time.Time) {
	o.Text(k, t.UTC().Format("2006-01-02T15:04:05.000000Z"))
}
