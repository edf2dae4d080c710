package datagen

import (
	"fmt"
	"strconv"
	"time"
)

// AsOf names a moment in an item's life. At most one of its fields is set; the
// zero value is now.
type AsOf struct {
	// Time is the last moment that counts. The time at a sequence is the latest of
	// any event up to it, so that clocks that differ take nothing apart.
	Time time.Time
	// Checkpoint is the last checkpoint that counts.
	Checkpoint string
	// Seq is the last sequence that counts.
	Seq *int64
}

// IsZero reports whether it is now.
func (a AsOf) IsZero() bool { return a.Time.IsZero() && a.Checkpoint == "" && a.Seq == nil }

// String spells the moment as ParseAsOf reads it; "" is now.
func (a AsOf) String() string {
	switch {
	case a.Seq != nil:
		return strconv.FormatInt(*a.Seq, 10)
	case !a.Time.IsZero():
		return a.Time.UTC().Format(time.RFC3339Nano)
	}
	return a.Checkpoint
}

// ParseAsOf reads a sequence (digits alone), a time (RFC 3339, or a date, which
// is its first moment in UTC) or the identity of a checkpoint.
func ParseAsOf(s string) (AsOf, error) {
	if s == "" {
		return AsOf{}, fmt.Errorf("%w: it is empty", ErrNoCheckpoint)
	}
	if seq, err := strconv.ParseInt(s, 10, 64); err == nil && seq >= 0 {
		return AsOf{Seq: &seq}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return AsOf{Time: t.UTC()}, nil
		}
	}
	return AsOf{Checkpoint: s}, nil
}

// Cut returns the prefix of an item's events that existed at the moment: all of them if
// the moment is now. The events must be in the order of Folder.Events. The error is
// ErrNoCheckpoint if the item has no such checkpoint.
func (a AsOf) Cut(events []Event) ([]Event, error) {
	n := len(events)
	switch {
	case a.Seq != nil:
		for n = 0; n < len(events) && events[n].Seq <= *a.Seq; n++ {
		}
	case !a.Time.IsZero():
		for n = 0; n < len(events) && !events[n].Time.After(a.Time); n++ {
		}
	case a.Checkpoint != "":
		for n > 0 && events[n-1].Checkpoint != a.Checkpoint {
			n--
		}
		if n == 0 {
			return nil, fmt.Errorf("%w: %.200q", ErrNoCheckpoint, a.Checkpoint)
		}
	}
	return events[:n], nil
}

// FoldAt folds what was there at a moment, from events in any order; nil if that
// was nothing.
func FoldAt(events []Event, at AsOf) (*Item, error) {
	if at.IsZero() {
		return Fold(events), nil
	}
	var f Folder
	f.Add(events...)
	cut, err := at.Cut(f.Events())
	if err != nil {
		return nil, err
	}
	return Fold(cut), nil
}
