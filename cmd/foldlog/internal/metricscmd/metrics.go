// Package metricscmd is foldlog metrics: a file for each command that works on metrics
// streams.
package metricscmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/hints"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/metrics"
)

// app is what the commands share.
type app struct{ logkind.Finder }

// New is foldlog metrics and the commands beneath it.
func New(f logkind.Finder) *cobra.Command {
	a := &app{f}
	c := &cobra.Command{
		Use:   "metrics",
		Short: "Record, check, show, plot and move the metrics streams of training runs",
		Long: `Work with metrics streams: JSON Lines files that a training run appends to, in
any language, with an event for its identity, every number and every checkpoint.
Where a command takes a stream or a directory it takes one at a server as well,
http://HOST/PATH or server:PATH, and the address of the page of a run there.`,
		Example: "  python train.py | foldlog metrics record --slug my-run --to jsonl:run.jsonl\n  foldlog metrics show run.jsonl\n  foldlog metrics plot -f run.jsonl --metric loss",
	}
	c.AddCommand(a.recordCmd(), a.checkCmd(), a.showCmd(), a.plotCmd(),
		a.diffCmd(), a.importCmd(), a.exportCmd(), a.pushCmd())
	return c
}

// streams lists what operands name, and any stream of a directory (see logkind.Finder).
// Doing is what an error begins with.
func (a *app) streams(ctx context.Context, doing string, args []string) ([]string, error) {
	paths, err := a.Streams(ctx, args)
	return paths, advise(begun(doing, err))
}

// resolved is streams where an operand has to name some.
func (a *app) resolved(ctx context.Context, doing string, args []string) ([]string, error) {
	paths, err := a.Resolved(ctx, args)
	return paths, advise(begun(doing, err))
}

func begun(doing string, err error) error {
	if err == nil || cli.As[*cli.UsageError](err) {
		return err
	}
	return fmt.Errorf("%s %w", doing, err)
}

// keyValues reads operands of the form K=V.
func keyValues(flag string, pairs []string) (map[string]string, error) {
	where := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, cli.Usagef("--%s %q: KEY=VALUE expected", flag, pair)
		}
		where[key] = value
	}
	return where, nil
}

// nameFilter tells whether a metric is wanted by patterns in which * stands for
// any text; no pattern wants all.
func nameFilter(patterns []string) func(name string) bool {
	return func(name string) bool {
		for _, p := range patterns {
			if matchStars(p, name) {
				return true
			}
		}
		return len(patterns) == 0
	}
}

func matchStars(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	rest, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1:last] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[last])
}

// advise gives an error of a metrics stream its hint.
func advise(err error) error {
	var hinted cli.Hinted
	if err == nil || errors.As(err, &hinted) {
		return err
	}
	return cli.WithHint(err, cli.HintFor(err, rules))
}

// rules says what to do about the errors of package metrics.
var rules = []cli.HintRule{
	{Match: cli.Is(metrics.ErrSlug), Hint: "a slug is 1 to 200 bytes without / and control characters, not . or .., the same throughout a stream"},
	{Match: cli.Is(metrics.ErrDiskFull), Hint: "make room; what the file lacks is lost, and a server can be completed from it with foldlog metrics push"},
	{Match: cli.Is(metrics.ErrUnauthorized), Hint: "FOLDLOG_TOKEN holds the token for the server; foldlog serve token list there says what each may do"},
	hints.Certificate,
	{Match: cli.Is(metrics.ErrAway), Hint: "once the server is back, foldlog metrics push completes it from the file"},
	{Match: cli.Is(metrics.ErrConflict), Hint: "the server holds other bytes for this stream; foldlog metrics check FILE says whether the file is sound"},
	{Match: cli.Is(metrics.ErrTooLarge), Hint: "nothing of it was written; keep large things in files, and their paths in the stream"},
	{Match: cli.Is(fs.ErrExist), Hint: "give a path that does not exist"},
}

// eachStream calls fn for every stream, tells what fails, and fails at the end
// if anything did. One stream alone fails on its own; a server that is away ends it.
func (a *app) eachStream(doing string, paths []string, fn func(path string) error) error {
	faulty := 0
	for _, path := range paths {
		err := cli.Failed(doing, path, fn(path))
		switch {
		case err == nil:
			continue
		case len(paths) == 1, errors.Is(err, cli.ErrOutputClosed), errors.Is(err, metrics.ErrAway), isCancelled(err):
			return advise(err)
		}
		faulty++
		a.Notef("%v", err)
	}
	if faulty > 0 {
		return fmt.Errorf("%s: %d of %s failed", doing, faulty, cli.Plural(int64(len(paths)), "stream"))
	}
	return nil
}
