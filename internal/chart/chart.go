// Package chart draws charts: in a terminal with braille characters, and as SVG
// and PNG pictures. It knows nothing of what it draws; commands make a [Chart]
// and say what the words are.
package chart

import (
	"fmt"
	"math"

	"github.com/foldlog/foldlog/internal/cli"
)

// Chart is some series and marks over two axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
	Marks  []Mark
	// Kinds are the letters that marks have, and what they are called. In a
	// column of characters that has several marks the last of these stands.
	Kinds []MarkKind
	// Columns make it parallel coordinates: the horizontal axis counts them from
	// 0, the vertical one is from 0 to 1 in each.
	Columns []Column
	// Letters name the lines where colours cannot.
	Letters bool
	// Notes are the words beneath.
	Notes []string

	xs, ys  axisRange
	skipped int // points that a logarithmic axis cannot show
}

// Axis is one axis. The zero value is linear, for numbers.
type Axis struct {
	Log   bool // logarithmic
	Whole bool // its numbers are integers
	Time  bool // its numbers are seconds, spelled as spans of time
	Fine  bool // twice as many ticks as on a long axis
	// Categories are names at 0, 1 and so on, on the vertical axis from the top.
	Categories []string
	// Fix is the range, nil for that of the points.
	Fix *[2]float64
	// Label says what it is, beneath the horizontal axis; a vertical one has none.
	Label string
}

// Style is how a series is drawn.
type Style int

// The styles.
const (
	// Line joins the points in their order.
	Line Style = iota
	// Dots leaves them alone.
	Dots
	// Spans are bars from X to End at Y.
	Spans
)

// Series is some points that belong together.
type Series struct {
	Style Style
	// Legend is what it is called beneath, "" to be left out there.
	Legend string
	// X and Y are the points. A Y that is not finite breaks a line.
	X, Y []float64
	// End is where spans end.
	End []float64
	// Texts are written behind spans; nil without.
	Texts []string
	// Older are points to draw dim; nil for none.
	Older []bool
	// Colour counts the colours of the palette.
	Colour int
	// Faint draws it dim, and beneath the others in a terminal.
	Faint bool
	// Shade, if above 0, is a place on a scale of one colour up to 1, the
	// darkest, in the place of Colour.
	Shade float64
	// Size is the diameter of dots in pixels; 0 is 4.
	Size float64
	// Glyph stands for a dot or fills a span in a terminal; 0 is braille, or a bar.
	Glyph rune
}

// Mark is where something happened.
type Mark struct {
	X      float64
	Letter byte
}

// MarkKind is a sort of marks.
type MarkKind struct {
	Letter byte
	Word   string
}

// Column is one axis of parallel coordinates.
type Column struct {
	Label string
	Ticks []Tick
}

// Tick is a text at a place from 0 to 1.
type Tick struct {
	At   float64
	Text string
}

// Scale finds the ranges of the axes; it must be called before drawing. It is
// false if there is nothing to draw.
func (c *Chart) Scale() bool {
	c.skipped = 0
	c.xs, c.ys = c.X.begin(), c.Y.begin()
	c.ys.down = c.Y.Categories != nil
	if c.Columns != nil {
		c.xs = axisRange{lo: 0, hi: max(float64(len(c.Columns)-1), 1), some: true, fixed: true}
		c.ys = axisRange{lo: 0, hi: 1, some: true, fixed: true}
	}
	for i := range c.Series {
		s := &c.Series[i]
		for k := range s.X {
			fits := c.xs.cover(s.X[k])
			if s.End != nil {
				c.xs.cover(s.End[k])
			}
			if finite(s.Y[k]) && !c.ys.cover(s.Y[k]) || !fits {
				c.skipped++
			}
		}
	}
	c.xs.widen()
	c.ys.widen()
	for i := range c.Series {
		if c.Series[i].Style == Dots && len(c.Series[i].X) > 0 {
			c.xs.room()
			c.ys.room()
			break
		}
	}
	return len(c.Series) > 0
}

// shows tells whether a point is somewhere on the axes.
func (c *Chart) shows(x, y float64) bool {
	return finite(y) && c.xs.shows(x) && c.ys.shows(y)
}

// notes are the words beneath a chart.
func (c *Chart) notes() (notes []string) {
	words := ""
	for _, k := range c.Kinds {
		for _, m := range c.Marks {
			if m.Letter == k.Letter {
				words += fmt.Sprintf("  %c %s", k.Letter, k.Word)
				break
			}
		}
	}
	if words != "" {
		notes = append(notes, words[2:])
	}
	older, odd := 0, 0
	for i := range c.Series {
		s := &c.Series[i]
		for k, y := range s.Y {
			if s.older(k) {
				older++
			}
			if !finite(y) {
				odd++
			}
		}
	}
	for _, n := range []struct {
		n    int
		what string
	}{{odd, "not finite (×)"}, {c.skipped, "at or below zero, not on a logarithmic axis"}, {older, "repeated after a resume (dim)"}} {
		if n.n > 0 {
			notes = append(notes, points(n.n)+" "+n.what)
		}
	}
	for _, note := range c.Notes {
		notes = append(notes, cli.Safe(note))
	}
	return notes
}

func points(n int) string {
	if n == 1 {
		return "1 point"
	}
	return cli.Count(int64(n)) + " points"
}

// legends are the series that the legend has.
func (c *Chart) legends() (list []int) {
	for i := range c.Series {
		if c.Series[i].Legend != "" {
			list = append(list, i)
		}
	}
	return list
}

func (s *Series) older(i int) bool { return s.Older != nil && s.Older[i] }

// dim tells whether a point is drawn dim.
func (s *Series) dim(i int) bool {
	return s.Faint || s.older(i) || s.Shade > 0 && s.Shade < 0.5
}

func finite(f float64) bool { return f-f == 0 }

func abs(n int) int { return max(n, -n) }

func round(f float64) int { return int(math.Round(f)) }
