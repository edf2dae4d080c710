package main

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
)

// svgCanvas writes a picture as it is drawn. The writer keeps its first error.
type svgCanvas struct{ w *bufio.Writer }

// writeSVG draws charts as SVG 1.1.
func writeSVG(w io.Writer, charts []*chart, width, height int) error {
	out := bufio.NewWriter(w)
	all := height * len(charts)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif">`+"\n", width, all, width, all)
	fmt.Fprintf(out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, all)
	drawCharts(svgCanvas{out}, charts, width, height)
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

func (s svgCanvas) text(x, y float64, a anchor, size float64, c color.RGBA, text string) {
	fmt.Fprintf(s.w, `<text x="%.2f" y="%.2f" font-size="%g" fill="%s" text-anchor="%s">`, x, y, size, hex(c), [...]string{"start", "middle", "end"}[a])
	xml.EscapeText(s.w, []byte(text))
	s.w.WriteString("</text>\n")
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
