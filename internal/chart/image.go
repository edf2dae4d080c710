package chart

import (
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/foldlog/foldlog/internal/cli"
)

// canvas is a picture that charts are drawn on, in pixels from the top left.
type canvas interface {
	// polyline joins points with a line of a width.
	polyline(points []pixel, width float64, c color.RGBA)
	// dots sets dots of a diameter.
	dots(points []pixel, diameter float64, c color.RGBA)
	// box fills a rectangle between two corners.
	box(from, to pixel, c color.RGBA)
	// text writes one line, its baseline at y.
	text(x, y float64, anchor anchor, size float64, c color.RGBA, s string)
}

// pixel is a place on a canvas.
type pixel struct{ x, y float64 }

// anchor is which end of a text stands at its place.
type anchor int

const (
	anchorStart anchor = iota
	anchorMiddle
	anchorEnd
)

// The colours of pictures, which have a white background. Lines follow Okabe
// and Ito, whose colours most colour-blind people can tell apart.
var (
	inkColour  = color.RGBA{0x33, 0x33, 0x33, 0xff}
	gridColour = color.RGBA{0xe4, 0xe4, 0xe4, 0xff}
	markColour = color.RGBA{0x8a, 0x8a, 0x8a, 0xff}
	paleColour = color.RGBA{0xc6, 0xdb, 0xef, 0xff}
	deepColour = color.RGBA{0x08, 0x30, 0x6b, 0xff}

	imageColours = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
	}
)

// Sizes of pictures in pixels.
const (
	textSize   = 13.0
	noteSize   = 12.0
	titleSize  = 15.0
	lineHeight = 18.0
	leftRoom   = 76.0
	rightRoom  = 24.0
	topRoom    = 44.0
	glyphWidth = 0.6 // of a character, in parts of the size
)

// Layout is how large pictures are.
type Layout struct {
	// Width of the whole and Height of each chart in pixels.
	Width, Height int
	// Columns is how many charts are beside one another; 0 is 1.
	Columns int
}

func (l Layout) columns() int { return max(l.Columns, 1) }

// size is that of a picture with n charts.
func (l Layout) size(n int) (width, height int) {
	return l.Width, l.Height * ((n + l.columns() - 1) / l.columns())
}

// picture is one chart's place on a canvas.
type picture struct {
	canvas
	*Chart
	left, top, right, bottom float64 // of the plot
	edge, wide               float64 // left of the whole, and its width
}

// draw draws charts in rows from the top left.
func (l Layout) draw(on canvas, charts []*Chart) {
	wide := float64(l.Width) / float64(l.columns())
	for i, c := range charts {
		x, top := wide*float64(i%l.columns()), float64(i/l.columns()*l.Height)
		p := picture{canvas: on, Chart: c, left: x + c.leftRoom(wide), top: top + topRoom, edge: x, wide: wide}
		p.right = max(x+wide-c.rightRoom(), p.left+20)
		row := i / l.columns() * l.columns()
		p.bottom = max(top+float64(l.Height)-below(charts[row:min(row+l.columns(), len(charts))], wide), p.top+20)
		p.draw()
	}
}

// below is the room beneath the plots of a row, which end at one height.
func below(row []*Chart, wide float64) (room float64) {
	for _, c := range row {
		room = max(room, c.below(wide))
	}
	return room
}

// below is the room beneath the plot.
func (c *Chart) below(wide float64) float64 {
	lines := 1 + len(c.legends()) + len(c.noteLines(wide))
	if c.X.Label != "" {
		lines++
	}
	return lineHeight*float64(lines) + 10
}

// leftRoom has room for the names of categories, up to a third of the width.
func (c *Chart) leftRoom(wide float64) float64 {
	room := leftRoom
	for _, name := range c.Y.Categories {
		room = max(room, textWidth(cli.Safe(name), textSize)+16)
	}
	if c.Columns != nil {
		room = max(room, textWidth(cli.Safe(c.Columns[0].Label), textSize)/2+8)
	}
	return min(room, max(wide/3, leftRoom))
}

func (c *Chart) rightRoom() float64 {
	room := rightRoom
	if n := len(c.Columns); n > 0 {
		last := c.Columns[n-1]
		room = max(room, textWidth(cli.Safe(last.Label), textSize)/2+8)
		for _, t := range last.Ticks {
			room = max(room, textWidth(cli.Safe(t.Text), textSize-2)+14)
		}
	}
	return min(room, 140)
}

// wordsFrom is where words begin, from the left of the whole.
func (c *Chart) wordsFrom(wide float64) float64 {
	if c.Y.Categories != nil || c.Columns != nil {
		return rightRoom
	}
	return c.leftRoom(wide)
}

