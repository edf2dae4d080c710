package metricscmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/metrics/tensorboard"
	"github.com/foldlog/foldlog/metrics/trainlog"
)

// importFlags is the command line of import.
type importFlags struct {
	slug, describe, out string
	meta                []string
	running, force      bool
	reading             readingFlags
}

func (a *app) importCmd() *cobra.Command {
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
		Args:    cmdline.Operands("FILE..."),
	}
	f := c.Flags()
	f.StringVar(&flags.slug, "slug", "", "the `SLUG` that names the run")
	cmdline.OutFlag(f, &flags.out)
	f.StringVar(&flags.describe, "describe", "", "one line of `TEXT` about the run")
	f.StringArrayVar(&flags.meta, "meta", nil, "a `K=V` of the run's identity; again for each further one")
	f.BoolVar(&flags.running, "running", false, "leave done away: the run goes on")
	f.BoolVar(&flags.force, "force", false, "replace --out even if it is another stream")
	flags.reading.addFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if flags.slug == "" {
			return cli.Usagef("--slug is missing: the name of the run")
		}
		if err := metrics.CheckSlug(flags.slug); err != nil {
			return &cli.UsageError{Err: fmt.Errorf("--slug: %w", err)}
		}
		return advise(a.importRun(c.Context(), args, flags))
	}
	return c
}

func (a *app) importRun(ctx context.Context, args []string, flags importFlags) error {
	meta, err := metaFlags(flags.meta)
	if err != nil {
		return err
	}
	files, err := a.importFiles(args)
	if err != nil {
		return err
	}
	im := &trainlog.Importer{
		Slug: flags.slug, Description: flags.describe, Meta: meta, Running: flags.running, Reading: flags.reading.reading(),
		Told: func(err error) { a.Notef("%v", err) },
	}
	for _, f := range files {
		if err := f.read(ctx, im); err != nil {
			return cli.Failed("metrics import", f.path, err)
		}
	}
	if im.Others > 0 {
		a.Notef("%s left out: only scalars are imported", cli.Plural(im.Others, "histogram, image or text"))
	}
	stream, err := im.Stream()
	if err != nil {
		return fmt.Errorf("metrics import: %w", err)
	}
	if err := a.writeStream(flags.out, stream, flags.force); err != nil {
		return err
	}
	a.Notef("imported %s from %s", cli.Plural(im.Points, "point"), cli.Plural(int64(len(files)), "file"))
	if im.Lost > 0 {
		return fmt.Errorf("metrics import: %s could not be read, the first: %w", cli.Plural(im.Lost, "record"), im.First)
	}
	return nil
}

// importFile is a file and the directory of the run it belongs to.
type importFile struct{ path, run string }

func (f *importFile) read(ctx context.Context, im *trainlog.Importer) error {
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	return im.Read(trainlog.File{Name: f.path, Dir: f.run, Modified: info.ModTime(), Reader: metricsview.Watched(ctx, in, nil)})
}

// importFiles lists the operands' files, and of directories the event files
// under them.
func (a *app) importFiles(args []string) (files []importFile, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, cli.Failed("metrics import", arg, err)
		}
		if other := a.WrongKind(arg, "training log"); other != nil && other.Kind != "" && other.Kind != logkind.MetricsStream {
			return nil, cli.Failed("metrics import", arg, other)
		}
		if !info.IsDir() {
			files = append(files, importFile{arg, "."})
			continue
		}
		paths, err := tensorboard.Find(arg)
		if err != nil {
			return nil, cli.Failed("metrics import", arg, err)
		}
		if len(paths) == 0 {
			return nil, cli.WithHint(fmt.Errorf("metrics import %s: no TensorBoard event files under it", arg), "they have tfevents in their names")
		}
		for _, path := range paths {
			run, _ := filepath.Rel(arg, filepath.Dir(path)) // it is under arg
			files = append(files, importFile{path, filepath.ToSlash(run)})
		}
	}
	return files, nil
}

// errOtherStream keeps a stream from being lost to an import.
var errOtherStream = errors.New("it holds another stream")

// writeStream writes a stream to a file that may hold an earlier import of it, or
// to standard output.
func (a *app) writeStream(out string, stream []byte, force bool) error {
	if out != "" && !force {
		same, err := sameStream(out, stream)
		if err != nil {
			return cli.Failed("write", out, err)
		}
		if !same {
			return cli.WithHint(cli.Failed("write", out, errOtherStream), "give another --out, or --force to replace it")
		}
	}
	return a.WriteOut(out, func(w io.Writer) error {
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
