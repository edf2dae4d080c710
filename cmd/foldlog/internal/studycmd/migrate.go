package studycmd

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

func (a *app) migrateCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "migrate PATH",
		Short: "Migrate a journal of an older format, once",
		Long: `Migrate a journal of format 1 to 5 to the present one. Every command that writes
does so by itself; this one does nothing else. Every operation stays as it is
to the byte, and the old file is kept beside the journal as PATH.vFORMAT.

Stop every program that writes the old format first: what it appends afterwards
ends up in the kept file, where foldlog verify finds it.`,
		Example: "  foldlog study migrate old.atj",
		Args:    cmdline.Operands("PATH"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return cli.Failed("study migrate", args[0], a.migrate(c.Context(), args[0]))
	}
	return c
}

func (a *app) migrate(ctx context.Context, path string) error {
	var format uint64
	err := a.readStudies(ctx, path, func(r logkind.StudyReader) error {
		format = r.Header().Format
		return nil
	})
	if err != nil {
		return err
	}
	did := fmt.Sprintf("%s is of format %d already: nothing to do", path, format)
	if format < journal.FormatVersion {
		did = fmt.Sprintf("%s was migrated from format %d to %d", path, format, journal.FormatVersion)
		if _, _, away, _ := remote.Parse(path, ""); away {
			return cli.WithHint(fmt.Errorf("it is of format %d", format), "migrate it at the server, where its file is; whatever is written to it there does so too")
		}
		j, err := study.OpenJournal(ctx, path, a.JournalOptions(nil))
		if err != nil {
			return err
		}
		if err := j.Close(); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.Out(), cli.Safe(did))
	return err
}
