package studycmd

import (
	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/runner"
)

// WorkerCommand is the hidden command by which study run starts its workers.
const WorkerCommand = "worker"

func (a *app) workerCmd() *cobra.Command {
	return &cobra.Command{
		Use:    WorkerCommand,
		Short:  "Be a worker process of study run, which starts it",
		Hidden: true,
		Args:   cmdline.Operands(),
		RunE: func(c *cobra.Command, _ []string) error {
			return runner.RunProcess(a.In(), a.Out())
		},
	}
}
