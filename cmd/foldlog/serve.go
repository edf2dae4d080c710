package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/studycmd"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/server"
	"github.com/foldlog/foldlog/ui"
)

// defaultAddress is where a server listens: for this machine alone.
const defaultAddress = "127.0.0.1:7654"

// serveOptions are the flags of serve.
type serveOptions struct {
	address, cache, tokens string
	cert, key              string
	hosts                  []string
	insecure               bool
	optuna, optunaJournal  string
}

func (a *app) serveCmd() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:        "serve [ROOT] [--addr HOST:PORT]",
		SuggestFor: []string{"server", "dashboard", "ui"},
		Short:      "Serve every log under a root over HTTP",
		Long: `Serve every log under a root over HTTP: the API, live updates, the dashboard, and
what remote workers send. The root is FOLDLOG_ROOT, or else the current directory,
if none is given. The address is printed once the server answers; an interrupt
ends it after the requests that are being answered.

By itself it listens on this machine alone and asks for nothing. Any other address
needs tokens ("foldlog serve token add") and TLS (--tls-cert, --tls-key), or
--insecure. Where there are tokens they are asked for, on this machine too.

With --optuna it is also the storage of programs that tune with Optuna, as in
"foldlog study serve-optuna". Their client shows no token, so that only addresses
of this machine are listened on unless --insecure is given. The address is printed
on a line of its own.

What it keeps for speed is in ROOT/.foldlog and can be deleted at any time.`,
		Example: "  foldlog serve experiments/\n  foldlog serve /data/logs --addr :7654 --tls-cert cert.pem --tls-key key.pem",
		Args:    cmdline.Operands("[ROOT]"),
	}
	f := c.Flags()
	f.StringVar(&o.address, "addr", defaultAddress, "listen on `HOST:PORT`")
	f.StringVar(&o.cache, "cache", "", "keep projections in `DIR` (default: ROOT/.foldlog)")
	f.StringVar(&o.cert, "tls-cert", "", "the `FILE` of the certificate chain")
	f.StringVar(&o.key, "tls-key", "", "the `FILE` of the certificate's key")
	f.StringArrayVar(&o.hosts, "host", nil, "a `NAME` that browsers reach the server by; again for each further one")
	f.BoolVar(&o.insecure, "insecure", false, "listen for other machines without tokens or without TLS")
	f.StringVar(&o.optuna, "optuna", "", "answer Optuna's gRPC storage proxy on `HOST:PORT` as well")
	f.StringVar(&o.optunaJournal, "optuna-journal", "optuna.atj", "the `PATH` of its journal under the root, made if there is none")
	c.PersistentFlags().StringVar(&o.tokens, "tokens", "", "the `FILE` of tokens (default: foldlog/tokens.json in the user's configuration)")
	c.RunE = func(c *cobra.Command, args []string) error {
		root := a.Root(args)
		return cli.Failed("serve", root, a.serve(c.Context(), root, &o))
	}
	c.AddCommand(a.tokenCmd(&o), a.healthCmd())
	return c
}

func (a *app) serve(ctx context.Context, root string, o *serveOptions) error {
	if info, err := os.Stat(root); err != nil {
		return err
	} else if !info.IsDir() {
		return cli.Usagef("the root must be a directory")
	}
	tokens, err := o.readTokens()
	if err != nil {
		return err
	}
	config, err := o.tls()
	if err != nil {
		return err
	}
	if err := a.checkExposure(o, tokens != nil, config != nil); err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.address)
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := server.New(server.Options{Root: root, Cache: o.cache, Tokens: tokens, Hosts: o.hosts, Secure: config != nil,
		UI: ui.Files(), Log: a.logger(), Program: version.Program()})
	if err != nil {
		return serveHint(err)
	}
	url := "http://" + o.reachedAt(l.Addr())
	if config != nil {
		url, l = "https://"+o.reachedAt(l.Addr()), tls.NewListener(l, config)
	}
	if _, err := fmt.Fprintln(a.Out(), url); err != nil {
		return errors.Join(err, s.Close())
	}
	a.Notef("serving %s", root)
	err = a.serveAll(ctx, s, l, o)
	return errors.Join(err, s.Close())
}

