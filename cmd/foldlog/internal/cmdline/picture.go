package cmdline

import (
	"cmp"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
)

// Picture is where charts are drawn and how large: --out, --width and --height.
type Picture struct {
	Out           string // a file, "" for the terminal
	Width, Height int    // 0 for what fits
}

// Flags adds the flags.
func (p *Picture) Flags(f *pflag.FlagSet) {
	f.StringVar(&p.Out, "out", "", "write a picture to this `FILE`, .png or .svg")
	f.IntVar(&p.Width, "width", 0, "draw `N` characters wide, a picture N pixels")
	f.IntVar(&p.Height, "height", 0, "draw each chart `N` lines high, a picture N pixels")
}

// Check refuses sizes that cannot be drawn and names of no picture.
func (p *Picture) Check() error {
	_, err := p.image()
	switch {
	case p.Width < 0 || p.Height < 0:
		return cli.Usagef("--width and --height must not be negative")
	case max(p.Width, p.Height) > 20_000:
		return cli.Usagef("--width and --height go up to 20000")
	}
	return err
}

// image is what draws the file, nil for the terminal.
func (p *Picture) image() (func(io.Writer, []*chart.Chart, chart.Layout) error, error) {
	switch strings.ToLower(filepath.Ext(p.Out)) {
	case ".png":
		return chart.PNG, nil
	case ".svg":
		return chart.SVG, nil
	}
	if p.Out != "" {
		return nil, cli.Usagef("--out %q: its name must end in .png or .svg", p.Out)
	}
	return nil, nil
}

// Draw draws charts into the file, where the usual layout has what the flags do not say,
// or prints them (see Text).
func (p *Picture) Draw(env *cli.Env, charts []*chart.Chart, usual chart.Layout, fit func(width, height int) (int, int)) error {
	image, err := p.image()
	if err != nil {
		return err
	}
	return env.WriteOut(p.Out, func(w io.Writer) error {
		if image == nil {
			_, err := io.WriteString(w, p.Text(env, charts, fit))
			return err
		}
		usual.Width, usual.Height = cmp.Or(p.Width, usual.Width), cmp.Or(p.Height, usual.Height)
		return image(w, charts, usual)
	})
}

// Text is the charts as text. Fit is the width and height of each that fits a terminal of
// a size, of 0 by 0 if the output is none.
func (p *Picture) Text(env *cli.Env, charts []*chart.Chart, fit func(width, height int) (int, int)) string {
	width, height := fit(env.TerminalSize())
	width, height = max(cmp.Or(p.Width, width), 20), max(cmp.Or(p.Height, height), 3)
	var b strings.Builder
	for i, c := range charts {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.Terminal(width, height, env.Color()))
	}
	return b.String()
}
