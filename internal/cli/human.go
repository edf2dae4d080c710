package cli

import (
	"fmt"
	"strconv"
	"time"
)

// Size spells a number of bytes in binary units with three digits or so:
// "0 B", "999 B", "1.5 KiB", "12 MiB".
func Size(bytes int64) string {
	if bytes < 0 {
		return "-" + sizeOf(-float64(bytes))
	}
	return sizeOf(float64(bytes))
}

func sizeOf(v float64) string {
	if v < 1024 {
		return strconv.Itoa(int(v)) + " B"
	}
	const units = "KMGTPE"
	unit := -1
	// 1023.95 and not 1024: what would round up to 1024.0 is one of the next.
	for v >= 1023.95 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %ciB", v, units[unit])
	}
	return fmt.Sprintf("%.0f %ciB", v, units[unit])
}

// Count spells a whole number with commas: "1,234,567".
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Duration spells a span of time with its two largest units: "0s", "250ms",
// "1.5s", "3m12s", "2h5m", "4d3h". What is below them is cut off.
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-max(d, -1<<63+1))
	}
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return d.String()
	case d < time.Second:
		return d.Truncate(time.Millisecond).String()
	case d < time.Minute:
		return d.Truncate(100 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// Age spells how long before now t was: "just now" within a second, "3m12s
// ago", and "in 5m0s" for a time to come, as a wrong clock writes.
func Age(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case d < -time.Second:
		return "in " + Duration(-d)
	case d < time.Second:
		return "just now"
	}
	return Duration(d) + " ago"
}

// Timestamp spells a time in UTC to the millisecond.
func Timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02 15:04:05.000Z")
}

// Plural counts things: "1 trial", "1,024 trials".
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Count(n) + " " + noun + "s"
}

// Moment is a time of Unix milliseconds and its age, "" for 0.
func Moment(now time.Time, ms int64) string {
	if ms == 0 {
		return ""
	}
	t := time.UnixMilli(ms)
	return Timestamp(t) + " (" + Age(now, t) + ")"
}

// Shorten keeps a text within so many characters, the last of which tells that it was
// longer.
func Shorten(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