// noteLines are the notes in lines that fit.
func (c *Chart) noteLines(wide float64) (lines []string) {
	room := wide - c.wordsFrom(wide) - 4
	for _, note := range c.notes() {
		line := ""
		for _, word := range strings.Fields(note) {
			if line != "" && textWidth(line+" "+word, noteSize) > room {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + fit(word, noteSize, room))
		}
		lines = append(lines, line)
	}
	return lines
}

// textWidth is about how wide a text is.
func textWidth(s string, size float64) float64 {
	return float64(runewidth.StringWidth(s)) * size * glyphWidth
}

// fit cuts a text to a width.
func fit(s string, size, width float64) string {
	return runewidth.Truncate(s, max(int(width/size/glyphWidth), 1), "…")
}

func (p *picture) draw() {
	x := p.edge + p.wordsFrom(p.wide)
	p.text(x, p.top-20, anchorStart, titleSize, inkColour, fit(cli.Safe(p.Title), titleSize, p.right-x))
	if p.Columns == nil {
		p.axes()
	}
	p.drawMarks()
	for i := range p.Series {
		p.series(&p.Series[i])
	}
	p.columns()
	p.words()
}

// words writes the label, the legend and the notes.
func (p *picture) words() {
	y := p.bottom + 2*lineHeight
	if p.X.Label != "" {
		p.text((p.left+p.right)/2, y-2, anchorMiddle, textSize, inkColour, cli.Safe(p.X.Label))
		y += lineHeight
	}
	x := p.edge + p.wordsFrom(p.wide)
	for _, i := range p.legends() {
		s := &p.Series[i]
		switch s.Style {
		case Dots:
			p.dots([]pixel{{x + 9, y - 4}}, s.size(), s.ink(false))
		case Spans:
			p.box(pixel{x, y - 9}, pixel{x + 18, y}, s.ink(false))
		default:
			p.polyline([]pixel{{x, y - 4}, {x + 18, y - 4}}, 2, s.ink(false))
		}
		p.text(x+24, y, anchorStart, textSize, inkColour, cli.Safe(s.Legend))
		y += lineHeight
	}
	for _, line := range p.noteLines(p.wide) {
		p.text(x, y, anchorStart, noteSize, markColour, line)
		y += lineHeight
	}
}

// drawMarks draws a line for each column of pixels in which something happened,
// and its letters where there is room for them.
func (p *picture) drawMarks() {
	letters := map[int]string{}
	for _, k := range p.Kinds {
		for _, m := range p.Marks {
			x := int(math.Round(p.x(m.X)))
			if m.Letter == k.Letter && x >= int(p.left) && x <= int(p.right) && !strings.Contains(letters[x], string(k.Letter)) {
				letters[x] += string(k.Letter)
			}
		}
	}
	free := 0.0
	for _, column := range slices.Sorted(maps.Keys(letters)) {
		x, text := float64(column), letters[column]
		p.polyline([]pixel{{x, p.top}, {x, p.bottom}}, 1, markColour)
		if wide := float64(len(text)) * textSize / 2; x-wide/2 > free {
			p.text(x, p.top-4, anchorMiddle, textSize-2, markColour, text)
			free = x + wide
		}
	}
}

// ink is the colour of a series, of its older points if that is asked.
func (s *Series) ink(older bool) color.RGBA {
	c := imageColours[s.Colour%len(imageColours)]
	if s.Shade > 0 {
		c = mixed(paleColour, deepColour, min(s.Shade, 1))
	}
	switch white := (color.RGBA{0xff, 0xff, 0xff, 0xff}); {
	case s.Faint && s.Style == Dots: // which are too small to be as pale as lines
		return mixed(c, white, 0.45)
	case older || s.Faint:
		return mixed(c, white, 2.0/3)
	}
	return c
}

// mixed is a colour between two others.
func mixed(a, b color.RGBA, part float64) color.RGBA {
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (float64(b)-float64(a))*part + 1e-9) }
	return color.RGBA{mix(a.R, b.R), mix(a.G, b.G), mix(a.B, b.B), 255}
}

// width is that of a line.
func (s *Series) width() float64 {
	if s.Faint || s.Shade > 0 {
		return 1.1
	}
	return 1.8
}

func (s *Series) size() float64 {
	if s.Size > 0 {
		return s.Size
	}
	return 4
}

func (p *picture) x(v float64) float64 { return p.left + p.xs.share(v)*(p.right-p.left) }
func (p *picture) y(v float64) float64 { return p.bottom - p.ys.share(v)*(p.bottom-p.top) }

