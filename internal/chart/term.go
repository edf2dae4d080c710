package chart

import (
	"fmt"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/foldlog/foldlog/internal/cli"
)

// Extra is about how many lines a chart has besides its plot: title, axis,
// its numbers, marks, a legend and a note.
const Extra = 6

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
	plain bool // in no colour
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

// Terminal draws a chart in a number of columns, its plot in a number of lines.
// Categories on the vertical axis have a line each, whatever the height.
func (c *Chart) Terminal(width, height int, colour bool) string {
	if c.Y.Categories != nil {
		height = len(c.Y.Categories)
	}
	labels := c.yLabels(height)
	margin := 0
	for i, text := range labels {
		labels[i] = runewidth.Truncate(text, max(width/3, 8), "…")
		margin = max(margin, runewidth.StringWidth(labels[i]))
	}
	plot := newDotPlot(max(width-margin-2, 8), height)
	for i := range c.Series {
		c.draw(plot, &c.Series[i], i)
	}
	c.rules(plot)
	var b strings.Builder
	indent := strings.Repeat(" ", margin+2)
	fmt.Fprintf(&b, "%s%s\n", indent, cli.Safe(c.Title))
	if c.Columns != nil {
		fmt.Fprintf(&b, "%s%s\n", indent, c.columnRow(plot.width, func(c *Column) string { return c.end(1) }))
	}
	for row := range height {
		axis := "│"
		if labels[row] != "" {
			axis = "┤"
		}
		label := strings.Repeat(" ", margin-runewidth.StringWidth(labels[row])) + labels[row]
		fmt.Fprintf(&b, "%s %s%s\n", label, axis, plot.row(row, colour))
	}
	fmt.Fprintf(&b, "%*s └%s\n", margin, "", strings.Repeat("─", plot.width))
	for _, line := range c.beneath(plot.width, colour) {
		fmt.Fprintf(&b, "%s%s\n", indent, line)
	}
	return b.String()
}

// beneath are the lines below the plot.
func (c *Chart) beneath(width int, colour bool) (lines []string) {
	if c.Columns != nil {
		lines = append(lines, c.columnRow(width, func(c *Column) string { return c.end(0) }),
			c.columnRow(width, func(c *Column) string { return c.Label }))
	} else {
		lines = append(lines, c.xLabels(width))
	}
	if c.X.Label != "" {
		text := cli.Safe(c.X.Label)
		lines = append(lines, strings.Repeat(" ", max(width-runewidth.StringWidth(text), 0)/2)+text)
	}
	if marks := c.markRow(width); marks != "" {
		lines = append(lines, marks)
	}
	for _, i := range c.legends() {
		lines = append(lines, c.legendLine(i, colour))
	}
	return append(lines, c.notes()...)
}

// end is the text at one end of a column.
func (c *Column) end(at float64) string {
	for _, t := range c.Ticks {
		if t.At == at {
			return t.Text
		}
	}
	return ""
}

// columnRow has a text for each column, cut to the room that there is.
func (c *Chart) columnRow(width int, text func(*Column) string) string {
	row := strings.Builder{}
	used := 0
	for i := range c.Columns {
		at := round(c.xs.share(float64(i)) * float64(width-1))
		room := (width-1)/max(len(c.Columns)-1, 1) - 1
		s := runewidth.Truncate(cli.Safe(text(&c.Columns[i])), max(room, 1), "…")
		wide := runewidth.StringWidth(s)
		at = max(min(at-wide/2, width-wide), used)
		row.WriteString(strings.Repeat(" ", at-used) + s)
		used = at + wide
	}
	return row.String()
}

// rules draws the axes of parallel coordinates where nothing else is.
func (c *Chart) rules(p *dotPlot) {
	for i := range c.Columns {
		col := round(c.xs.share(float64(i)) * float64(p.width-1))
		for row := range p.height {
			if cell := &p.cells[row*p.width+col]; cell.dots == 0 {
				cell.glyph, cell.plain = '│', true
			}
		}
	}
}

// draw adds a series to the plot.
func (c *Chart) draw(p *dotPlot, s *Series, index int) {
	switch s.Style {
	case Spans:
		c.drawSpans(p, s)
	default:
		c.drawPoints(p, s, index)
	}
}

