package chart

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
)

// svgCanvas writes a picture as it is drawn. The writer keeps its first error.
type svgCanvas struct{ w *bufio.Writer }

// SVG draws charts as SVG 1.1. The error is one of w.
func SVG(w io.Writer, charts []*Chart, l Layout) error {
	out := bufio.NewWriter(w)
	width, all := l.size(len(charts))
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n", width, all, width, all)
	fmt.Fprintf(out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, all)
	l.draw(svgCanvas{out}, charts)
	fmt.Fprintln(out, "</svg>")
	return out.Flush()
}

func (s svgCanvas) polyline(points []pixel, width float64, c color.RGBA) {
	if len(points) == 1 {
		points = []pixel{points[0], points[0]} // a dot needs both its ends
	}
	fmt.Fprintf(s.w, `<polyline fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="round" stroke-linecap="round" points="`, hex(c), width)
	for i, p := range points {
		if i > 0 {
			s.w.WriteByte(' ')
		}
		fmt.Fprintf(s.w, "%.2f,%.2f", p.x, p.y)
	}
	s.w.WriteString("\"/>\n")
}

// dots are strokes of no length with round ends, all in one path.
func (s svgCanvas) dots(points []pixel, diameter float64, c color.RGBA) {
	fmt.Fprintf(s.w, `<path fill="none" stroke="%s" stroke-width="%g" stroke-linecap="round" d="`, hex(c), diameter)
	for _, p := range points {
		fmt.Fprintf(s.w, "M%.1f,%.1fh0", p.x, p.y)
	}
	s.w.WriteString("\"/>\n")
}

func (s svgCanvas) box(from, to pixel, c color.RGBA) {
	fmt.Fprintf(s.w, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"/>`+"\n", from.x, from.y, to.x-from.x, to.y-from.y, hex(c))
}

func (s svgCanvas) text(x, y float64, a anchor, size float64, c color.RGBA, text string) {
	fmt.Fprintf(s.w, `<text x="%.2f" y="%.2f" font-size="%g" fill="%s" text-anchor="%s">`, x, y, size, hex(c), [...]string{"start", "middle", "end"}[a])
	xml.EscapeText(s.w, []byte(text))
	s.w.WriteString("</text>\n")
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
