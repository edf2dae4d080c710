// Package trial is the command that trains the network of package digits once,
// with the parameters of its flags, and prints a metrics stream on standard
// output: an open event, the metrics of every epoch, and a done event, one line
// of JSON each. It is what a trial runs:
//
//	foldlog study run digits.atj --trials 20 --workers 2 --space space.json \
//	    -- train --lr {lr} --hidden {hidden} --optimizer {optimizer}
//
// On SIGINT or SIGTERM it writes an annotation, no done event, and exits with
// 128 plus the number of the signal.
package trial

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/foldlog/foldlog/examples/digits"
)

// Main is the command as this process, with these arguments. It returns the
// exit status.
func Main(args []string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(&signalError{<-signals})
		signal.Stop(signals) // the next one ends the process at once
	}()
	return run(ctx, args, os.Stdout, os.Stderr, time.Now)
}

// signalError is the cause of a context that a signal cancelled.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "interrupted by " + e.name() }

func (e *signalError) name() string {
	if e.signal == os.Interrupt {
		return "SIGINT"
	}
	return "SIGTERM"
}

func (e *signalError) status() int {
	if e.signal == os.Interrupt {
		return 128 + int(syscall.SIGINT)
	}
	return 128 + int(syscall.SIGTERM)
}

// run is the whole command. It returns the exit status: 0 when trained, 1 when
// the training or the output failed, 2 for a wrong command line, and that of
// the signal that interrupted it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, now func() time.Time) int {
	params, slug, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "train: %v\n", err)
		return 2
	}
	s := &stream{out: stdout, now: now, slug: slug}
	err = train(ctx, params, s)
	var interrupted *signalError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &interrupted):
		fmt.Fprintf(stderr, "train: %v\n", err)
		return interrupted.status()
	}
	fmt.Fprintf(stderr, "train: %v\n", err)
	return 1
}

func train(ctx context.Context, params digits.Params, s *stream) error {
	if err := s.open(params); err != nil {
		return err
	}
	step := 0
	_, err := digits.Train(ctx, params, func(epoch int, m digits.Metrics) error {
		step = epoch
		return s.metrics(epoch, m)
	})
	if err != nil && errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	var interrupted *signalError
	switch {
	case err == nil:
		return s.done()
	case errors.As(err, &interrupted):
		return errors.Join(interrupted, s.interrupted(step, interrupted.name()))
	case s.broken:
		return err
	}
	return errors.Join(err, s.failed(step, err))
}

// parse reads the parameters. Each flag's default is the one of its field, so
// that a 0 here was written by somebody and is checked as it stands.
func parse(args []string, stderr io.Writer) (p digits.Params, slug string, err error) {
	flags := flag.NewFlagSet("train", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Float64Var(&p.LR, "lr", digits.DefaultLR, "learning rate")
	flags.Float64Var(&p.Momentum, "momentum", digits.DefaultMomentum, "momentum of sgd, below 1")
	flags.Float64Var(&p.L2, "l2", 0, "weight decay")
	flags.Float64Var(&p.Dropout, "dropout", 0, "part of the hidden units left out in training, below 1")
	flags.IntVar(&p.Hidden, "hidden", digits.DefaultHidden, "units of a hidden layer")
	flags.IntVar(&p.Layers, "layers", digits.DefaultLayers, "hidden layers")
	flags.IntVar(&p.Batch, "batch", digits.DefaultBatch, "samples of one step")
	flags.IntVar(&p.Epochs, "epochs", digits.DefaultEpochs, "passes over the training data")
	flags.StringVar(&p.Activation, "activation", digits.DefaultActivation, strings.Join(digits.Activations, " or "))
	flags.StringVar(&p.Optimizer, "optimizer", digits.DefaultOptimizer, strings.Join(digits.Optimizers, " or "))
	flags.Uint64Var(&p.Seed, "seed", 0, "of the first weights, the order of samples, and dropout")
	flags.StringVar(&slug, "slug", "digits", "name of the run")
	err = flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(stderr)
		fmt.Fprintln(stderr, "train trains a small network on handwritten digits and prints its metrics.")
		flags.PrintDefaults()
	}
	if err == nil && flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = p.Validate()
	}
	if p.Momentum == 0 {
		p.Momentum = -1 // none, where 0 would be the default
	}
	return p, slug, err
}
