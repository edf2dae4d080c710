package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/metrics"
)

// importFlags is the command line of import.
type importFlags struct {
	slug, describe, out string
	meta                []string
	running, force      bool
	reading             valueReading
}

func (a *app) metricsImportCmd() *cobra.Command {
	var flags importFlags
	c := &cobra.Command{
		Use:   "import FILE|DIR... --slug SLUG [--out FILE] [--running] [--force]",
		Short: "Make a stream of TensorBoard event files or JSON lines",
		Long: `Make a metrics stream of TensorBoard event files, of which the scalars are
taken, or of JSON lines, whose numbers are taken as foldlog metrics record does.
Of a directory all event files under it are read: those of one directory are
processes of the run, one after another; several directories, as train and
validation, are told apart by the metadata "run".

The stream goes to standard output or to --out, and is the same each time, so
that foldlog metrics push completes a server with what is new. Its times are
those of the files, and its end is done, unless --running says that the run goes
on. Records that are damaged are passed over, told, and make the exit status 1;
a torn end is told.`,
		Example: "  foldlog metrics import runs/exp1 --slug exp1 --out exp1.jsonl\n  foldlog metrics import log.jsonl --slug exp2 --tag split > exp2.jsonl",
		Args:    operands("FILE..."),
	}
	f := c.Flags()
	f.StringVar(&flags.slug, "slug", "", "the `SLUG` that names the run")
	f.StringVar(&flags.out, "out", "", "write to this `FILE` and not to standard output")
	f.StringVar(&flags.describe, "describe", "", "one line of `TEXT` about the run")
	f.StringArrayVar(&flags.meta, "meta", nil, "a `K=V` of the run's identity; again for each further one")
	f.BoolVar(&flags.running, "running", false, "leave done away: the run goes on")
	f.BoolVar(&flags.force, "force", false, "replace --out even if it is another stream")
	flags.reading.addFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := metrics.CheckSlug(flags.slug); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--slug: %w", err)}
		}
		return advise(a.importRun(c.Context(), args, flags))
	}
	return c
}

// importer gathers the points of a run.
type importer struct {
	*app
	flags importFlags
	parts []importPart
	lost  int64 // records and lines that could not be read
	first error
	other int64 // values that are no scalars
}

// importPart is the points of one file.
type importPart struct {
	dir    string // that holds the file, as --out has it
	points []importPoint
}

// importPoint is one number.
type importPoint struct {
	ms, step int64
	name     string
	value    metrics.Number
	metadata metrics.Metadata
}

func (a *app) importRun(ctx context.Context, args []string, flags importFlags) error {
	meta, err := metaFlags(flags.meta)
	if err != nil {
		return err
	}
	files, err := importFiles(args)
	if err != nil {
		return err
	}
	im := &importer{app: a, flags: flags}
	for _, f := range files {
		if err := im.file(ctx, f); err != nil {
			return failed("metrics import", f.path, err)
		}
	}
	if im.other > 0 {
		a.Notef("%s left out: only scalars are imported", plural(im.other, "histogram, image or text"))
	}
	events, err := im.events(meta)
	if err != nil {
		return fmt.Errorf("metrics import: %w", err)
	}
	if err := im.write(events); err != nil {
		return err
	}
	a.Notef("imported %s from %s", plural(im.count(), "point"), plural(int64(len(files)), "file"))
	if im.lost > 0 {
		return fmt.Errorf("metrics import: %s could not be read, the first: %w", plural(im.lost, "record"), im.first)
	}
	return nil
}

func (im *importer) count() (n int64) {
	for _, p := range im.parts {
		n += int64(len(p.points))
	}
	return n
}

// importFile is a file and the directory of the run it belongs to.
type importFile struct{ path, run string }

// importFiles lists the operands' files, and of directories the event files
// under them in the order of their paths, which begin with a time.
func importFiles(args []string) (files []importFile, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, failed("metrics import", arg, err)
		}
		if !info.IsDir() {
			files = append(files, importFile{arg, "."})
			continue
		}
		before := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), "tfevents") {
				run, _ := filepath.Rel(arg, filepath.Dir(path)) // it is under arg
				files = append(files, importFile{path, filepath.ToSlash(run)})
			}
			return err
		})
		if err != nil {
			return nil, failed("metrics import", arg, err)
		}
		if len(files) == before {
			return nil, cli.WithHint(fmt.Errorf("metrics import %s: no TensorBoard event files under it", arg), "they have tfevents in their names")
		}
	}
	return files, nil
}

