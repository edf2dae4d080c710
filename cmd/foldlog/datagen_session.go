package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// maxDatagenRequest bounds a line of a session, in bytes. Blobs go by file.
const maxDatagenRequest = 128 << 20

func (a *app) datagenSessionCmd() *cobra.Command {
	var rootDir, run string
	c := &cobra.Command{
		Use:   "session LOG [--root ROOT] [--run NAME]",
		Short: "Checkpoint items over standard input and output, for client libraries",
		Long: `Checkpoint items over standard input and output, for client libraries: a JSON
object on each line is a request, and each is answered by one line, which has the
request's id. docs/guide/datagen.md lists them. Requests about different items may
be made without waiting for each other's answers. The log is made if there is none.

When the input ends, or the program that started this process does, the items that
were opened can be taken by others at once, and go on where they stopped.`,
		Example: `  echo '{"do":"item","item":"a"}' | foldlog datagen session digits/v1`,
		Args:    operands("LOG"),
	}
	c.Flags().StringVar(&rootDir, "root", "", "the `ROOT` of the logs, a directory or s3://BUCKET/PREFIX (default: FOLDLOG_ROOT, or .)")
	c.Flags().StringVar(&run, "run", "", "the `NAME` of this run in the log (default: drawn at random)")
	c.RunE = func(c *cobra.Command, args []string) error {
		s := &datagenSession{app: a, streams: map[string]*datagen.Stream{}}
		ref, err := a.DatagenLog(args[0], rootDir)
		if err != nil {
			return s.refuse(c.Context(), err)
		}
		return datagenFailed("session", args[0], s.serve(c.Context(), ref, run))
	}
	return c
}

// datagenSession is a conversation about one log.
type datagenSession struct {
	*app
	log    *datagen.Log
	writer *datagen.Writer

	out sync.Mutex // held while an answer is written

	mu      sync.Mutex
	streams map[string]*datagen.Stream // that are open, by item
	claims  *datagen.Claims            // of the last request "keys"
}

// datagenAnswer is one line of the output of a session.
type datagenAnswer struct {
	ID    json.RawMessage `json:"id"`    // of the request, null if it has none
	OK    any             `json:"ok"`    // the result, null after an error
	Error *datagenProblem `json:"error"` // null if the request was done
}

// datagenProblem says why a request was not done.
type datagenProblem struct {
	Kind    string `json:"kind"` // usage, not_found, held, ended, fault, fenced, closed, log
	Message string `json:"message"`
	Hint    string `json:"hint"` // what to do about it, "" if there is nothing to say
}

// serve answers requests until the input ends or ctx does.
func (s *datagenSession) serve(ctx context.Context, ref logkind.DatagenRef, run string) (err error) {
	if s.Stdin == nil {
		return errors.New("there is no standard input")
	}
	if s.writer, s.log, err = openWriter(ctx, ref, run, &outageTeller{note: s.Notef}); err != nil {
		return s.refuse(ctx, err)
	}
	defer func() { err = errors.Join(err, s.writer.Close(context.WithoutCancel(ctx))) }()
	defer s.maintaining(s.log, datagen.DefaultMaintainEvery)()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var busy sync.WaitGroup
	defer busy.Wait()
	lines, broken := make(chan []byte), make(chan error, 1)
	go func() { broken <- readRequests(ctx, s.Stdin, maxDatagenRequest, lines) }()
	orphaned := time.NewTicker(time.Second)
	defer orphaned.Stop()
	parent := os.Getppid()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-orphaned.C:
			if os.Getppid() != parent {
				return nil
			}
		case line, ok := <-lines:
			if !ok {
				busy.Wait()
				return <-broken
			}
			busy.Go(func() {
				if err := s.reply(s.answer(ctx, line)); err != nil {
					stop(err)
				}
			})
		}
	}
}

// refuse answers every request with why the log could not be opened, and returns that if
// there was none to answer.
func (s *datagenSession) refuse(ctx context.Context, cause error) error {
	if s.Stdin == nil || ctx.Err() != nil {
		return cause
	}
	lines, broken := make(chan []byte), make(chan error, 1)
	go func() { broken <- readRequests(ctx, s.Stdin, maxDatagenRequest, lines) }()
	for told := false; ; told = true {
		var line []byte
		var more bool
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case line, more = <-lines:
		}
		if !more && told {
			return <-broken
		}
		if !more {
			return cause
		}
		var r datagenRequest
		_ = json.Unmarshal(line, &r)
		if err := s.reply(datagenAnswer{ID: r.ID, Error: describeProblem(cause)}); err != nil {
			return err
		}
	}
}

func (s *datagenSession) reply(answer datagenAnswer) error {
	s.out.Lock()
	defer s.out.Unlock()
	return cli.WriteJSONLine(s.Out(), answer)
}

func (s *datagenSession) answer(ctx context.Context, line []byte) datagenAnswer {
	var r datagenRequest
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return datagenAnswer{ID: r.ID, Error: describeProblem(wrongRequest(line, maxDatagenRequest, err))}
	}
	result, err := s.do(ctx, &r)
	if err != nil {
		return datagenAnswer{ID: r.ID, Error: describeProblem(err)}
	}
	return datagenAnswer{ID: r.ID, OK: result}
}

// problemKinds tell clients apart what they may act on. The first match wins.
var problemKinds = []struct {
	kind  string
	match func(error) bool
}{
	{"usage", cli.As[*cli.UsageError]},
	{"usage", cli.Is(datagen.ErrEvent)},
	{"held", cli.Is(datagen.ErrHeld)},
	{"ended", cli.Is(datagen.ErrEnded)},
	{"fault", cli.Is(datagen.ErrFault)},
	{"fenced", cli.Is(datagen.ErrFenced)},
	{"fenced", cli.Is(datagen.ErrUnsure)},
	{"not_found", cli.Is(datagen.ErrNoItem)},
	{"not_found", cli.Is(datagen.ErrNoBlob)},
	{"closed", cli.Is(datagen.ErrClosed)},
}

func describeProblem(err error) *datagenProblem {
	p := &datagenProblem{Kind: "log", Message: strings.ReplaceAll(err.Error(), "\n", "; "), Hint: cli.HintFor(err, hintRules())}
	for _, k := range problemKinds {
		if k.match(err) {
			p.Kind = k.kind
			break
		}
	}
	return p
}
