package pipefile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
	"github.com/foldlog/foldlog/internal/child"
	"github.com/foldlog/foldlog/internal/serde"
)

// maxOutput is how much a command may print on standard output, in bytes. What is
// larger goes into a file, as a blob.
const maxOutput = 64 << 20

// command is a step that is a program.
type command struct {
	args    []string
	dir     string
	env     []string
	blobs   []string // fields whose bytes it wants as files
	timeout time.Duration
}

// CommandError says how a command failed. The log keeps it.
type CommandError struct {
	// Kind is the type of the failure in the log: "exit status 3", "timeout",
	// "signal: killed", "output", "start".
	Kind string
	// Status is the exit status, -1 if it has none.
	Status int
	// Output is the end of what it printed on standard error.
	Output string
	// Err is what was wrong beyond the kind, nil if nothing is known.
	Err error
}

// Error implements error.
func (e *CommandError) Error() string {
	switch {
	case e.Err != nil:
		return e.Kind + ": " + e.Err.Error()
	case e.Output != "":
		return e.Kind + ": " + lastLine(e.Output)
	}
	return e.Kind
}

// Unwrap returns what was wrong.
func (e *CommandError) Unwrap() error { return e.Err }

// Failure is the error as the log keeps it.
func (e *CommandError) Failure() datagen.Failure {
	dump := serde.AppendString([]byte(`{"message":`), e.Error())
	dump = append(dump, fmt.Sprintf(`,"status":%d}`, e.Status)...)
	return datagen.Failure{Type: e.Kind, Dump: dump, Traceback: e.Output}
}

func lastLine(text string) string {
	return text[max(0, lastNewline(text)+1):]
}

func lastNewline(text string) int { return bytes.LastIndexByte([]byte(text), '\n') }

func (c *command) run(ctx context.Context, call *pipeline.Call) error {
	return c.do(ctx, call, nil)
}

// reduce is run with the sub-items beside the item.
func (c *command) reduce(ctx context.Context, call *pipeline.Call, subs []*datagen.Item) error {
	if subs == nil {
		subs = []*datagen.Item{}
	}
	return c.do(ctx, call, subs)
}

func (c *command) do(ctx context.Context, call *pipeline.Call, subs []*datagen.Item) error {
	scratch, err := newScratch()
	if err != nil {
		return err
	}
	defer scratch.close()
	dir := scratch.dir
	in, err := c.input(ctx, call, subs, dir)
	if err != nil {
		return err
	}
	out, err := c.execute(ctx, call, dir, in)
	if err != nil {
		return err
	}
	changes, filter, err := Changes(out, dir)
	if err != nil {
		return &CommandError{Kind: "output", Status: 0, Err: fmt.Errorf("what it printed on standard output is not the fields: %w", err)}
	}
	call.Change(changes...)
	if filter {
		call.Filter()
	}
	return nil
}

// execute runs the program and returns what it printed.
func (c *command) execute(ctx context.Context, call *pipeline.Call, dir string, in []byte) ([]byte, error) {
	running := ctx
	if c.timeout > 0 {
		var cancel context.CancelFunc
		running, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	var out limited
	var tail child.Tail
	cmd := child.Command{
		Args: c.args, Dir: c.dir, Env: slices.Concat(os.Environ(), c.environment(call, dir), c.env),
		In: bytes.NewReader(in), Out: &out, Err: &tail,
	}
	err := cmd.Run(running)
	var exit *exec.ExitError
	failed := &CommandError{Status: -1, Output: tail.String()}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && running.Err() != nil:
		failed.Kind, failed.Err = "timeout", fmt.Errorf("it took longer than %v", c.timeout)
	case errors.As(err, &exit):
		failed.Kind, failed.Status = exit.Error(), exit.ExitCode()
	case err != nil:
		failed.Kind, failed.Err = "start", err
	case out.over:
		failed.Kind, failed.Err = "output", fmt.Errorf("it printed more than %d bytes; write large values into files", maxOutput)
	default:
		return out.Bytes(), nil
	}
	return nil, failed
}

