package serde

import "time"

// NotNil is a list that is [] in JSON where it has nothing, and not null.
func NotNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OrNull is a text that is null in JSON where it is empty.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Millis is a time in Unix milliseconds, 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
