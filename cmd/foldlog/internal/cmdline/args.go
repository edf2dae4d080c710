// Package cmdline has what command lines have in common: their operands and the flags that
// many of them have.
package cmdline

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
)

// Operands checks the arguments of a command against their names in its
// usage line: "PATH" is required, "[ROOT]" may be left out, and "PATH..." is
// one or more.
func Operands(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		repeats := len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")
		for i, name := range names {
			missing := i >= len(args) && !strings.HasPrefix(name, "[")
			if missing || i < len(args) && isPath[name] && args[i] == "" {
				return cli.Usagef("%s: %s is missing", verb(c), strings.Trim(name, "[.]"))
			}
		}
		if len(args) > len(names) && !repeats {
			return cli.Usagef("%s: unexpected argument %q", verb(c), args[len(names)])
		}
		return nil
	}
}

// isPath names the operands that may not be empty: an empty path would be the
// present directory.
var isPath = map[string]bool{"PATH": true, "PATH...": true, "DEST": true, "[ROOT]": true}

// JSONFlag adds --json, which every command that reads has.
func JSONFlag(c *cobra.Command, usage string) *bool {
	return c.Flags().Bool("json", false, usage)
}

// verb is the command as errors name it, without the name of the program.
func verb(c *cobra.Command) string {
	_, verb, _ := strings.Cut(c.CommandPath(), " ")
	return verb
}

// numberOperands marks commands whose operands may be negative numbers.
const numberOperands = "operands may be negative numbers"

// TakesNumbers makes -0.5 and -inf operands of a command and not flags.
func TakesNumbers(c *cobra.Command) {
	c.Annotations = map[string]string{numberOperands: ""}
}

var negative = regexp.MustCompile(`^-(\.?[0-9]|(?i:inf|infinity|nan)$)`)

// ShieldNumbers puts a space before negative numbers in the arguments of a
// command that takes them, so that they are not read as flags.
func ShieldNumbers(root *cobra.Command, args []string) []string {
	c, _, err := root.Find(args)
	if err != nil {
		return args
	}
	if _, takes := c.Annotations[numberOperands]; !takes {
		return args
	}
	shielded := slices.Clone(args)
	for i := 0; i < len(shielded) && shielded[i] != "--"; i++ {
		switch arg := shielded[i]; {
		case negative.MatchString(arg):
			shielded[i] = " " + arg
		case takesValue(c, arg):
			i++ // the value is a text and stays as it is
		}
	}
	return shielded
}

// takesValue tells whether the argument after this one belongs to it.
func takesValue(c *cobra.Command, arg string) bool {
	name, long := strings.CutPrefix(arg, "--")
	if !long {
		return false
	}
	f := c.Flag(name)
	return f != nil && f.NoOptDefVal == ""
}
