package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
)

// operands checks the arguments of a command against their names in its
// usage line: "PATH" is required, "[ROOT]" may be left out, and "PATH..." is
// one or more.
func operands(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		repeats := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				return cli.Usagef("%s: %s is missing", verb(c), strings.TrimSuffix(name, "..."))
			}
		}
		if len(args) > len(names) && !repeats {
			return cli.Usagef("%s: unexpected argument %q", verb(c), args[len(names)])
		}
		return nil
	}
}

// jsonFlag adds --json, which every command that reads has.
func jsonFlag(c *cobra.Command, usage string) *bool {
	return c.Flags().Bool("json", false, usage)
}

// verb is the command as errors name it, without the name of the program.
func verb(c *cobra.Command) string {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	return verb
}
