package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
)

func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:               "help [COMMAND]",
		Short:             "Print the help of a command",
		ValidArgsFunction: completeCommands,
		RunE: func(c *cobra.Command, args []string) error {
			at, rest, err := c.Root().Find(args)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			if len(rest) > 0 {
				return unknownCommand(at, rest[0])
			}
			return at.Help()
		},
	}
}

func completeCommands(c *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	at, rest, err := c.Root().Find(args)
	if err == nil && len(rest) == 0 {
		for _, sub := range available(at.Commands()) {
			names = append(names, sub.Name()+"\t"+sub.Short)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// printUsage is the second half of every help text. It is code and not a
// template, which would keep two megabytes of unused methods in the binary.
func printUsage(c *cobra.Command) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Usage:\n  %s\n", usageLines(c))
	section(&b, "Examples:", c.Example)
	printCommands(&b, c)
	section(&b, "Flags:", c.LocalFlags().FlagUsages())
	section(&b, "Flags of every command:", c.InheritedFlags().FlagUsages())
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND --help tells more about a command.\n", c.CommandPath())
	}
	_, err := b.WriteTo(c.OutOrStdout())
	return err
}

// usageLines are the ways to call a command: by itself, with one of its own, or both.
func usageLines(c *cobra.Command) string {
	switch line := c.UseLine(); {
	case !c.HasAvailableSubCommands():
		return line
	case line == c.CommandPath():
		return line + " COMMAND"
	default:
		return line + "\n  " + c.CommandPath() + " COMMAND"
	}
}

func printCommands(w io.Writer, c *cobra.Command) {
	groups := append(c.Groups(), &cobra.Group{ID: "", Title: "Commands:"})
	if len(groups) > 1 {
		groups[len(groups)-1].Title = "Other commands:"
	}
	for _, g := range groups {
		var lines strings.Builder
		for _, sub := range available(c.Commands()) {
			if sub.GroupID == g.ID {
				fmt.Fprintf(&lines, "  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
			}
		}
		section(w, g.Title, lines.String())
	}
}

// section is a titled block after an empty line, or nothing if it is empty.
func section(w io.Writer, title, body string) {
	if body = strings.TrimRight(body, "\n"); body != "" {
		fmt.Fprintf(w, "\n%s\n%s\n", title, body)
	}
}

func available(commands []*cobra.Command) (list []*cobra.Command) {
	for _, c := range commands {
		if c.IsAvailableCommand() || c.Name() == "help" {
			list = append(list, c)
		}
	}
	return list
}