func (im *importer) file(ctx context.Context, file importFile) error {
	f, err := os.Open(file.path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(watched(ctx, f, nil), 256<<10)
	start, err := in.Peek(12)
	if err != nil && err != io.EOF {
		return err
	}
	part := importPart{dir: file.run}
	if isTFEvents(start) {
		err = im.tensorBoard(in, file.path, &part)
	} else {
		err = im.jsonLines(in, f, &part)
	}
	im.parts = append(im.parts, part)
	return err
}

func (im *importer) refuse(path string, err error) {
	err = failed("read", path, err)
	if im.lost++; im.lost == 1 {
		im.first = err
	}
	im.Notef("%v", err)
}

func (im *importer) tensorBoard(in io.Reader, path string, part *importPart) error {
	log, err := readTFEvents(in)
	if err != nil {
		return err
	}
	for _, bad := range log.bad {
		im.refuse(path, bad)
	}
	if log.torn != nil {
		im.Notef("%v", failed("read", path, log.torn))
	}
	im.other += log.others
	for _, s := range log.scalars {
		ms := math.Round(s.wallTime * 1000)
		if !(math.Abs(ms) < 1<<53) {
			ms = 0
		}
		part.points = append(part.points, importPoint{int64(ms), s.step, s.tag, s.value, ""})
	}
	return nil
}

// timeNames are members that hold the time of a line: ts_ms in milliseconds,
// the others in seconds of the Unix epoch.
var timeNames = []string{"ts_ms", "_timestamp", "timestamp", "wall_time", "time"}

func (im *importer) jsonLines(in io.Reader, f *os.File, part *importPart) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	ms, next := info.ModTime().UnixMilli(), int64(0)
	var seen int64
	lines := metrics.NewMixed(0, func(it *metrics.Item) {
		switch it.Kind {
		case metrics.ItemEvent:
			im.refuse(f.Name(), fmt.Errorf("line %d: an event of a metrics stream, which needs no import", it.Number))
			return
		case metrics.ItemValues:
		case metrics.ItemText:
			if len(bytes.TrimSpace(it.Line)) > 0 {
				im.refuse(f.Name(), fmt.Errorf("line %d: neither JSON nor name=value", it.Number))
			}
			return
		default:
			im.refuse(f.Name(), cmp.Or(it.Err, fmt.Errorf("line %d: no values", it.Number)))
			return
		}
		seen++
		values := slices.DeleteFunc(slices.Clone(it.Values), func(v metrics.Value) bool {
			at, ok := lineTime(v)
			if ok {
				ms = at
			}
			return ok
		})
		line, err := im.flags.reading.read(values)
		if err != nil {
			im.refuse(f.Name(), fmt.Errorf("line %d: %w", it.Number, err))
			return
		}
		if line.hasStep {
			next = line.step
		}
		for _, v := range line.metrics {
			part.points = append(part.points, importPoint{ms, next, v.Name, v.Number, line.metadata})
		}
		next++
	})
	if _, err := io.Copy(lines, in); err != nil {
		return err
	}
	lines.Close()
	if seen == 0 {
		return errors.New("neither a TensorBoard event file nor JSON lines")
	}
	return nil
}

// lineTime is the time that a member holds, in milliseconds.
func lineTime(v metrics.Value) (ms int64, ok bool) {
	if !v.IsNumber || !slices.Contains(timeNames, v.Name) {
		return 0, false
	}
	at := v.Number.Float64()
	if v.Name != "ts_ms" {
		at *= 1000
	}
	// Before 2001 it is no time but a duration.
	return int64(at), at > 1e12 && at < 1e14
}

// events spells the stream: the parts of one directory are processes one after
// another, those of several directories are merged by time.
func (im *importer) events(meta metrics.Metadata) ([]byte, error) {
	dirs := map[string]bool{}
	for _, p := range im.parts {
		dirs[p.dir] = true
	}
	if len(dirs) > 1 {
		im.merge()
	}
	var out []byte
	last := int64(0)
	for i := range im.parts {
		p := &im.parts[i]
		if len(p.points) == 0 && i > 0 {
			continue
		}
		open, err := metrics.NewOpen(im.flags.slug, im.flags.describe, meta)
		if err != nil {
			return nil, err
		}
		open.TSMS = last
		if len(p.points) > 0 {
			open.TSMS = p.points[0].ms
		}
		out = open.Append(out)
		for _, point := range p.points {
			e, err := metrics.NewMetric(point.step, point.name, point.value, point.metadata)
			if err != nil {
				im.refuse(p.dir, err)
				continue
			}
			e.TSMS = point.ms
			out, last = e.Append(out), point.ms
		}
	}
	if !im.flags.running {
		done := metrics.NewDone(im.flags.slug)
		done.TSMS = last
		out = done.Append(out)
	}
	return out, nil
}

// merge makes one part of all, by time.
func (im *importer) merge() {
	var all []importPoint
	for _, p := range im.parts {
		for _, point := range p.points {
			point.metadata = metrics.Meta("run", p.dir).Merge(point.metadata)
			all = append(all, point)
		}
	}
	slices.SortStableFunc(all, func(a, b importPoint) int { return cmp.Compare(a.ms, b.ms) })
	im.parts = []importPart{{points: all}}
}

// errOtherStream keeps a stream from being lost to an import.
var errOtherStream = errors.New("it holds another stream")

func (im *importer) write(stream []byte) error {
	out := im.flags.out
	if out != "" && !im.flags.force {
		same, err := sameStream(out, stream)
		if err != nil {
			return failed("write", out, err)
		}
		if !same {
			return cli.WithHint(failed("write", out, errOtherStream), "give another --out, or --force to replace it")
		}
	}
	return im.outTo(out, func(w io.Writer) error {
		_, err := w.Write(stream)
		return err
	})
}

// sameStream tells whether a file may be replaced: it is not there, is empty,
// or begins with the same open, as an earlier import of the same run.
func sameStream(path string, stream []byte) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	first := stream[:bytes.IndexByte(stream, '\n')+1]
	have := make([]byte, len(first))
	n, err := io.ReadFull(f, have)
	if err == io.EOF {
		return true, nil
	}
	return bytes.Equal(have[:n], first), nil
}
