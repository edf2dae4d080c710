package metricscmd

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
)

// pointRow is one row of an export: the columns of both formats.
type pointRow struct {
	Run     string `parquet:"run,dict"` // the slug of the newest open before it
	Segment int32  `parquet:"segment"`  // which process, from 0
	Step    int64  `parquet:"step,delta"`
	TSMS    int64  `parquet:"ts_ms,delta"`
	Name    string `parquet:"name,dict"`
	// Value is the number; an integer beyond 2^53 is exact only in Integer,
	// which only integers have.
	Value    float64 `parquet:"value"`
	Integer  *int64  `parquet:"integer,optional"`
	Metadata string  `parquet:"metadata,dict"` // JSON

	spelled metrics.Number
}

var csvTitles = []string{"run", "segment", "step", "ts_ms", "name", "value", "metadata"}

func (a *app) exportCmd() *cobra.Command {
	var format, out string
	var names, where []string
	c := &cobra.Command{
		Use:   "export FILE|ROOT... [--format csv|parquet] [--out FILE] [--metric NAME]... [--where K=V]...",
		Short: "Export every point as CSV or Parquet",
		Long: `Export the metrics of streams with a row for each point, in the order of the
stream: run, segment (which process, from 0), step, ts_ms, name, value and
metadata (JSON). CSV has values as they are spelled, NaN, Infinity and -Infinity
for those that are not finite. Parquet has them as doubles, and integers once
more in the column integer.

The format is that of the name of --out, or else CSV. The file is replaced once
the export is complete, and left as it was otherwise.`,
		Example: "  foldlog metrics export run.jsonl --out points.parquet\n  foldlog metrics export run.jsonl --metric '*/loss' --where split=eval > loss.csv",
		Args:    cmdline.Operands("FILE..."),
	}
	c.Flags().StringVar(&format, "format", "", "the `FORMAT`, csv or parquet (default: parquet if --out ends in .parquet, else csv)")
	cmdline.OutFlag(c.Flags(), &out)
	c.Flags().StringArrayVar(&names, "metric", nil, "export metrics of this `NAME` only, in which * stands for any text")
	c.Flags().StringArrayVar(&where, "where", nil, "export points with this `K=V` in their metadata only")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"csv", "parquet"}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, args []string) error {
		write, err := a.exportFormat(format, out)
		if err != nil {
			return err
		}
		filter := pointFilter{name: nameFilter(names)}
		if filter.where, err = keyValues("where", where); err != nil {
			return err
		}
		paths, err := a.streams(c.Context(), "metrics export", args)
		if err != nil {
			return err
		}
		var points int64
		err = a.WriteOut(out, func(w io.Writer) error {
			return write(w, func(emit func(*pointRow) error) error {
				return a.eachPoint(c.Context(), paths, filter, func(row *pointRow) error {
					points++
					return emit(row)
				})
			})
		})
		if err == nil && out != "" {
			a.Notef("exported %s to %s", cli.Plural(points, "point"), out)
		}
		return advise(err)
	}
	return c
}

// pointSource hands every row to emit.
type pointSource func(emit func(*pointRow) error) error

// exportFormat picks the writer of a format.
func (a *app) exportFormat(format, out string) (func(io.Writer, pointSource) error, error) {
	if format == "" {
		var err error
		if format, err = cli.FormatOf(out, "csv", "parquet"); err != nil {
			return nil, err
		}
	}
	switch format {
	case "csv":
		return exportPointsCSV, nil
	case "parquet":
		if out == "" && a.IsTerminal(a.Stdout) {
			return nil, cli.Usagef("--format parquet: give --out FILE; a terminal cannot show it")
		}
		return exportPointsParquet, nil
	}
	return nil, cli.Usagef("--format %q: csv or parquet", format)
}

// pointFilter says which points are exported.
type pointFilter struct {
	name  func(string) bool
	where map[string]string
}

// eachPoint reads streams one after another. Bad lines are told and passed
// over.
func (a *app) eachPoint(ctx context.Context, paths []string, filter pointFilter, emit func(*pointRow) error) error {
	for _, path := range paths {
		if err := a.pointsOf(ctx, path, filter, emit); err != nil {
			return cli.Failed("metrics export", path, err)
		}
	}
	return nil
}

func (a *app) pointsOf(ctx context.Context, path string, filter pointFilter, emit func(*pointRow) error) error {
	w, at, err := a.StreamAt(ctx, path)
	if err != nil {
		return err
	}
	f, err := w.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	row := pointRow{Segment: -1}
	var bad metricsview.BadLines
	var emitErr error
	events := 0
	read := metrics.ReadStream(metricsview.Watched(ctx, f, nil), func(it *metrics.Item) {
		bad.See(it)
		if it.Kind != metrics.ItemEvent || emitErr != nil {
			return
		}
		events++
		if e := &it.Event; e.Kind == metrics.KindOpen {
			row.Segment++
			row.Run = e.Slug
		} else if e.Kind == metrics.KindMetric && filter.name(e.Name) && e.Metadata.Matches(filter.where) {
			row.set(e)
			emitErr = emit(&row)
		}
	})
	if err := errors.Join(emitErr, read); err != nil {
		return err
	}
	if err := bad.Err(); err != nil {
		a.Notef("%v", cli.Failed("passed over in", path, err))
	}
	if events == 0 {
		return errNoEvents
	}
	return nil
}

func (r *pointRow) set(e *metrics.Event) {
	r.Step, r.TSMS, r.Name, r.Value, r.spelled = e.Step, e.TSMS, e.Name, e.Value.Float64(), e.Value
	r.Segment = max(r.Segment, 0)
	r.Integer = nil
	if n, ok := e.Value.Int64(); ok {
		r.Integer = &n
	}
	if r.Metadata = string(e.Metadata); r.Metadata == "" {
		r.Metadata = "{}"
	}
}

func exportPointsCSV(w io.Writer, points pointSource) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvTitles); err != nil {
		return err
	}
	err := points(func(r *pointRow) error {
		return out.Write([]string{r.Run, strconv.Itoa(int(r.Segment)), strconv.FormatInt(r.Step, 10),
			strconv.FormatInt(r.TSMS, 10), r.Name, r.spelled.String(), r.Metadata})
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

// parquetBatch is how many rows are handed over at once.
const parquetBatch = 4096

// parquetGroup is how many rows a row group has: memory is bounded by it.
const parquetGroup = 1 << 20

func exportPointsParquet(w io.Writer, points pointSource) error {
	out := parquet.NewGenericWriter[pointRow](w, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(parquetGroup))
	batch := make([]pointRow, 0, parquetBatch)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	err := points(func(r *pointRow) error {
		if batch = append(batch, *r); len(batch) < parquetBatch {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}
