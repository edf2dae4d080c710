package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestAStreamedTableWidens prints what Write prints while the rows are few, and from then
// on keeps to the widths that it has or needs.
func TestAStreamedTableWidens(t *testing.T) {
	columns := []Column{{Title: "NAME"}, {Title: "N", Align: Right}}
	for _, rows := range []int{0, 1, 5, streamRows + 3} {
		whole, streamed := NewTable(columns...), NewTable(columns...)
		for i := range rows {
			whole.Row(fmt.Sprint("row", i%7), fmt.Sprint(i%10))
		}
		var a, b strings.Builder
		if rows > 0 {
			if err := whole.Write(&a); err != nil {
				t.Fatal(err)
			}
		}
		n, err := streamed.Stream(&b, func(yield func([]string, error) bool) {
			for i := range rows {
				if !yield([]string{fmt.Sprint("row", i%7), fmt.Sprint(i % 10)}, nil) {
					return
				}
			}
		})
		if err != nil || n != rows || a.String() != b.String() {
			t.Errorf("%d rows: %d streamed, %v\n%s", rows, n, err, b.String())
		}
	}
	var b strings.Builder
	broken := errors.New("broken")
	n, err := NewTable(columns...).Stream(&b, func(yield func([]string, error) bool) {
		for i := range streamRows + 3 {
			name := "a"
			if i == streamRows+1 {
				name = "longer"
			}
			if !yield([]string{name, "1"}, nil) {
				return
			}
		}
		yield(nil, broken)
	})
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if n != streamRows+3 || !errors.Is(err, broken) || len(lines) != n+1 {
		t.Fatalf("%d rows in %d lines: %v", n, len(lines), err)
	}
	for at, want := range map[int]string{0: "NAME  N", streamRows + 1: "a     1", streamRows + 2: "longer  1", streamRows + 3: "a       1"} {
		if lines[at] != want {
			t.Errorf("line %d is %q, not %q", at, lines[at], want)
		}
	}
}
