package cli

import (
	"io"
	"iter"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Align is the side of its column that a cell sits on.
type Align int

// The two sides. Numbers read best on the right.
const (
	Left Align = iota
	Right
)

// Column is the heading of one column of a table.
type Column struct {
	Title string
	Align Align
}

// Table lays rows out in aligned columns for people. Widths are those a
// terminal shows, so that wide characters and emoji stay aligned, and every
// heading and cell is made safe for a terminal (see Safe). The zero value has no columns
// and prints nothing. A table holds its rows until they are written.
type Table struct {
	Columns []Column
	Bold    bool // style the headings, see Env.Color
	rows    [][]string
}

// NewTable makes a table with these columns, left-aligned unless set.
func NewTable(columns ...Column) *Table { return &Table{Columns: columns} }

// Row appends a row. Cells that are missing stay empty; cells beyond the last
// column are left out.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(t.Columns))
	for i := range min(len(row), len(cells)) {
		row[i] = Safe(cells[i])
	}
	t.rows = append(t.rows, row)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// Write prints the headings and the rows, two spaces apart, without spaces at
// the ends of lines.
func (t *Table) Write(w io.Writer) error {
	return Buffered(w, func(w io.Writer) error {
		_, err := t.flush(w, nil)
		return err
	})
}

// streamRows is how many rows a table that is streamed takes its widths from.
const streamRows = 1000

// Stream prints the headings and rows as they come, and returns how many there were. Columns
// are as wide as the first thousand rows need, and wider from each further row that needs
// more; memory is that of those rows. Without a row nothing is printed.
func (t *Table) Stream(w io.Writer, rows iter.Seq2[[]string, error]) (n int, err error) {
	var widths []int
	err = Buffered(w, func(w io.Writer) error {
		for row, err := range rows {
			if err != nil {
				return err
			}
			t.Row(row...)
			if n++; n < streamRows {
				continue
			}
			if widths, err = t.flush(w, widths); err != nil {
				return err
			}
		}
		if n > 0 {
			_, err = t.flush(w, widths)
		}
		return err
	})
	return n, err
}

// flush prints the rows that there are, the headings before the first ones, and returns
// the widths.
func (t *Table) flush(w io.Writer, before []int) ([]int, error) {
	titles := t.titles()
	widths := t.widths(titles)
	for i := range before {
		widths[i] = max(widths[i], before[i])
	}
	if before == nil {
		if err := t.writeHeadings(w, titles, widths); err != nil {
			return nil, err
		}
	}
	for _, row := range t.rows {
		if _, err := io.WriteString(w, t.line(row, widths)+"\n"); err != nil {
			return nil, err
		}
	}
	t.rows = t.rows[:0]
	return widths, nil
}

func (t *Table) titles() []string {
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = Safe(c.Title)
	}
	return titles
}

func (t *Table) writeHeadings(w io.Writer, titles []string, widths []int) error {
	line := t.line(titles, widths)
	if line == "" {
		return nil
	}
	if t.Bold {
		line = "\x1b[1m" + line + "\x1b[0m"
	}
	_, err := io.WriteString(w, line+"\n")
	return err
}

func (t *Table) widths(titles []string) []int {
	widths := make([]int, len(t.Columns))
	for i, title := range titles {
		widths[i] = runewidth.StringWidth(title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
	}
	return widths
}

func (t *Table) line(cells []string, widths []int) string {
	var b strings.Builder
	for i, cell := range cells {
		pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell))
		if i > 0 {
			b.WriteString("  ")
		}
		if t.Columns[i].Align == Right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// WriteFields prints label and value pairs, one a line, the values aligned.
// Pairs without a value are left out.
func WriteFields(w io.Writer, pairs ...[2]string) error {
	t := NewTable(Column{}, Column{})
	for _, p := range pairs {
		if p[1] != "" {
			t.Row(p[0], p[1])
		}
	}
	return t.Write(w)
}
