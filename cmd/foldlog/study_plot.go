package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyplot"
	"github.com/foldlog/foldlog/study"
)

// studyPlotFlags is the command line of study plot.
type studyPlotFlags struct {
	studyplot.Options
	asJSON        bool
	out           string
	width, height int
}

func (a *app) studyPlotCmd() *cobra.Command {
	var flags studyPlotFlags
	c := &cobra.Command{
		Use:   "plot KIND PATH [--param NAME]... [--objective NAME] [--log] [--out FILE.png|FILE.svg] [--json]",
		Short: "Draw a study in the terminal, or as a PNG or SVG picture",
		Long:  "Draw a study. KIND is one of\n\n" + kindList() + studyPlotLong,
		Example: "  foldlog study plot history search.atj\n  foldlog study plot slice search.atj --param lr --param layers\n" +
			"  foldlog study plot parallel search.atj --out search.svg",
		Args: operands("KIND", "PATH"),
	}
	var name string
	c.Flags().StringVar(&name, "study", "", "the `NAME` of the study, where the journal holds several")
	c.RegisterFlagCompletionFunc("study", func(c *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		return completeStudies(c, args[min(1, len(args)):], text)
	})
	objectiveFlag(c, &flags.Objective, 1)
	importanceFlags(c, &flags.ImportanceOptions)
	f := c.Flags()
	f.StringArrayVar(&flags.Params, "param", nil, "draw the parameter of this `NAME`; again for each further one (slice, parallel)")
	f.BoolVar(&flags.Log, "log", false, "a logarithmic axis for the values")
	f.IntVar(&flags.Most, "most", 0, "draw `N` trials at most (0: thousands of dots, hundreds of lines)")
	f.StringVar(&flags.out, "out", "", "write a picture to this `FILE`, .png or .svg")
	f.IntVar(&flags.width, "width", 0, "width in characters, of a picture in pixels")
	f.IntVar(&flags.height, "height", 0, "height of each chart in lines, of a picture in pixels")
	f.BoolVar(&flags.asJSON, "json", false, "print what would be drawn as one JSON object")
	c.ValidArgsFunction = completePlot
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, image, err := flags.check(args[0])
		if err != nil {
			return err
		}
		return cli.Failed("study plot", args[1], a.readStudy(args[1], name, func(snap *study.Snapshot, st *study.Study) error {
			p, err := studyplot.New(kind, snap, st, &flags.Options)
			if err != nil {
				return err
			}
			return a.plotStudy(p, &flags, image)
		}))
	}
	return c
}

const studyPlotLong = `
Completed trials have values; pruned, failed and running ones are in intermediate
and timeline alone. Where there are more trials than a picture can show, a sample
is drawn that has the best of them, and a note says so. Each objective has a
chart of its own, unless --objective names one. The colours of slice are darker
for later trials, those of parallel for better ones.`

func kindList() string {
	var b strings.Builder
	for _, k := range studyplot.Kinds() {
		fmt.Fprintf(&b, "  %-13s %s\n", k.Name, k.Short)
	}
	return b.String()
}

// completePlot offers the kinds, and then a path.
func completePlot(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, k := range studyplot.Kinds() {
		names = append(names, k.Name+"\t"+k.Short)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// imageWriter draws charts as a picture.
type imageWriter func(io.Writer, []*chart.Chart, chart.Layout) error

func (f *studyPlotFlags) check(name string) (kind studyplot.Kind, image imageWriter, err error) {
	if kind, err = studyplot.KindOf(name); err != nil {
		return kind, nil, err
	}
	f.Terminal = f.out == "" && !f.asJSON
	switch {
	case f.width < 0 || f.height < 0 || f.Most < 0:
		return kind, nil, cli.Usagef("--width, --height and --most must not be negative")
	case max(f.width, f.height) > 20_000:
		return kind, nil, cli.Usagef("--width and --height go up to 20000")
	case f.asJSON && f.out != "":
		return kind, nil, cli.Usagef("--json and --out exclude each other")
	}
	image, err = imageOf(f.out)
	return kind, image, err
}

// imageOf is the writer for a name of a picture, nil for "".
func imageOf(out string) (imageWriter, error) {
	switch strings.ToLower(filepath.Ext(out)) {
	case ".png":
		return chart.PNG, nil
	case ".svg":
		return chart.SVG, nil
	}
	if out != "" {
		return nil, cli.Usagef("--out %q: its name must end in .png or .svg", out)
	}
	return nil, nil
}

// plotStudy shows a plot as asked.
func (a *app) plotStudy(p *studyplot.Plot, f *studyPlotFlags, image imageWriter) error {
	if f.asJSON {
		return cli.WriteJSON(a.Out(), p.View())
	}
	charts := p.Scaled()
	if image != nil {
		layout := chart.Layout{Width: orElse(f.width, 960), Height: orElse(f.height, p.Pixels()), Columns: p.Columns}
		return a.WriteOut(f.out, func(w io.Writer) error { return image(w, charts, layout) })
	}
	width, height := 80, 14
	if out, ok := a.Stdout.(interface{ Fd() uintptr }); ok && a.IsTerminal(a.Stdout) {
		if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
			width, height = w, max(min(2*height, h/min(len(charts), 2)-chart.Extra-1), 5)
		}
	}
	width, height = max(orElse(f.width, width), 20), max(orElse(f.height, height), 3)
	return cli.Buffered(a.Out(), func(w io.Writer) error {
		var b bytes.Buffer
		for i, c := range charts {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(c.Terminal(width, height, a.Color()))
		}
		_, err := w.Write(b.Bytes())
		return err
	})
}