func (p *picture) axes() {
	rows := int((p.bottom - p.top) / 50)
	if p.Y.Categories != nil {
		rows = int((p.bottom - p.top) / (textSize + 1))
	}
	for _, t := range p.Y.labelled(&p.ys, rows) {
		y := p.y(t.at)
		if p.Y.Categories == nil {
			p.polyline([]pixel{{p.left, y}, {p.right, y}}, 1, gridColour)
		}
		p.text(p.left-8, y+4, anchorEnd, textSize, inkColour, fit(t.text, textSize, p.left-p.edge-8))
	}
	for _, t := range p.xTicks() {
		x := p.x(t.at)
		p.polyline([]pixel{{x, p.bottom}, {x, p.bottom + 5}}, 1, inkColour)
		p.text(x, p.bottom+lineHeight, anchorMiddle, textSize, inkColour, t.text)
	}
	p.polyline([]pixel{{p.left, p.top}, {p.left, p.bottom}, {p.right, p.bottom}}, 1, inkColour)
}

// xTicks are the ticks of the horizontal axis. Names of categories are cut, and
// where they are many, some are left out.
func (p *picture) xTicks() []tick {
	wide := p.right - p.left
	if p.X.Categories == nil {
		ticks, free := p.X.labelled(&p.xs, int(wide/110)), math.Inf(-1)
		return slices.DeleteFunc(ticks, func(t tick) bool {
			x, half := p.x(t.at), textWidth(t.text, textSize)/2
			if p.X.Fine && x-half < free {
				return true
			}
			free = x + half + 8
			return false
		})
	}
	ticks := p.X.labelled(&p.xs, int(wide/40))
	for i := range ticks {
		ticks[i].text = fit(ticks[i].text, textSize, wide/float64(len(ticks))-6)
	}
	return ticks
}

// columns draws the axes of parallel coordinates, over the lines.
func (p *picture) columns() {
	wide := (p.right - p.left) / max(float64(len(p.Columns)-1), 1)
	for i, c := range p.Columns {
		x := p.x(float64(i))
		p.polyline([]pixel{{x, p.top}, {x, p.bottom}}, 1, inkColour)
		p.text(x, p.bottom+lineHeight, anchorMiddle, textSize, inkColour, fit(cli.Safe(c.Label), textSize, wide-6))
		free := math.Inf(1)
		for _, t := range c.Ticks {
			if y := p.y(t.At); y < free {
				p.polyline([]pixel{{x, y}, {x + 4, y}}, 1, inkColour)
				text := fit(cli.Safe(t.Text), textSize-2, max(wide-10, 20))
				p.box(pixel{x + 5, y - 7}, pixel{x + 7 + textWidth(text, textSize-2), y + 6}, color.RGBA{0xff, 0xff, 0xff, 0xff})
				p.text(x+6, y+4, anchorStart, textSize-2, inkColour, text)
				free = y - textSize + 1
			}
		}
	}
}

func (p *picture) series(s *Series) {
	switch s.Style {
	case Dots:
		p.drawDots(s)
	case Spans:
		p.drawSpans(s)
	default:
		p.line(s)
	}
	for i := range s.X {
		if !finite(s.Y[i]) && p.xs.shows(s.X[i]) {
			p.cross(p.x(s.X[i]), p.bottom-6, s.ink(false))
		}
	}
}

func (p *picture) drawDots(s *Series) {
	var at []pixel
	for i := range s.X {
		if p.shows(s.X[i], s.Y[i]) {
			at = append(at, pixel{p.x(s.X[i]), p.y(s.Y[i])})
		}
	}
	if len(at) > 0 {
		p.dots(at, s.size(), s.ink(false))
	}
}

// drawSpans draws bars of two thirds of a row, one pixel long at least.
func (p *picture) drawSpans(s *Series) {
	half := (p.bottom - p.top) / max(p.ys.hi-p.ys.lo, 1) / 3
	for i := range s.X {
		if !p.shows(s.X[i], s.Y[i]) {
			continue
		}
		from, to, y := p.x(s.X[i]), p.x(s.End[i]), p.y(s.Y[i])
		p.box(pixel{from, y - half}, pixel{max(to, from+1), y + half}, s.ink(false))
		if s.Texts != nil {
			p.text(to+6, y+4, anchorStart, textSize, inkColour, cli.Safe(s.Texts[i]))
		}
	}
}

// line draws the older copies first, so that the newest is on top.
func (p *picture) line(s *Series) {
	for _, older := range []bool{true, false} {
		var run []pixel
		end := func() {
			if len(run) > 0 {
				p.polyline(run, s.width(), s.ink(older))
			}
			run = nil
		}
		for i := range s.X {
			if s.older(i) != older || !p.shows(s.X[i], s.Y[i]) {
				end()
				continue
			}
			run = append(run, pixel{p.x(s.X[i]), p.y(s.Y[i])})
		}
		end()
	}
}

// cross marks a value that is not finite.
func (p *picture) cross(x, y float64, c color.RGBA) {
	const arm = 3.5
	p.polyline([]pixel{{x - arm, y - arm}, {x + arm, y + arm}}, 1.4, c)
	p.polyline([]pixel{{x - arm, y + arm}, {x + arm, y - arm}}, 1.4, c)
}
