package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/foldlog/foldlog/internal/cli"
)

// chartExtra is about how many lines a chart has besides its plot: title, axis,
// its numbers, marks, a legend and a note.
const chartExtra = 6

// brailleDots are the bits of a braille character by row and column.
var brailleDots = [4][2]byte{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// brailleBase is the character without dots.
const brailleBase = 0x2800

// lineColours are the foregrounds of lines: cyan, yellow, green, magenta, blue
// and red.
var lineColours = []int{36, 33, 32, 35, 34, 31}

// dotCell is one character of the plot.
type dotCell struct {
	dots  byte
	glyph rune // instead of the dots, 0 for none
	line  int  // whose colour it has
	older bool // nothing but older copies
}

// dotPlot is a plot of braille characters, two by four dots each.
type dotPlot struct {
	width, height int // in characters
	cells         []dotCell
}

func newDotPlot(width, height int) *dotPlot {
	return &dotPlot{width, height, make([]dotCell, width*height)}
}

// dot sets one dot; the origin is at the top left.
func (p *dotPlot) dot(x, y, line int, older bool) {
	if x < 0 || y < 0 || x >= 2*p.width || y >= 4*p.height {
		return
	}
	c := &p.cells[y/4*p.width+x/2]
	switch {
	case c.dots == 0:
		c.line, c.older = line, older
	case !older && c.older:
		c.line, c.older = line, false
	}
	c.dots |= brailleDots[y%4][x%2]
}

// stroke joins two dots.
func (p *dotPlot) stroke(x0, y0, x1, y1, line int, older bool) {
	steps := max(abs(x1-x0), abs(y1-y0), 1)
	for i := range steps + 1 {
		p.dot(x0+(x1-x0)*i/steps, y0+(y1-y0)*i/steps, line, older)
	}
}

func abs(n int) int { return max(n, -n) }

// terminal draws a chart in a number of columns, its plot in a number of lines.
func (c *chart) terminal(width, height int, colour bool) string {
	labels := c.yLabels(height)
	margin := 0
	for _, text := range labels {
		margin = max(margin, runewidth.StringWidth(text))
	}
	plot := newDotPlot(max(width-margin-2, 8), height)
	for i := range c.lines {
		c.draw(plot, i)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\n", strings.Repeat(" ", margin+2), cli.Safe(c.title))
	for row := range height {
		axis := "│"
		if labels[row] != "" {
			axis = "┤"
		}
		fmt.Fprintf(&b, "%*s %s%s\n", margin, labels[row], axis, plot.row(row, colour))
	}
	fmt.Fprintf(&b, "%*s └%s\n", margin, "", strings.Repeat("─", plot.width))
	indent := strings.Repeat(" ", margin+2)
	fmt.Fprintf(&b, "%s%s\n", indent, c.xLabels(plot.width))
	if marks := c.markRow(plot.width); marks != "" {
		fmt.Fprintf(&b, "%s%s\n", indent, marks)
	}
	for i := range c.lines {
		fmt.Fprintf(&b, "%s%s\n", indent, c.legendLine(i, colour))
	}
	for _, note := range c.notes() {
		fmt.Fprintf(&b, "%s%s\n", indent, note)
	}
	return b.String()
}

// draw adds a line to the plot. It breaks at a value that is not finite, and
// does not join an older copy to the newer one.
func (c *chart) draw(p *dotPlot, index int) {
	l := &c.lines[index]
	joined, px, py := false, 0, 0
	for i := range l.x {
		x := int(math.Round(c.xs.share(l.x[i]) * float64(2*p.width-1)))
		if !finite(l.y[i]) {
			p.glyph(x/2, p.height-1, '×', index)
		}
		if !finite(l.y[i]) || c.log && l.y[i] <= 0 {
			joined = false
			continue
		}
		y := int(math.Round((1 - c.ys.share(l.y[i])) * float64(4*p.height-1)))
		if joined && l.older[i] == l.older[i-1] {
			p.stroke(px, py, x, y, index, l.older[i])
		} else {
			p.dot(x, y, index, l.older[i])
		}
		joined, px, py = true, x, y
	}
	if joined && len(c.lines) > 1 {
		p.glyph(px/2, py/4, letterOf(index), index)
	}
}

// letterOf names a line where colours cannot.
func letterOf(index int) rune { return rune('a' + index%26) }

func (p *dotPlot) glyph(col, row int, r rune, line int) {
	if col >= 0 && row >= 0 && col < p.width && row < p.height {
		c := &p.cells[row*p.width+col]
		c.glyph, c.line, c.older = r, line, false
	}
}

// row is one line of the plot, without spaces at its end.
func (p *dotPlot) row(row int, colour bool) string {
	cells := p.cells[row*p.width : (row+1)*p.width]
	for len(cells) > 0 && cells[len(cells)-1].dots == 0 && cells[len(cells)-1].glyph == 0 {
		cells = cells[:len(cells)-1]
	}
	var b strings.Builder
	style := ""
	for _, c := range cells {
		if want := c.style(colour); want != style {
			b.WriteString(endStyle(style) + want)
			style = want
		}
		b.WriteRune(c.rune())
	}
	return b.String() + endStyle(style)
}

func (c *dotCell) rune() rune {
	switch {
	case c.glyph != 0:
		return c.glyph
	case c.dots == 0:
		return ' '
	}
	return brailleBase + rune(c.dots)
}

// style is the escape sequence of a cell, "" for none.
func (c *dotCell) style(colour bool) string {
	switch {
	case !colour || c.dots == 0 && c.glyph == 0:
		return ""
	case c.older:
		return fmt.Sprintf("\x1b[2;%dm", colourOf(c.line))
	}
	return fmt.Sprintf("\x1b[%dm", colourOf(c.line))
}

func colourOf(line int) int { return lineColours[line%len(lineColours)] }

func endStyle(style string) string {
	if style == "" {
		return ""
	}
	return "\x1b[0m"
}

// yLabels are the numbers at the vertical axis, a line each.
func (c *chart) yLabels(height int) []string {
	labels := make([]string, height)
	for _, v := range c.ys.ticks(max(height/4, 2)) {
		row := int(math.Round((1-c.ys.share(v))*float64(4*height-1))) / 4
		if row >= 0 && row < height && labels[row] == "" {
			labels[row] = tickText(v)
		}
	}
	return labels
}

// xLabels are the numbers at the horizontal axis, as many as fit.
func (c *chart) xLabels(width int) string {
	row := []rune(strings.Repeat(" ", width))
	free := 0
	for _, v := range c.xs.ticks(max(width/16, 2)) {
		text := []rune(c.xText(v))
		at := int(math.Round(c.xs.share(v)*float64(width-1))) - len(text)/2
		at = max(min(at, width-len(text)), 0)
		if at >= free && at+len(text) <= width {
			copy(row[at:], text)
			free = at + len(text) + 2
		}
	}
	return strings.TrimRight(string(row), " ")
}

// markRow has a letter for each column in which something happened; the later
// ones of markLetters win.
func (c *chart) markRow(width int) string {
	row := []byte(strings.Repeat(" ", width))
	for _, k := range markLetters {
		for _, m := range c.marks {
			at := int(math.Round(c.xs.share(m.x) * float64(width-1)))
			if m.letter == k.letter && at >= 0 && at < width {
				row[at] = m.letter
			}
		}
	}
	return strings.TrimRight(string(row), " ")
}

func (c *chart) legendLine(index int, colour bool) string {
	text := cli.Safe(c.lines[index].legend())
	if len(c.lines) > 1 {
		text = string(letterOf(index)) + " " + text
	}
	if colour {
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colourOf(index), text)
	}
	return text
}