// limited keeps what is written to it, so much at most.
type limited struct {
	bytes.Buffer
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	if l.over = l.over || l.Len()+len(p) > maxOutput; l.over {
		return len(p), nil
	}
	return l.Buffer.Write(p)
}

func (c *command) environment(call *pipeline.Call, dir string) []string {
	env := []string{
		"FOLDLOG_ITEM=" + call.Item.ID,
		"FOLDLOG_STEP=" + call.Step.Name,
		"FOLDLOG_INSTANCE=" + call.Step.Instance,
		"FOLDLOG_ATTEMPT=" + strconv.Itoa(call.Try),
		"FOLDLOG_BLOBS=" + dir,
	}
	if call.Iteration >= 0 {
		env = append(env, "FOLDLOG_ITERATION="+strconv.FormatInt(call.Iteration, 10))
	}
	return env
}

// input is what a command gets on standard input: the item and which step it is.
func (c *command) input(ctx context.Context, call *pipeline.Call, subs []*datagen.Item, dir string) ([]byte, error) {
	out, err := c.itemJSON(ctx, nil, call, call.Item, dir, "in-")
	if err != nil {
		return nil, err
	}
	out = serde.AppendString(append(out, `,"step":`...), call.Step.Name)
	out = serde.AppendString(append(out, `,"instance":`...), call.Step.Instance)
	out = append(out, fmt.Sprintf(`,"attempt":%d`, call.Try)...)
	if call.Iteration >= 0 {
		out = append(out, fmt.Sprintf(`,"iteration":%d`, call.Iteration)...)
	}
	if subs != nil {
		out = append(out, `,"items":[`...)
		for i, sub := range subs {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = c.itemJSON(ctx, out, call, sub, dir, fmt.Sprintf("in-%d-", i)); err != nil {
				return nil, err
			}
			out = append(out, '}')
		}
		out = append(out, ']')
	}
	return append(out, "}\n"...), nil
}

// itemJSON is an item without its closing brace.
func (c *command) itemJSON(ctx context.Context, out []byte, call *pipeline.Call, item *datagen.Item, dir, prefix string) ([]byte, error) {
	out = serde.AppendString(append(out, `{"item":`...), item.ID)
	out = serde.AppendString(append(out, `,"root":`...), item.Root)
	if parent, _, index, ok := datagen.SplitSubItem(item.ID); ok && item.Parent == parent {
		out = serde.AppendString(append(out, `,"parent":`...), item.Parent)
		out = append(out, fmt.Sprintf(`,"index":%d`, index)...)
	}
	out = serde.AppendString(append(out, `,"status":`...), string(cmp.Or(item.Status, datagen.StatusRunning)))
	out = append(out, `,"fields":{`...)
	for i := range item.Fields {
		f := &item.Fields[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(serde.AppendString(out, f.Name), ':')
		var err error
		if out, err = c.fieldJSON(ctx, out, call, f, filepath.Join(dir, prefix+strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// fieldJSON is a value, or the list of those that were appended.
func (c *command) fieldJSON(ctx context.Context, out []byte, call *pipeline.Call, f *datagen.FieldState, file string) ([]byte, error) {
	if f.Appended {
		out = append(out, '[')
	}
	for i := range f.Values {
		if i > 0 {
			out = append(out, ',')
		}
		v, path := f.Values[i].Value, ""
		if v.Kind == datagen.Blob && slices.Contains(c.blobs, f.Name) {
			path = file + "-" + strconv.Itoa(i)
			b, err := call.BlobOf(ctx, v.Blob)
			if err != nil {
				return nil, fmt.Errorf("field %q: %w", f.Name, err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				return nil, err
			}
		}
		out = append(out, ValueJSON(v, path)...)
	}
	if f.Appended {
		out = append(out, ']')
	}
	return out, nil
}
