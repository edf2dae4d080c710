package datagencmd

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
)

func (a *app) mergeCmd() *cobra.Command {
	return a.maintainCmd("merge", "Merge what writers left into the table",
		"Merge what writers that are gone left in their shards into the table. Writers that\nlive merge their own. It may run at any time, beside writers and readers.",
		(*datagen.Log).Merge)
}

func (a *app) compactCmd() *cobra.Command {
	return a.maintainCmd("compact", "Merge, compact, index and clean up",
		"Do one pass of maintenance: merge what writers left, put small fragments together,\nrefresh the indexes, and remove old versions and files that nobody reads any more.\nIt may run at any time, beside writers and readers.",
		(*datagen.Log).MaintainOnce)
}

// maintainCmd is a command that makes one pass of maintenance.
func (a *app) maintainCmd(name, short, long string, pass func(*datagen.Log, context.Context, datagen.MaintainOptions) (datagen.MaintainStats, error)) *cobra.Command {
	var rootDir string
	var grace time.Duration
	c := &cobra.Command{
		Use: name + " LOG [--json]", Short: short, Long: long,
		Example: "  foldlog datagen " + name + " digits/v1",
		Args:    cmdline.Operands("LOG"),
	}
	rootVar(c, &rootDir)
	if name == "compact" {
		c.Flags().DurationVar(&grace, "grace", 0, "remove what nobody has looked for during this `DURATION` (default: that of the background)")
	}
	asJSON := cmdline.JSONFlag(c, "print one JSON object")
	c.RunE = func(c *cobra.Command, args []string) error {
		ref, err := a.DatagenLog(c.Context(), args[0], rootDir)
		if err != nil {
			return failed(name, args[0], err)
		}
		l, err := ref.Open(c.Context(), datagen.Options{})
		if err != nil {
			return failed(name, args[0], err)
		}
		stats, err := pass(l, c.Context(), datagen.MaintainOptions{All: true, Rate: -1, Grace: grace})
		if err != nil {
			return failed(name, args[0], err)
		}
		return a.printUpkeep(viewUpkeep(stats), *asJSON)
	}
	return c
}

// Upkeep is the output of `foldlog datagen merge|compact --json`.
type Upkeep struct {
	Adopted   int   `json:"adopted"`   // shards of writers that are gone
	Merged    int64 `json:"merged"`    // rows that came into the table
	Compacted int64 `json:"compacted"` // fragments that were put together
	Indexed   bool  `json:"indexed"`   // indexes were refreshed
	Removed   int64 `json:"removed"`   // files
}

func (a *app) printUpkeep(u Upkeep, asJSON bool) error {
	if asJSON {
		return cli.WriteJSON(a.Out(), u)
	}
	indexed := ""
	if u.Indexed {
		indexed = "refreshed"
	}
	return cli.WriteFields(a.Out(), [2]string{"merged", fmt.Sprintf("%s of %s", cli.Plural(u.Merged, "event"), cli.Plural(int64(u.Adopted), "writer"))},
		[2]string{"compacted", cli.Plural(u.Compacted, "fragment")}, [2]string{"indexes", indexed}, [2]string{"removed", cli.Plural(u.Removed, "file")})
}

func viewUpkeep(s datagen.MaintainStats) Upkeep {
	removed := s.Collected.Files + s.Cleaned.Files + s.Cleaned.Temporary + s.Claims
	return Upkeep{s.Adopted, s.Merged, int64(s.Compacted.Removed), s.Indexed, int64(removed)}
}