// reachedAt is an address that a browser can open: where every address of the machine
// is listened on, it is the first name that was given, or else localhost.
func (o *serveOptions) reachedAt(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return addr.String()
	}
	name := "localhost"
	if len(o.hosts) > 0 {
		name = o.hosts[0]
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// serveAll serves over HTTP and, if it is asked for, Optuna. When one ends so does the
// other.
func (a *app) serveAll(ctx context.Context, s *server.Server, l net.Listener, o *serveOptions) error {
	if o.optuna == "" {
		return s.Serve(ctx, l)
	}
	other, err := studycmd.Listen(ctx, a.Env, o.optuna, o.insecure)
	if err != nil {
		return err
	}
	defer other.Close()
	if _, err := fmt.Fprintln(a.Out(), other.Addr()); err != nil {
		return err
	}
	both, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- s.ServeOptuna(both, other, o.optunaJournal)
	}()
	err = s.Serve(both, l)
	stop()
	return errors.Join(err, <-ended)
}

// serveHint says what to do about a root that cannot be served.
func serveHint(err error) error {
	switch {
	case errors.Is(err, server.ErrInUse):
		return cli.WithHint(err, "stop the other server, or give this one a --cache of its own if it only reads")
	case errors.Is(err, fs.ErrPermission):
		return cli.WithHint(err, "a root that is read-only needs --cache DIR")
	}
	return err
}

func (a *app) logger() *slog.Logger {
	level := slog.LevelWarn
	switch {
	case a.Verbose:
		level = slog.LevelDebug
	case a.Quiet:
		level = slog.LevelError
	}
	return slog.New(slog.NewTextHandler(a.Err(), &slog.HandlerOptions{Level: level}))
}

// tokensPath is the file of tokens.
func (o *serveOptions) tokensPath() (string, error) {
	if o.tokens != "" {
		return o.tokens, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", cli.WithHint(fmt.Errorf("find tokens: %w", err), "give --tokens FILE")
	}
	return filepath.Join(dir, "foldlog", "tokens.json"), nil
}

// readTokens is nil if there are none.
func (o *serveOptions) readTokens() (*server.Tokens, error) {
	path, err := o.tokensPath()
	if err != nil {
		if o.tokens == "" {
			return nil, nil
		}
		return nil, err
	}
	tokens, err := server.OpenTokens(path)
	if err != nil {
		return nil, err
	}
	list, err := tokens.List()
	if err != nil || len(list) == 0 && o.tokens == "" {
		return nil, err
	}
	return tokens, nil
}

