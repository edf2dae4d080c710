package studycmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/chart"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyplot"
	"github.com/foldlog/foldlog/study"
)

// plotFlags is the command line of study plot.
type plotFlags struct {
	studyplot.Options
	asJSON bool
	cmdline.Picture
}

func (a *app) plotCmd() *cobra.Command {
	var flags plotFlags
	c := &cobra.Command{
		Use:   "plot KIND PATH [--param NAME]... [--objective NAME] [--log] [--out FILE.png|FILE.svg] [--json]",
		Short: "Draw a study in the terminal, or as a PNG or SVG picture",
		Long:  "Draw a study. KIND is one of\n\n" + kindList() + plotLong,
		Example: "  foldlog study plot history search.atj\n  foldlog study plot slice search.atj --param lr --param layers\n" +
			"  foldlog study plot parallel search.atj --out search.svg",
		Args: func(c *cobra.Command, args []string) error {
			err := cmdline.Operands("KIND", "PATH")(c, args)
			if len(args) == 1 {
				return cli.WithHint(err, "KIND comes first: foldlog study plot history PATH; there are "+strings.Join(kindNames(), ", "))
			}
			return err
		},
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
	flags.Picture.Flags(f)
	f.BoolVar(&flags.asJSON, "json", false, "print what would be drawn as one JSON object")
	c.ValidArgsFunction = completePlot
	c.RunE = func(c *cobra.Command, args []string) error {
		kind, err := flags.check(args[0])
		if err != nil {
			return err
		}
		return cli.Failed("study plot", args[1], a.readStudy(c.Context(), args[1], name, func(snap *study.Snapshot, st *study.Study) error {
			p, err := studyplot.New(kind, snap, st, flags.Options)
			if err != nil {
				return err
			}
			return a.plotStudy(p, &flags)
		}))
	}
	return c
}

const plotLong = `
Completed trials have values; pruned, failed and running ones are in intermediate
and timeline alone. Where there are more trials than a picture can show, a sample
is drawn that has the best of them, and a note says so. Each objective has a
chart of its own, unless --objective names one. The colours of slice are darker
for later trials, those of parallel for better ones.`

func kindNames() (names []string) {
	for _, k := range studyplot.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

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

func (f *plotFlags) check(name string) (studyplot.Kind, error) {
	kind, err := studyplot.KindOf(name)
	if err != nil {
		return kind, err
	}
	f.Terminal = f.Out == "" && !f.asJSON
	switch {
	case f.Most < 0:
		return kind, cli.Usagef("--most must not be negative")
	case f.asJSON && f.Out != "":
		return kind, cli.Usagef("--json and --out exclude each other")
	}
	return kind, f.Check()
}

// plotStudy shows a plot as asked.
func (a *app) plotStudy(p *studyplot.Plot, f *plotFlags) error {
	if f.asJSON {
		return cli.WriteJSON(a.Out(), p.View())
	}
	charts := p.Scaled()
	layout := chart.Layout{Width: 960, Height: p.Pixels(), Columns: p.Columns}
	return f.Draw(a.Env, charts, layout, func(width, height int) (int, int) {
		if width == 0 {
			return 80, 14
		}
		return width, max(min(2*height, height/min(len(charts), 2)-chart.Extra-1), 5)
	})
}
