package cmdline

import "github.com/spf13/pflag"

// outFile is the value of --out where it stands for standard output if it is empty;
// "-" means that too.
type outFile string

func (o *outFile) String() string { return string(*o) }
func (o *outFile) Type() string   { return "string" }

func (o *outFile) Set(s string) error {
	if s == "-" {
		s = ""
	}
	*o = outFile(s)
	return nil
}

// OutFlag is --out of a command that writes to standard output without it, or where
// FILE is "-".
func OutFlag(flags *pflag.FlagSet, out *string) {
	flags.Var((*outFile)(out), "out", "write to this `FILE` and not to standard output")
}
