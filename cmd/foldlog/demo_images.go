package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/examples/digits"
	"github.com/foldlog/foldlog/examples/digits/images"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
	"github.com/foldlog/foldlog/study"
)

const (
	demoImagesCommand = "images"
	// demoKillSteps is how many steps are durable when the pipeline is killed.
	demoKillSteps = 100
)

// demoImagesCmd is the process that runs the pipeline. It tells each step on its
// standard output, when it begins and once it is durable.
func (a *app) demoImagesCmd() *cobra.Command {
	var root, params string
	c := &cobra.Command{
		Use: demoImagesCommand, Hidden: true, Args: cmdline.Operands(),
		Short: "Run the pipeline of the demonstration",
		RunE: func(c *cobra.Command, _ []string) error {
			var p digits.Params
			if err := json.Unmarshal([]byte(params), &p); err != nil {
				return fmt.Errorf("demo images: --params: %w", err)
			}
			net, err := digits.Fit(c.Context(), p)
			if err == nil {
				err = images.Make(c.Context(), root, net, func(kind pipeline.EventKind, step string) { fmt.Fprintln(a.Out(), kind, step) })
			}
			if err != nil {
				return fmt.Errorf("demo images: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&root, "root", "", "the `ROOT` of the logs")
	c.Flags().StringVar(&params, "params", "{}", "the network's parameters as `JSON`")
	return c
}

// demoImages makes new images with the best network: a process runs the pipeline
// and is killed in the middle, and another one goes on.
func (a *app) demoImages(ctx context.Context, snap *study.Snapshot, journal string) error {
	best, err := snap.Best(0)
	if err != nil || len(best) == 0 {
		return err
	}
	root := filepath.Dir(journal)
	ref := logkind.DatagenRef{Root: root, Pipeline: images.Pipeline, Experiment: images.Experiment}
	a.say("\nMaking new images from %d real ones with the best network: perturbed in a loop, classified, kept or filtered.", images.Sources)
	a.say("  %s\n", ref)
	run := &demoChild{app: a, root: root, params: string(study.AppendParams(nil, best[0].Params)), durable: map[string]bool{}, begun: map[string]bool{}}
	if err := run.process(ctx, demoKillSteps); err != nil {
		return err
	}
	before := len(run.durable)
	a.Notef("killed the pipeline (SIGKILL) when %d steps were durable", before)
	if err := run.process(ctx, 0); err != nil {
		return err
	}
	if len(run.again) > 0 {
		return fmt.Errorf("steps ran again though they were durable: %s", strings.Join(run.again, ", "))
	}
	a.say("%d steps are durable, %d of them from before the kill; %s had to be done again, and none that was durable.",
		len(run.durable), before, cli.Plural(int64(run.repeated), "step"))
	return a.demoShowImages(ctx, ref)
}

func (a *app) demoShowImages(ctx context.Context, ref logkind.DatagenRef) error {
	l, err := ref.Open(ctx, datagen.Options{})
	if err != nil {
		return err
	}
	v, err := l.View(ctx)
	if err != nil {
		return err
	}
	kept := 0
	for s, err := range v.Items(ctx, datagen.ItemQuery{Filter: datagen.Filter{Status: []datagen.Status{datagen.StatusCompleted}}}) {
		if err != nil {
			return err
		}
		if s.Parent != "" {
			kept++
		}
	}
	a.say("%d of %d new images were kept.\n", kept, images.Sources*images.Variants)
	return a.verify(ctx, []string{ref.String()}, logkind.VerifyOptions{}, printVerification)
}

// demoChild is the process that runs the pipeline, and what it told.
type demoChild struct {
	*app
	root, params string

	begun, durable map[string]bool
	repeated       int      // steps that began a second time
	again          []string // those of them that were durable
}

// process runs the pipeline to its end, or kills it when so many steps are durable.
func (d *demoChild) process(ctx context.Context, killAt int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "demo", demoImagesCommand, "--root", d.root, "--params", d.params)
	cmd.Stderr = d.Err()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	bar := d.NewProgress("steps", cli.Items)
	killed := d.listen(out, bar, func() bool { return killAt > 0 && len(d.durable) >= killAt && cmd.Process.Kill() == nil })
	bar.Close()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case killed:
		return nil
	case err != nil:
		return fmt.Errorf("the pipeline: %w", err)
	}
	return nil
}

// listen hears of steps until the process ends; enough is asked after each.
func (d *demoChild) listen(out io.Reader, bar *cli.Progress, enough func() bool) (killed bool) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		kind, step, _ := strings.Cut(lines.Text(), " ")
		if kind == "done" {
			d.durable[step] = true
		} else {
			if d.begun[step] {
				d.repeated++
			}
			if d.durable[step] {
				d.again = append(d.again, step)
			}
			d.begun[step] = true
		}
		bar.Set(int64(len(d.durable)), int64(max(len(d.begun), len(d.durable))))
		killed = killed || enough()
	}
	return killed
}
