// Package studycmd is foldlog study: a file for each command that works on the studies of a
// journal.
package studycmd

import (
	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/internal/logkind"
)

const long = `Work on the studies of a journal: create them, ask for trials and tell their
results, and look at them. A study journal is PATH, a small file, and PATH.d
beside it, or http://HOST/PATH at a server ("foldlog serve"); server:PATH is one at
that of FOLDLOG_SERVER. Any number of processes may work on it at once.

A trial is raw or managed. A raw one belongs to whoever asked for it. A managed
one is claimed under a lease: its owner shows the worker id and the epoch of
the claim with every change, and nobody else can change it. A trial whose owner
goes silent can be failed and tried again by "study retry".`

// app is what the commands share.
type app struct{ logkind.Finder }

// New is foldlog study and the commands beneath it.
func New(f logkind.Finder) *cobra.Command {
	a := &app{f}
	noun := &cobra.Command{
		Use:   "study",
		Short: "Hyper-parameter search: create, run, ask, tell, look, import and export",
		Long:  long,
	}
	noun.AddCommand(
		a.initCmd(),
		a.createCmd(),
		a.askCmd(),
		a.tellCmd(),
		a.reportCmd(),
		a.shouldPruneCmd(),
		a.renewCmd(),
		a.attrCmd(),
		a.enqueueCmd(),
		a.retryCmd(),
		a.runCmd(),
		a.pauseCmd(),
		a.resumeCmd(),
		a.sessionCmd(),
		a.workerCmd(),
		a.showCmd(),
		a.trialsCmd(),
		a.bestCmd(),
		a.importanceCmd(),
		a.compareCmd(),
		a.plotCmd(),
		a.exportCmd(),
		a.importCmd(),
		a.migrateCmd(),
		a.serveOptunaCmd(),
	)
	return noun
}
