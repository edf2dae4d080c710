package cli

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestSafe(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"plain text", "val/loss", "val/loss"},
		{"a backslash stays", `C:\logs`, `C:\logs`},
		{"letters and emoji stay", "größe 🧪 学習 👩‍🔬", "größe 🧪 学習 👩‍🔬"},
		{"line ends and tabs", "a\nb\r\tc", `a\nb\r\tc`},
		{"terminal sequences", "\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"delete and C1 controls", "\x7f\u009b", `\x7f\u009b`},
		{"line separators", "a\u2028b\u2029", `a\u2028b\u2029`},
		{"marks that reorder", "a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`},
		{"bad UTF-8", "a\xffb\xc3", `a\xffb\xc3`},
		{"a replacement character that was written", "a\ufffdb", "a\ufffdb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Safe(tc.in); got != tc.want {
				t.Errorf("Safe(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("plain")
	f.Add("\x1b[31m\u202e\xff\u0085\ufeff")
	f.Fuzz(func(t *testing.T, s string) {
		safe := Safe(s)
		if !utf8.ValidString(safe) || strings.ContainsFunc(safe, unicode.IsControl) {
			t.Errorf("Safe(%q) = %q is not safe", s, safe)
		}
		if again := Safe(safe); again != safe {
			t.Errorf("Safe is not idempotent on %q: %q then %q", s, safe, again)
		}
	})
}

func TestTable(t *testing.T) {
	table := NewTable(Column{Title: "NAME"}, Column{Title: "SIZE", Align: Right}, Column{Title: "STATE"})
	table.Row("学習", "1", "good")
	table.Row("b\x1b", "1000", "")
	table.Row("🧪", "12", "faulty", "left out")
	table.Row("short")
	want := "" +
		"NAME   SIZE  STATE\n" +
		"学習      1  good\n" +
		"b\\x1b  1000\n" +
		"🧪       12  faulty\n" +
		"short\n"
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestTableHeadingsAreMadeSafe(t *testing.T) {
	table := NewTable(Column{Title: "lo\x1b[31mss\n", Align: Right}, Column{Title: "B"})
	table.Row("1", "2")
	want := "" +
		"lo\\x1b[31mss\\n  B\n" +
		"             1  2\n"
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestTableStylesOnlyItsHeadings(t *testing.T) {
	table := NewTable(Column{Title: "A"})
	table.Bold = true
	table.Row("b")
	var out bytes.Buffer
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	if want := "\x1b[1mA\x1b[0m\nb\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestWriteFieldsLeavesOutWhatIsMissing(t *testing.T) {
	var out bytes.Buffer
	if err := WriteFields(&out, [2]string{"kind", "study"}, [2]string{"program", ""}, [2]string{"size", "1 B"}); err != nil {
		t.Fatal(err)
	}
	if want := "kind  study\nsize  1 B\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 10 << 10: "10 KiB", 1<<20 - 1: "1.0 MiB",
		64 << 20: "64 MiB", 3 << 40: "3.0 TiB", math.MaxInt64: "8.0 EiB", math.MinInt64: "-8.0 EiB", -5: "-5 B",
	} {
		if got := Size(bytes); got != want {
			t.Errorf("Size(%d) = %q, want %q", bytes, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1234567: "1,234,567",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                 "0s",
		300:                               "300ns",
		999*time.Millisecond + 999:        "999ms",
		1549 * time.Millisecond:           "1.5s",
		59999 * time.Millisecond:          "59.9s",
		3*time.Minute + 12*time.Second:    "3m12s",
		2*time.Hour + 5*time.Minute + 9e9: "2h5m",
		99*time.Hour + 59*time.Minute:     "4d3h",
		-90 * time.Second:                 "-1m30s",
		math.MinInt64:                     "-106751d23h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestAge(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for _, tc := range []struct {
		t    time.Time
		want string
	}{
		{now, "just now"},
		{now.Add(-3 * time.Second), "3s ago"},
		{now.Add(500 * time.Millisecond), "just now"},
		{now.Add(10 * time.Minute), "in 10m0s"},
	} {
		if got := Age(now, tc.t); got != tc.want {
			t.Errorf("Age(%v) = %q, want %q", tc.t, got, tc.want)
		}
	}
}

func TestJSONKeepsNamesReadable(t *testing.T) {
	v := map[string]string{"name": "<a> & 学"}
	var line, object bytes.Buffer
	if err := WriteJSONLine(&line, v); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(&object, v); err != nil {
		t.Fatal(err)
	}
	if want := "{\"name\":\"<a> & 学\"}\n"; line.String() != want {
		t.Errorf("line %q, want %q", line.String(), want)
	}
	if want := "{\n  \"name\": \"<a> & 学\"\n}\n"; object.String() != want {
		t.Errorf("object %q, want %q", object.String(), want)
	}
}

func TestBufferedShowsWhatCameBeforeAFault(t *testing.T) {
	fault := errors.New("fault")
	var out bytes.Buffer
	err := Buffered(&out, func(w io.Writer) error {
		io.WriteString(w, "before")
		return fault
	})
	if err != fault || out.String() != "before" {
		t.Errorf("got %q and %v, want %q and %v", out.String(), err, "before", fault)
	}
}

func TestBufferedReportsAFailedFlush(t *testing.T) {
	r, w := io.Pipe()
	r.CloseWithError(ErrOutputClosed)
	err := Buffered(w, func(w io.Writer) error {
		_, err := io.WriteString(w, "text")
		return err
	})
	if !errors.Is(err, ErrOutputClosed) {
		t.Errorf("got %v, want %v", err, ErrOutputClosed)
	}
}
