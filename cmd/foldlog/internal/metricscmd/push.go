package metricscmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/metrics"
)

// Pushed is one line of `foldlog metrics push --json`. Fields are added and
// never renamed or removed.
type Pushed struct {
	Path      string `json:"path"`
	Slug      string `json:"slug"`
	Stream    string `json:"stream"`     // its id at the server
	Events    int64  `json:"events"`     // that the server did not have
	Bytes     int64  `json:"bytes"`      // of them
	Total     int64  `json:"total"`      // bytes that the server now has
	TornBytes int64  `json:"torn_bytes"` // of a last line without its newline, left out
	Page      string `json:"page"`       // where the server shows the run
}

func (a *app) pushCmd() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "push [FILE|ROOT]... [--to http(s)://HOST] [--json]",
		Short: "Complete a server from the files of streams",
		Long: `Send a Foldlog server what it lacks of metrics streams. Doing it again sends only
what is new, and nothing twice; the files may still be written. The server is
that of --to or FOLDLOG_SERVER, the token is FOLDLOG_TOKEN.`,
		Example: "  foldlog metrics push run.jsonl --to https://foldlog.example\n  foldlog metrics push runs/",
		Args:    cmdline.Operands("[FILE]..."),
	}
	c.Flags().StringVar(&to, "to", "", "the `SERVER`, http(s)://HOST")
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each stream")
	c.RunE = func(c *cobra.Command, args []string) error {
		client, err := a.pushClient(to)
		if err != nil {
			return err
		}
		paths, err := a.streams(c.Context(), "metrics push", args)
		if err != nil {
			return err
		}
		return a.eachStream("metrics push", paths, func(path string) error {
			return a.push(c.Context(), client, path, *asJSON)
		})
	}
	return c
}

func (a *app) pushClient(to string) (metrics.Client, error) {
	if to == "" {
		to = a.Var("FOLDLOG_SERVER")
	}
	if to == "" {
		return metrics.Client{}, cli.Usagef("--to is missing: http(s)://HOST, or FOLDLOG_SERVER")
	}
	t, err := metrics.ParseTarget(to)
	if err == nil && t.Kind != metrics.TargetHTTP {
		err = fmt.Errorf("%w: %q is no server", metrics.ErrTarget, to)
	}
	if err != nil {
		err = &cli.UsageError{Err: fmt.Errorf("--to: %w", err)}
		if host, port, split := net.SplitHostPort(to); split == nil && host != "" && port != "" {
			err = cli.WithHint(err, "did you mean http://"+to+"?")
		}
		return metrics.Client{}, err
	}
	return metrics.Client{Base: t.URL, Token: a.Var("FOLDLOG_TOKEN"), HTTP: &http.Client{Timeout: metrics.DefaultRequestTimeout}}, nil
}

func (a *app) push(ctx context.Context, client metrics.Client, path string, asJSON bool) error {
	p, err := a.pushFile(ctx, client, path)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.WriteJSONLine(a.Out(), Pushed{path, p.Slug, p.Stream, p.Events, p.Bytes, p.Total, p.Torn, p.Page})
	}
	if p.Torn > 0 {
		a.Notef("%s: the last line is torn: %s without a newline not sent", path, cli.Size(p.Torn))
	}
	text := fmt.Sprintf("%s  %s, %s, sent; the server has %s", p.Slug, cli.Plural(p.Events, "event"), cli.Size(p.Bytes), cli.Size(p.Total))
	if p.Page != "" {
		text += "  " + p.Page
	}
	_, err = fmt.Fprintln(a.Out(), cli.Safe(text))
	return err
}

// PushFile sends a server what it lacks of a stream, at a path or an address. To is the
// server, "" for that of FOLDLOG_SERVER.
func PushFile(ctx context.Context, f logkind.Finder, to, path string) (metrics.PushStats, error) {
	a := &app{f}
	client, err := a.pushClient(to)
	if err != nil {
		return metrics.PushStats{}, err
	}
	p, err := a.pushFile(ctx, client, path)
	return p, advise(err)
}

func (a *app) pushFile(ctx context.Context, client metrics.Client, path string) (metrics.PushStats, error) {
	w, at, err := a.StreamAt(ctx, path)
	if err != nil {
		return metrics.PushStats{}, err
	}
	f, err := w.Open(at)
	if err != nil {
		return metrics.PushStats{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return metrics.PushStats{}, err
	}
	bar := a.NewProgress("push "+path, cli.Bytes)
	defer bar.Close()
	client.Progress = bar.Set
	p, err := client.PushFrom(ctx, f, info.Size())
	if errors.Is(err, metrics.ErrMissing) {
		err = cli.WithHint(err, "a metrics stream begins with an open; foldlog inspect says what a log is")
	}
	return p, err
}