func (o *serveOptions) tls() (*tls.Config, error) {
	if o.cert == "" && o.key == "" {
		return nil, nil
	}
	if o.cert == "" || o.key == "" {
		return nil, cli.Usagef("--tls-cert and --tls-key go together")
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, fmt.Errorf("load certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// checkExposure refuses to listen for other machines without tokens and TLS, and
// says so aloud where --insecure allows it.
func (a *app) checkExposure(o *serveOptions, tokens, secure bool) error {
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		return cli.WithHint(cli.Usagef("--addr %s: must be HOST:PORT", o.address), "for this machine alone it is --addr 127.0.0.1:7654")
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() || tokens && secure {
		return nil
	}
	if !o.insecure {
		err := cli.Usagef("--addr %s: other machines can reach it, and it needs tokens and TLS", o.address)
		return cli.WithHint(err, `"foldlog serve token add" makes a token, --tls-cert and --tls-key name a certificate; --insecure does without`)
	}
	if !tokens {
		a.Notef("INSECURE: everybody who can reach %s may read and write every log under the root", o.address)
	}
	if !secure {
		a.Notef("INSECURE: without TLS everybody on the way can read tokens and data")
	}
	return nil
}

func (a *app) tokenCmd(o *serveOptions) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke tokens",
		Long: `Make, list and revoke the tokens that a server asks for. The file has their
hashes alone. A server that is running takes changes in within a second, unless it
was started without any token.`,
	}
	c.AddCommand(a.tokenAddCmd(o), a.tokenListCmd(o), a.tokenRevokeCmd(o))
	return c
}

func (a *app) openTokens(o *serveOptions) (*server.Tokens, error) {
	path, err := o.tokensPath()
	if err != nil {
		return nil, err
	}
	return server.OpenTokens(path)
}

func (a *app) tokenAddCmd(o *serveOptions) *cobra.Command {
	var scopes []string
	c := &cobra.Command{
		Use:   "add NAME [--scope SCOPE]...",
		Short: "Make a token, and print it once",
		Long: `Make a token, and print it once. What it may do are its scopes: read, write,
write:runs/PATTERN, write:studies/PATTERN, write:datagen/PIPELINE/EXPERIMENT, where *
in a pattern stands for anything but a slash, and admin for everything. Without --scope it may read and write.`,
		Example: "  foldlog serve token add laptop\n  foldlog serve token add trainer --scope read --scope 'write:runs/vision-*'",
		Args:    cmdline.Operands("NAME"),
	}
	c.Flags().StringArrayVar(&scopes, "scope", nil, "what it may do, a `SCOPE`; again for each further one")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(scopes) == 0 {
			scopes = []string{server.ScopeRead, server.ScopeWrite}
		}
		tokens, err := a.openTokens(o)
		if err != nil {
			return err
		}
		_, secret, err := tokens.Add(args[0], scopes, a.Time())
		if errors.Is(err, server.ErrScope) {
			return &cli.UsageError{Err: err}
		}
		if err != nil {
			return err
		}
		a.Notef("keep it: it is not stored and cannot be shown again")
		_, err = fmt.Fprintln(a.Out(), secret)
		return err
	}
	return c
}

// tokenView is one line of `foldlog serve token list --json`.
type tokenView struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Scopes    []string `json:"scopes"`
	CreatedMS int64    `json:"created_ms"`
}

func (a *app) tokenListCmd(o *serveOptions) *cobra.Command {
	c := &cobra.Command{Use: "list [--json]", Short: "List the tokens", Args: cmdline.Operands()}
	asJSON := cmdline.JSONFlag(c, "print one line of JSON for each token")
	c.RunE = func(*cobra.Command, []string) error {
		tokens, err := a.openTokens(o)
		if err != nil {
			return err
		}
		list, err := tokens.List()
		if err != nil {
			return err
		}
		if *asJSON {
			return cli.Buffered(a.Out(), func(w io.Writer) error {
				for _, t := range list {
					if err := cli.WriteJSONLine(w, tokenView{t.ID, t.Name, serde.NotNil(t.Scopes), t.CreatedMS}); err != nil {
						return err
					}
				}
				return nil
			})
		}
		table := cli.NewTable(cli.Column{Title: "ID"}, cli.Column{Title: "NAME"}, cli.Column{Title: "MAY"}, cli.Column{Title: "MADE"})
		table.Bold = a.Color()
		for _, t := range list {
			table.Row(t.ID, t.Name, strings.Join(t.Scopes, ", "), cli.Age(a.Time(), time.UnixMilli(t.CreatedMS)))
		}
		if table.Len() == 0 {
			a.Notef("no tokens")
			return nil
		}
		return table.Write(a.Out())
	}
	return c
}

func (a *app) tokenRevokeCmd(o *serveOptions) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "Make a token worthless",
		Args:  cmdline.Operands("ID"),
		RunE: func(_ *cobra.Command, args []string) error {
			tokens, err := a.openTokens(o)
			if err != nil {
				return err
			}
			err = tokens.Revoke(args[0])
			if errors.Is(err, server.ErrNoToken) {
				return cli.WithHint(err, "foldlog serve token list has their ids")
			}
			return err
		},
	}
}
