package studycmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/study/optuna"
)

func (a *app) serveOptunaCmd() *cobra.Command {
	var addr string
	var insecure bool
	c := &cobra.Command{
		Use:   "serve-optuna PATH [--addr HOST:PORT] [--insecure]",
		Short: "Be the storage of programs that tune with Optuna",
		Long: `Be the storage of programs that tune with Optuna 4.2 or later: they connect with
optuna.storages.GrpcStorageProxy(host=..., port=...) and change nothing else. The
journal at PATH, which may be one at a Foldlog server, is created if there is none. Several servers may be on one
journal, beside everything else that works on it.

The address is printed once calls are answered. SIGTERM or SIGINT ends the server,
with exit status 0, after the calls under way.

Whoever reaches the address may read and change every study. Only addresses of
this machine are listened on unless --insecure is given.`,
		Example: "  foldlog study serve-optuna search.atj\n  foldlog study serve-optuna search.atj --addr 127.0.0.1:0",
		Args:    cmdline.Operands("PATH"),
	}
	c.Flags().StringVar(&addr, "addr", "127.0.0.1:13000", "listen on `HOST:PORT`; port 0 takes a free one")
	c.Flags().BoolVar(&insecure, "insecure", false, "listen on other than loopback addresses, without any protection")
	c.RunE = func(c *cobra.Command, args []string) error {
		return cli.Failed("study serve-optuna", args[0], a.serveOptuna(c.Context(), args[0], addr, insecure))
	}
	return c
}

func (a *app) serveOptuna(ctx context.Context, path, addr string, insecure bool) (err error) {
	l, err := Listen(ctx, a.Env, addr, insecure)
	if err != nil {
		return err
	}
	defer l.Close()
	j, err := a.OpenOrCreateJournal(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if _, err := fmt.Fprintln(a.Out(), l.Addr()); err != nil {
		return err
	}
	defer suitCalls()()
	return optuna.NewServer(j, optuna.ServerOptions{}).Serve(ctx, l)
}

// suitCalls suits Go's runtime to many small calls that are synced to disk, until
// the function that it returns is called.
func suitCalls() (restore func()) {
	// What waits for the disk keeps one of the runtime's processors for a while:
	// another one answers calls meanwhile.
	procs := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(procs + 1)
	}
	// Calls leave little else than garbage behind. This, which is never touched and
	// so takes no memory, keeps the collector from running every few megabytes.
	spared := make([]byte, 64<<20)
	return func() {
		runtime.GOMAXPROCS(procs)
		runtime.KeepAlive(spared)
	}
}

// Listen opens an address for Optuna, of this machine alone unless that is waived.
func Listen(ctx context.Context, env *cli.Env, addr string, insecure bool) (net.Listener, error) {
	at, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return nil, &cli.UsageError{Err: fmt.Errorf("--addr: %w", err)}
	}
	switch loopback := at.IP.IsLoopback(); {
	case !loopback && !insecure:
		return nil, cli.WithHint(cli.Usagef("--addr %s is not a loopback address: whoever reaches it could change every study", addr),
			"listen on 127.0.0.1 and forward the port, or say --insecure")
	case !loopback:
		env.Notef("listening on %s without any protection: whoever reaches it may read and change every study", addr)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", at.String())
}
