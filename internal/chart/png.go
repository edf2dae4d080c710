package chart

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// pngCanvas draws into pixels with smooth edges.
type pngCanvas struct {
	img    *image.RGBA
	raster *vector.Rasterizer
	font   *opentype.Font
	faces  map[float64]font.Face
}

// PNG draws charts as PNG. The error is one of w.
func PNG(w io.Writer, charts []*Chart, l Layout) error {
	typeface, err := opentype.Parse(goregular.TTF)
	if err != nil {
		return fmt.Errorf("read font: %w", err)
	}
	width, height := l.size(len(charts))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.White, image.Point{}, draw.Src)
	c := &pngCanvas{img, vector.NewRasterizer(0, 0), typeface, map[float64]font.Face{}}
	l.draw(c, charts)
	return png.Encode(w, img)
}

// polyline fills a strip for each stretch and a disc at each joint. All turn
// the same way, so that where they overlap they do not cancel each other.
func (c *pngCanvas) polyline(points []pixel, width float64, ink color.RGBA) {
	box := boxOf(points, width).Intersect(c.img.Bounds())
	if box.Empty() {
		return
	}
	c.raster.Reset(box.Dx(), box.Dy())
	at := func(x, y float64) (float32, float32) {
		return float32(x - float64(box.Min.X)), float32(y - float64(box.Min.Y))
	}
	half := width / 2
	for i, p := range points {
		c.disc(p, half, at)
		if i > 0 {
			c.strip(points[i-1], p, half, at)
		}
	}
	c.raster.Draw(c.img, box, image.NewUniform(ink), image.Point{})
}

func boxOf(points []pixel, width float64) image.Rectangle {
	lo, hi := pixel{math.Inf(1), math.Inf(1)}, pixel{math.Inf(-1), math.Inf(-1)}
	for _, p := range points {
		lo = pixel{min(lo.x, p.x), min(lo.y, p.y)}
		hi = pixel{max(hi.x, p.x), max(hi.y, p.y)}
	}
	return image.Rect(int(lo.x-width)-1, int(lo.y-width)-1, int(hi.x+width)+2, int(hi.y+width)+2)
}

func (c *pngCanvas) strip(p, q pixel, half float64, at func(x, y float64) (float32, float32)) {
	dx, dy := q.x-p.x, q.y-p.y
	length := math.Hypot(dx, dy)
	if length == 0 {
		return
	}
	nx, ny := -dy/length*half, dx/length*half
	c.raster.MoveTo(at(p.x+nx, p.y+ny))
	c.raster.LineTo(at(p.x-nx, p.y-ny))
	c.raster.LineTo(at(q.x-nx, q.y-ny))
	c.raster.LineTo(at(q.x+nx, q.y+ny))
	c.raster.ClosePath()
}

// disc is an octagon, which is round enough at the width of a line.
func (c *pngCanvas) disc(p pixel, half float64, at func(x, y float64) (float32, float32)) {
	for i := range 8 {
		sin, cos := math.Sincos(math.Pi / 4 * float64(i))
		if i == 0 {
			c.raster.MoveTo(at(p.x+half*cos, p.y+half*sin))
		} else {
			c.raster.LineTo(at(p.x+half*cos, p.y+half*sin))
		}
	}
	c.raster.ClosePath()
}

func (c *pngCanvas) dots(points []pixel, diameter float64, ink color.RGBA) {
	for i := range points {
		c.polyline(points[i:i+1], diameter, ink)
	}
}

func (c *pngCanvas) box(from, to pixel, ink color.RGBA) {
	box := boxOf([]pixel{from, to}, 0).Intersect(c.img.Bounds())
	if box.Empty() {
		return
	}
	c.raster.Reset(box.Dx(), box.Dy())
	at := func(x, y float64) (float32, float32) {
		return float32(x - float64(box.Min.X)), float32(y - float64(box.Min.Y))
	}
	c.raster.MoveTo(at(from.x, from.y))
	c.raster.LineTo(at(to.x, from.y))
	c.raster.LineTo(at(to.x, to.y))
	c.raster.LineTo(at(from.x, to.y))
	c.raster.ClosePath()
	c.raster.Draw(c.img, box, image.NewUniform(ink), image.Point{})
}

func (c *pngCanvas) text(x, y float64, a anchor, size float64, ink color.RGBA, s string) {
	face := c.face(size)
	if face == nil {
		return
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(ink), Face: face}
	wide := float64(d.MeasureString(s)) / 64
	switch a {
	case anchorMiddle:
		x -= wide / 2
	case anchorEnd:
		x -= wide
	}
	d.Dot = fixed.Point26_6{X: fixed.Int26_6(x * 64), Y: fixed.Int26_6(y * 64)}
	d.DrawString(s)
}

// face is the font at a size in pixels, nil if it has none.
func (c *pngCanvas) face(size float64) font.Face {
	if face, ok := c.faces[size]; ok {
		return face
	}
	face, err := opentype.NewFace(c.font, &opentype.FaceOptions{Size: size, DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		face = nil
	}
	c.faces[size] = face
	return face
}
