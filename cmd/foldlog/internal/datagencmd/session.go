package datagencmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/foldlog/foldlog/cmd/foldlog/internal/cmdline"
	"github.com/foldlog/foldlog/cmd/foldlog/internal/session"
	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

// maxRequest bounds a line of a session, in bytes. Blobs go by file.
const maxRequest = 128 << 20

func (a *app) sessionCmd() *cobra.Command {
	var rootDir, run string
	c := &cobra.Command{
		Use:   "session LOG [--root ROOT] [--run NAME]",
		Short: "Checkpoint items over standard input and output, for client libraries",
		Long: `Checkpoint items over standard input and output, for client libraries: a JSON
object on each line is a request, and each is answered by one line, which has the
request's id. docs/guide/datagen.md lists them. Requests about different items may
be made without waiting for each other's answers. The log is made if there is none.

When the input ends, or the program that started this process does, the items that
were opened can be taken by others at once, and go on where they stopped.

A SIGTERM, which a cluster sends to every process of a job, is left to the program
that started this one. A second one ends it at once.`,
		Example: `  echo '{"do":"item","item":"a"}' | foldlog datagen session digits/v1`,
		Args:    cmdline.Operands("LOG"),
	}
	rootVar(c, &rootDir)
	c.Flags().StringVar(&run, "run", "", "the `NAME` of this run in the log (default: drawn at random)")
	c.RunE = func(c *cobra.Command, args []string) error {
		s := &conversation{app: a, streams: map[string]*datagen.Stream{}, claims: map[int]*datagen.Claims{}}
		ref, err := a.DatagenLog(c.Context(), args[0], rootDir)
		if err != nil {
			return s.refuse(c.Context(), err)
		}
		ctx, stop := session.OutliveTermination(c.Context())
		defer stop()
		return failed("session", args[0], s.serve(ctx, ref, run))
	}
	return c
}

// conversation is a conversation about one log.
type conversation struct {
	*app
	log    *datagen.Log
	writer *datagen.Writer

	out sync.Mutex // held while an answer is written

	mu      sync.Mutex
	streams map[string]*datagen.Stream // that are open, by item
	claims  map[int]*datagen.Claims    // that have items left, by the number of their "keys"
	lists   int                        // how many there were
	waits   context.Context            // of "next", which would wait for others
}

// serve answers requests until the input ends or ctx does. Those that have begun by the
// end of the input, or of the program that started this one, are done, but nobody waits
// for other workers any more.
func (s *conversation) serve(ctx context.Context, ref logkind.DatagenRef, run string) (err error) {
	if s.writer, s.log, err = openWriter(ctx, ref, run, &outageTeller{note: s.Notef}); err != nil {
		return s.refuse(ctx, err)
	}
	defer func() { err = errors.Join(err, s.writer.Close(context.WithoutCancel(ctx))) }()
	defer s.maintaining(s.log, datagen.DefaultMaintainEvery)()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var busy sync.WaitGroup
	defer busy.Wait()
	var over context.CancelFunc
	s.waits, over = context.WithCancel(ctx)
	defer over()
	return session.Serve(ctx, s.In(), maxRequest, func(_ context.Context, line []byte) error {
		busy.Go(func() {
			if err := s.reply(s.answer(ctx, line)); err != nil {
				stop(err)
			}
		})
		return nil
	})
}

// refuse answers every request with why the log could not be opened, and returns that if
// there was none to answer.
func (s *conversation) refuse(ctx context.Context, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	told := false
	err := session.Serve(ctx, s.In(), maxRequest, func(_ context.Context, line []byte) error {
		told = true
		var r request
		_ = json.Unmarshal(line, &r)
		return s.reply(session.Answer{ID: r.ID, Error: describe(cause)})
	})
	if err == nil && !told {
		return cause
	}
	return err
}

func (s *conversation) reply(answer session.Answer) error {
	s.out.Lock()
	defer s.out.Unlock()
	return cli.WriteJSONLine(s.Out(), answer)
}

func (s *conversation) answer(ctx context.Context, line []byte) session.Answer {
	var r request
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return session.Answer{ID: r.ID, Error: describe(session.WrongRequest(line, maxRequest, err))}
	}
	result, err := s.do(ctx, &r)
	if err != nil {
		return session.Answer{ID: r.ID, Error: describe(err)}
	}
	return session.Answer{ID: r.ID, OK: result}
}

func describe(err error) *session.Problem {
	return session.Describe(err, problems, "log")
}

// problems are the errors that clients may act on.
var problems = []session.Kind{
	{Name: "usage", Match: cli.As[*cli.UsageError]},
	{Name: "usage", Match: cli.Is(datagen.ErrEvent)},
	{Name: "held", Match: cli.Is(datagen.ErrHeld)},
	{Name: "ended", Match: cli.Is(datagen.ErrEnded)},
	{Name: "fault", Match: cli.Is(datagen.ErrFault)},
	{Name: "fenced", Match: cli.Is(datagen.ErrFenced)},
	{Name: "fenced", Match: cli.Is(datagen.ErrUnsure)},
	{Name: "not_found", Match: cli.Is(datagen.ErrNoItem)},
	{Name: "not_found", Match: cli.Is(datagen.ErrNoBlob)},
	{Name: "closed", Match: cli.Is(datagen.ErrClosed)},
}
