package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/datagencmd"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/hints"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/metricscmd"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/studycmd"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/internal/yamldoc"
)

// app is what the commands share.
type app struct{ logkind.Finder }

const rootLong = `Foldlog keeps everything that happens in machine-learning experiments as
durable, append-only event logs, and derives states, curves and best trials by
folding them.

Results go to standard output, everything else to standard error. The exit
status is 0 when done, 1 when the log or the work is faulty, 2 when the command
line is wrong, and 128 plus its number when a signal ended the command.

Where a command takes the path of a log, http://HOST/PATH is the log at that path
under the root of a Foldlog server, and server:PATH one at that of FOLDLOG_SERVER.

Environment:
  FOLDLOG_ROOT     the root of logs for commands that are given none
  FOLDLOG_SERVER   the address of a Foldlog server
  FOLDLOG_TOKEN    the token to show to that server
  NO_COLOR         no colours if set`

// newRootCmd is the whole command line in an environment, for these kinds.
func newRootCmd(env *cli.Env, kinds []logkind.Kind) *cobra.Command {
	a := &app{logkind.Finder{Env: env, Kinds: kinds}}
	root := &cobra.Command{
		Use:           "foldlog",
		Short:         "Append events, fold state",
		Long:          rootLong,
		Version:       version.Long(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Out())
	root.SetErr(env.Err())
	flags := root.PersistentFlags()
	flags.BoolVarP(&env.Quiet, "quiet", "q", false, "print results and errors only")
	flags.BoolVar(&env.Verbose, "verbose", false, "tell what is being done")
	root.Flags().Bool("version", false, "print the version")
	addGroup(root, "any", "Commands for any log (its kind is told by its content):",
		a.lsCmd(), a.inspectCmd(), a.verifyCmd(), a.catCmd(), a.tailCmd(), a.cpCmd())
	addGroup(root, "kind", "Commands for one kind of log:",
		studycmd.New(a.Finder), datagencmd.New(a.Finder), metricscmd.New(a.Finder))
	addGroup(root, "server", "A server for all of them:", a.serveCmd())
	addGroup(root, "start", "To see it work:", a.demoCmd())
	finish(root)
	return root
}

// addGroup adds commands under one heading of the help. A new command is a
// file with one constructor, and its place in a group of newRootCmd.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, c := range commands {
		c.GroupID = id
		root.AddCommand(c)
	}
}

// finish adds the commands that every tree has, and makes those that only
// hold others refuse an unknown name.
func finish(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCmd())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetUsageFunc(printUsage)
	walk(root, func(c *cobra.Command) {
		c.DisableFlagsInUseLine = true
		c.InitDefaultHelpFlag()
		c.Flags().Lookup("help").Usage = "print this help"
		c.Short = strings.Replace(c.Short, "Generate the autocompletion script for", "Print the completion script for", 1)
		if c.HasSubCommands() && !c.Runnable() {
			c.Args = cobra.ArbitraryArgs
			c.RunE = runHolder
		}
	})
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, env *cli.Env, kinds []logkind.Kind, args []string) int {
	root := newRootCmd(env, kinds)
	root.SetArgs(cmdline.ShieldNumbers(root, args))
	started := false
	walk(root, func(c *cobra.Command) {
		if run := c.RunE; run != nil {
			c.RunE = func(c *cobra.Command, args []string) error {
				if env.Quiet && env.Verbose {
					return cli.Usagef("--quiet and --verbose exclude each other")
				}
				started = true
				return run(c, args)
			}
		}
	})
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !started {
		// Cobra fails before a command runs only over the command line.
		err = &cli.UsageError{Err: err}
	}
	return cli.Report(env.Err(), "foldlog", usageHint(cmd, cli.Cause(ctx, err)), hints.Rules())
}

// usageHint points a wrong command line without a hint of its own to the help
// of its command.
func usageHint(cmd *cobra.Command, err error) error {
	var usage *cli.UsageError
	var hinted cli.Hinted
	if !errors.As(err, &usage) || errors.As(err, &hinted) {
		return err
	}
	return cli.WithHint(err, "see "+cmd.CommandPath()+" --help")
}

func runHolder(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	return unknownCommand(c, args[0])
}

// flagError prefers to complain about an unknown command over its flags.
func flagError(c *cobra.Command, err error) error {
	if c.HasSubCommands() && !takesOperands(c) && c.Flags().NArg() > 0 {
		return unknownCommand(c, c.Flags().Arg(0))
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return valueError(invalid)
	}
	var missing *pflag.NotExistError
	if !errors.As(err, &missing) || len(missing.GetSpecifiedName()) < 2 {
		return err
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	near := alike[missing.GetSpecifiedName()]
	ok := slices.Contains(names, near)
	if !ok {
		near, ok = yamldoc.Near(missing.GetSpecifiedName(), names)
	}
	if ok {
		return cli.WithHint(&cli.UsageError{Err: err}, "did you mean --"+near+"?")
	}
	return err
}

// alike are names that flags have in other commands and other programs.
var alike = map[string]string{
	"name": "study", "study": "name", "study-name": "study", "n-trials": "trials", "n-jobs": "jobs",
	"port": "addr", "listen": "addr", "output": "out", "target": "to", "server": "to",
}

// takesOperands tells whether a command with commands of its own can do something by itself.
func takesOperands(c *cobra.Command) bool { return strings.Contains(c.Use, " ") }

// valueError says what a flag takes, in place of the name of the function that refused it.
func valueError(err *pflag.InvalidValueError) error {
	f := err.GetFlag()
	wanted := ""
	switch f.Value.Type() {
	case "int", "int64":
		wanted = "a whole number"
	case "uint", "uint16", "uint32", "uint64":
		wanted = "a whole number from 0 up"
	case "float64":
		wanted = "a number"
	case "duration":
		wanted = "a duration such as 90s or 1h30m"
	}
	if wanted == "" {
		return err
	}
	return cli.Usagef("--%s %q: must be %s", f.Name, err.GetValue(), wanted)
}

func unknownCommand(c *cobra.Command, name string) error {
	err := cli.Usagef("unknown command %q for %s", name, c.CommandPath())
	if near := nearCommands(c, name); len(near) > 0 {
		return cli.WithHint(err, "did you mean "+strings.Join(near, " or ")+"?")
	}
	if c.Flags().Lookup(name) != nil {
		return cli.WithHint(err, "did you mean --"+name+"?")
	}
	return err
}

// nearCommands are the commands that may have been meant by a name that c does not have:
// one that says so of itself, those of that very name elsewhere, or those of c that are
// spelled alike.
func nearCommands(c *cobra.Command, name string) []string {
	for _, sub := range c.Commands() {
		if slices.Contains(sub.SuggestFor, name) {
			return []string{sub.Name()}
		}
	}
	var elsewhere []string
	walk(c.Root(), func(sub *cobra.Command) {
		if sub.Name() == name && sub.IsAvailableCommand() && sub.Parent() != nil && (c == c.Root() || sub.Parent() == c.Root()) {
			elsewhere = append(elsewhere, sub.CommandPath())
		}
	})
	if len(elsewhere) > 0 {
		return elsewhere
	}
	c.SuggestionsMinimumDistance = 2
	return c.SuggestionsFor(name)
}

func walk(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		walk(sub, visit)
	}
}
