package optuna

import (
	"fmt"
	"time"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// zone is where local times are: that of the process, except in tests.
var zone = time.Local

// moment is a time in microseconds since 1970, as fine as Optuna keeps them.
type moment struct {
	micros int64
	known  bool
}

// wireLayout is the spelling of times in messages: local to the server.
const wireLayout = "2006-01-02 15:04:05.000000"

// fileLayout is the spelling of times in files: local to who reads and writes.
const fileLayout = "2006-01-02T15:04:05.000000"

// attrLayout is the spelling of times in attributes.
const attrLayout = "2006-01-02T15:04:05.000000Z"

func momentOf(t time.Time) moment { return moment{t.UnixMicro(), true} }

func ofMillis(ms uint64) moment {
	return moment{int64(min(ms, 1<<50)) * 1000, ms > 0}
}

// millis is the time as operations carry it.
func (m moment) millis() uint64 {
	if !m.known || m.micros < 0 {
		return 0
	}
	return uint64(m.micros) / 1000
}

// local spells a time, "" if it is not known.
func (m moment) local(layout string) string {
	if !m.known {
		return ""
	}
	return time.UnixMicro(m.micros).In(zone).Format(layout)
}

// file spells a time as files have it. An hour that comes twice, when summer time
// ends, needs its offset.
func (m moment) file() string {
	text := m.local(fileLayout)
	if back, err := time.ParseInLocation(fileLayout, text, zone); err != nil || back.UnixMicro() != m.micros {
		return time.UnixMicro(m.micros).In(zone).Format(fileLayout + "-07:00")
	}
	return text
}

// momentLayouts are the spellings that Python's datetime writes; a fraction of a
// second is read whether a layout has it or not.
var momentLayouts = []string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
}

// parseMoment reads a time, which is local unless it says its offset, "" as not
// known.
func parseMoment(text string) (moment, error) {
	if text == "" {
		return moment{}, nil
	}
	for _, layout := range momentLayouts {
		t, err := time.ParseInLocation(layout, text, zone)
		if err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return momentOf(t), nil
		}
	}
	return moment{}, fmt.Errorf("%w: %.40q is not a time", ErrInvalid, text)
}

// stored is the time as the value of an attribute.
func (m moment) stored() []byte {
	if !m.known {
		return []byte("null")
	}
	return serde.AppendString(nil, time.UnixMicro(m.micros).UTC().Format(attrLayout))
}

// timeAttr is the time that an attribute holds, if there is one.
func timeAttr(t *study.Trial, key string) (m moment, ok bool) {
	a, ok := t.Attr(key)
	if !ok || pyNull(a.Value) {
		return moment{}, ok
	}
	text, err := pyString(a.Value)
	if err != nil {
		return moment{}, false
	}
	m, err = parseMoment(text)
	return m, err == nil
}

// startOf and completeOf are Optuna's datetime_start and datetime_complete.
func startOf(t *study.Trial) moment {
	if m, ok := timeAttr(t, startKey); ok {
		return m
	}
	return ofMillis(t.StartedMillis)
}

func completeOf(t *study.Trial) moment {
	if m, ok := timeAttr(t, completeKey); ok {
		return m
	}
	return ofMillis(t.EndedMillis)
}
