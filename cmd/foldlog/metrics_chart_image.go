package main

import (
	"image/color"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/cli"
)

// canvas is a picture that charts are drawn on, in pixels from the top left.
type canvas interface {
	// polyline joins points with a line of a width.
	polyline(points []pixel, width float64, c color.RGBA)
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

	imageColours = []color.RGBA{
		{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff},
		{0xcc, 0x79, 0xa7, 0xff}, {0x56, 0xb4, 0xe9, 0xff}, {0xe6, 0x9f, 0x00, 0xff},
	}
)

// Sizes of pictures in pixels.
const (
	textSize   = 13.0
	titleSize  = 15.0
	lineHeight = 18.0
	leftRoom   = 76.0
	rightRoom  = 24.0
	topRoom    = 44.0
)

// picture is one chart's place on a canvas.
type picture struct {
	canvas
	*chart
	left, top, right, bottom float64 // of the plot
}

// drawCharts draws charts under one another, each in a width and height.
func drawCharts(on canvas, charts []*chart, width, height int) {
	for i, c := range charts {
		top := float64(i * height)
		below := lineHeight*float64(1+len(c.lines)+len(c.notes())) + 10
		p := picture{on, c, leftRoom, top + topRoom, max(float64(width)-rightRoom, leftRoom+20), 0}
		p.bottom = max(top+float64(height)-below, p.top+20)
		p.draw()
	}
}

func (p *picture) draw() {
	p.text(p.left, p.top-20, anchorStart, titleSize, inkColour, cli.Safe(p.title))
	p.axes()
	p.drawMarks()
	for i := range p.lines {
		p.line(i)
	}
	y := p.bottom + 2*lineHeight
	for i := range p.lines {
		p.polyline([]pixel{{p.left, y - 4}, {p.left + 18, y - 4}}, 2, imageColour(i))
		p.text(p.left+24, y, anchorStart, textSize, inkColour, cli.Safe(p.lines[i].legend()))
		y += lineHeight
	}
	for _, note := range p.notes() {
		p.text(p.left, y, anchorStart, textSize, markColour, note)
		y += lineHeight
	}
}

// drawMarks draws a line for each column of pixels in which something happened,
// and its letters where there is room for them.
func (p *picture) drawMarks() {
	letters := map[int]string{}
	for _, k := range markLetters {
		for _, m := range p.marks {
			x := int(math.Round(p.x(m.x)))
			if m.letter == k.letter && x >= int(p.left) && x <= int(p.right) && !strings.Contains(letters[x], string(k.letter)) {
				letters[x] += string(k.letter)
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

func imageColour(line int) color.RGBA { return imageColours[line%len(imageColours)] }

// faded is the colour of an older copy.
func faded(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((int(v) + 2*255) / 3) }
	return color.RGBA{mix(c.R), mix(c.G), mix(c.B), 255}
}

func (p *picture) x(v float64) float64 { return p.left + p.xs.share(v)*(p.right-p.left) }
func (p *picture) y(v float64) float64 { return p.bottom - p.ys.share(v)*(p.bottom-p.top) }

func (p *picture) axes() {
	for _, v := range p.ys.ticks(int((p.bottom - p.top) / 50)) {
		y := p.y(v)
		p.polyline([]pixel{{p.left, y}, {p.right, y}}, 1, gridColour)
		p.text(p.left-8, y+4, anchorEnd, textSize, inkColour, tickText(v))
	}
	for _, v := range p.xs.ticks(int((p.right - p.left) / 110)) {
		p.polyline([]pixel{{p.x(v), p.bottom}, {p.x(v), p.bottom + 5}}, 1, inkColour)
		p.text(p.x(v), p.bottom+lineHeight, anchorMiddle, textSize, inkColour, p.xText(v))
	}
	p.polyline([]pixel{{p.left, p.top}, {p.left, p.bottom}, {p.right, p.bottom}}, 1, inkColour)
}

// line draws the older copies first, so that the newest is on top.
func (p *picture) line(index int) {
	l, c := &p.lines[index], imageColour(index)
	for _, older := range []bool{true, false} {
		ink := c
		if older {
			ink = faded(c)
		}
		var run []pixel
		end := func() {
			if len(run) > 0 {
				p.polyline(run, 1.8, ink)
			}
			run = nil
		}
		for i := range l.x {
			if l.older[i] != older || !finite(l.y[i]) || p.log && l.y[i] <= 0 {
				end()
				continue
			}
			run = append(run, pixel{p.x(l.x[i]), p.y(l.y[i])})
		}
		end()
	}
	for i := range l.x {
		if !finite(l.y[i]) {
			p.cross(p.x(l.x[i]), p.bottom-6, c)
		}
	}
}

// cross marks a value that is not finite.
func (p *picture) cross(x, y float64, c color.RGBA) {
	const arm = 3.5
	p.polyline([]pixel{{x - arm, y - arm}, {x + arm, y + arm}}, 1.4, c)
	p.polyline([]pixel{{x - arm, y + arm}, {x + arm, y - arm}}, 1.4, c)
}
