package studycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study/optuna"
)

// maxToldLines is how many damaged lines an import tells one by one.
const maxToldLines = 20

func (a *app) importCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE [PATH]",
		Short: "Make a journal of a journal file of Optuna's",
		Long: `Make a journal at PATH of FILE, which Optuna's JournalStorage wrote, in any of
its releases. PATH must not exist; without it the journal gets the name of FILE
with the ending .atj.

Studies and trials keep their numbers, states, parameters, distributions, values,
intermediate values, attributes, and times. Times without an offset are taken as
local, as Optuna takes them; TZ says what local is. Deleted studies stay hidden.

A torn last line is told: it never was part of the log. Lines that cannot be used
are passed over and told with their number, and make the exit status 1; of half a
record that a whole one follows on the same line, the whole one is used.`,
		Example: "  foldlog study import optuna.log\n  foldlog study import optuna.log search.atj",
		Args:    cmdline.Operands("FILE", "[PATH]"),
		RunE: func(c *cobra.Command, args []string) error {
			to := strings.TrimSuffix(args[0], filepath.Ext(args[0])) + ".atj"
			if len(args) == 2 {
				to = args[1]
			}
			return cli.Failed("study import", args[0], a.importOptuna(c.Context(), args[0], to))
		},
	}
}

func (a *app) importOptuna(ctx context.Context, from, to string) error {
	if _, _, away, _ := remote.Parse(to, a.Var("FOLDLOG_SERVER")); away {
		return cli.WithHint(errors.New("an import makes a journal on this machine, and not at a server"),
			"import it to a file, and copy that into the root there, on that machine")
	}
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if isSQLite(f) {
		return cli.WithHint(errors.New("it is an SQLite database, and no file of Optuna's JournalStorage"), copyStudy)
	}
	bar := a.NewProgress("import "+from, cli.Bytes)
	defer bar.Close()
	told := &toldLines{bar: bar}
	opts := optuna.ImportOptions{
		Journal:  a.JournalOptions(nil),
		Fault:    told.tell,
		Progress: func(done int64) { bar.Set(done, info.Size()) },
	}
	done, err := optuna.Import(ctx, f, to, opts)
	bar.Close()
	if errors.Is(err, optuna.ErrNoLog) {
		return cli.WithHint(err, copyStudy)
	}
	if err != nil {
		return err
	}
	a.NoteNewJournal(to)
	a.Notef("imported %s in %s from %s to %s", cli.Plural(int64(done.Trials), "trial"), studiesText(done.Studies), cli.Plural(done.Lines, "line"), to)
	if done.Ignored > 0 {
		a.Notef("%s without effect, as in Optuna: what came too late, or a second time", cli.Plural(done.Ignored, "record"))
	}
	if done.Lost > 0 {
		return fmt.Errorf("%s could not be used, the first: %w", cli.Plural(done.Lost, "line"), told.first)
	}
	return nil
}

// copyStudy is how studies of Optuna's other storages become a file that can be imported.
const copyStudy = "optuna.copy_study(from_study_name=..., from_storage=..., to_storage=...) with a JournalStorage makes a file that can be imported"

// isSQLite tells a database by its first bytes.
func isSQLite(f io.ReaderAt) bool {
	head := make([]byte, 15)
	n, _ := f.ReadAt(head, 0) // a pipe has no beginning to look at
	return string(head[:n]) == "SQLite format 3"
}

func studiesText(n int) string {
	if n == 1 {
		return "1 study"
	}
	return fmt.Sprintf("%d studies", n)
}

// toldLines tells the first damaged lines.
type toldLines struct {
	bar   *cli.Progress
	n     int
	first error // that was lost
}

func (t *toldLines) tell(fault *optuna.LineError) {
	lost := !errors.Is(fault, optuna.ErrTorn) && !errors.Is(fault, optuna.ErrBlank) && !errors.Is(fault, optuna.ErrGlued)
	if lost && t.first == nil {
		t.first = fault
	}
	switch t.n++; {
	case t.n <= maxToldLines:
		t.bar.Notef("%v", fault)
	case t.n == maxToldLines+1:
		t.bar.Notef("more such lines are not told one by one")
	}
}
