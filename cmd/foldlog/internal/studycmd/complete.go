package studycmd

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/remote"
	"github.com/foldlog/foldlog/study"
)

// completeStudies offers the names of the studies in the journal that the
// command line names.
func completeStudies(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if len(args) > 0 {
		withSnapshot(args[0], func(snap *study.Snapshot) {
			for st := range openStudies(snap) {
				// A shell cannot complete a name with a newline in it, and
				// would show others what they ask the terminal to do.
				if name := st.Config.Name; cli.Safe(name) == name {
					names = append(names, name+"\t"+cli.Safe(studyview.Objectives(st)))
				}
			}
		})
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeRunning offers a path, and then the numbers of the trials that run.
func completeRunning(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var numbers []string
	if len(args) == 1 {
		name := c.Flag("study").Value.String()
		withSnapshot(args[0], func(snap *study.Snapshot) {
			if st, err := pickStudy(snap, args[0], name); err == nil {
				for n := range st.Live(study.Running) {
					numbers = append(numbers, strconv.FormatUint(n, 10))
				}
			}
		})
	}
	return numbers, cobra.ShellCompDirectiveNoFileComp
}

// withSnapshot does nothing if the journal cannot be read.
func withSnapshot(path string, fn func(*study.Snapshot)) {
	if _, _, away, _ := remote.Parse(path, ""); away {
		return // the shell is not made to wait for a network
	}
	r, err := study.OpenJournalReader(path, journal.ReaderOptions{})
	if err != nil {
		return
	}
	defer r.Close()
	fn(r.Snapshot())
}