// drawPoints adds dots or a line. A line breaks at a value that is not finite,
// and does not join an older copy to the newer one.
func (c *Chart) drawPoints(p *dotPlot, s *Series, index int) {
	joined, px, py := false, 0, 0
	for i := range s.X {
		if !c.xs.shows(s.X[i]) {
			joined = false
			continue
		}
		x := round(c.xs.share(s.X[i]) * float64(2*p.width-1))
		if !finite(s.Y[i]) {
			p.glyph(x/2, p.height-1, '×', s.Colour)
		}
		if !c.shows(s.X[i], s.Y[i]) {
			joined = false
			continue
		}
		y := round((1 - c.ys.share(s.Y[i])) * float64(4*p.height-1))
		switch {
		case s.Glyph != 0:
			p.glyph(x/2, y/4, s.Glyph, s.Colour)
		case joined && s.Style == Line && s.older(i) == s.older(i-1):
			p.stroke(px, py, x, y, s.Colour, s.dim(i))
		default:
			p.dot(x, y, s.Colour, s.dim(i))
		}
		joined, px, py = true, x, y
	}
	if joined && c.Letters && len(c.Series) > 1 {
		p.glyph(px/2, py/4, letterOf(index), s.Colour)
	}
}

// bars are the parts of a character's width, in eighths.
var bars = []rune(" ▏▎▍▌▋▊▉█")

// drawSpans fills the cells of spans; without a glyph, to the eighth.
func (c *Chart) drawSpans(p *dotPlot, s *Series) {
	for i := range s.X {
		if !c.shows(s.X[i], s.Y[i]) {
			continue
		}
		row := min(int((1-c.ys.share(s.Y[i]))*float64(p.height)), p.height-1)
		from, to := c.xs.share(s.X[i])*float64(p.width), c.xs.share(s.End[i])*float64(p.width)
		col := int(from)
		if s.Glyph != 0 {
			for ; col < max(round(to), int(from)+1); col++ {
				p.glyph(min(col, p.width-1), row, s.Glyph, s.Colour)
			}
			continue
		}
		for ; col < int(to); col++ {
			p.glyph(col, row, bars[8], s.Colour)
		}
		if part := int((to - float64(col)) * 8); part > 0 {
			p.glyph(col, row, bars[part], s.Colour)
			col++
		}
		if s.Texts != nil {
			for k, r := range []rune(cli.Safe(s.Texts[i])) {
				p.glyph(col+1+k, row, r, s.Colour)
				p.plain(col+1+k, row)
			}
		}
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

// plain takes the colour from a cell.
func (p *dotPlot) plain(col, row int) {
	if col < p.width {
		p.cells[row*p.width+col].plain = true
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
	case !colour || c.plain || c.dots == 0 && c.glyph == 0:
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

// yLabels are the texts at the vertical axis, a line each.
func (c *Chart) yLabels(height int) []string {
	labels := make([]string, height)
	if c.Columns != nil {
		return labels
	}
	n := max(height/4, 2)
	if c.Y.Categories != nil {
		n = height
	}
	for _, t := range c.Y.labelled(&c.ys, n) {
		row := round((1-c.ys.share(t.at))*float64(4*height-1)) / 4
		if row >= 0 && row < height && labels[row] == "" {
			labels[row] = t.text
		}
	}
	return labels
}

// xLabels are the texts at the horizontal axis, as many as fit.
func (c *Chart) xLabels(width int) string {
	row := strings.Builder{}
	free, used, room := 0, 0, width
	n := max(width/16, 2)
	if c.X.Categories != nil {
		n = max(width/6, 2)
	}
	ticks := c.X.labelled(&c.xs, n)
	if c.X.Categories != nil {
		room = max(width/len(ticks)-1, 1)
	}
	for _, t := range ticks {
		text := runewidth.Truncate(t.text, room, "…")
		wide := runewidth.StringWidth(text)
		at := round(c.xs.share(t.at)*float64(width-1)) - wide/2
		at = max(min(at, width-wide), 0)
		if at >= free && at+wide <= width {
			row.WriteString(strings.Repeat(" ", at-used) + text)
			used = at + wide
			free = used + 2
			if c.X.Categories != nil {
				free--
			}
		}
	}
	return row.String()
}

// markRow has a letter for each column in which something happened; the later
// kinds win.
func (c *Chart) markRow(width int) string {
	row := []byte(strings.Repeat(" ", width))
	for _, k := range c.Kinds {
		for _, m := range c.Marks {
			at := round(c.xs.share(m.X) * float64(width-1))
			if m.Letter == k.Letter && at >= 0 && at < width {
				row[at] = m.Letter
			}
		}
	}
	return strings.TrimRight(string(row), " ")
}

func (c *Chart) legendLine(index int, colour bool) string {
	l := &c.Series[index]
	text := cli.Safe(l.Legend)
	switch {
	case c.Letters && len(c.Series) == 1:
	case c.Letters:
		text = string(letterOf(index)) + " " + text
	case l.Glyph != 0:
		text = string(l.Glyph) + " " + text
	default:
		text = []string{"─ ", "⠂ ", "█ "}[l.Style] + text
	}
	switch {
	case !colour:
		return text
	case l.Faint:
		return fmt.Sprintf("\x1b[2;%dm%s\x1b[0m", colourOf(l.Colour), text)
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colourOf(l.Colour), text)
}
