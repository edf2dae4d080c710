package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/logkind"
)

var errBadLine = errors.New("bad line")

// lineKind is a small kind of log for the tests of the general verbs: a file
// that begins with "lines\n" and has one event a line. "bad" is a damaged
// event, and one that has "stubborn" cannot be interrupted well. Its parts are
// PATH.d.
type lineKind struct{}

var _ logkind.Kind = lineKind{}

func (lineKind) Name() string { return "line log" }

func (lineKind) Identify(c logkind.Candidate) (string, error) {
	if bytes.HasPrefix(c.Start, []byte("lines\n")) {
		return c.Path, nil
	}
	if log, ok := strings.CutSuffix(c.Path, ".d"); ok && c.Info != nil && c.Info.IsDir() {
		return log, nil
	}
	return "", nil
}

func (lineKind) Parts(log string) []string { return []string{log + ".d"} }

func (lineKind) events(log string) ([]string, error) {
	data, err := os.ReadFile(log)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(strings.TrimPrefix(string(data), "lines\n"), "\n")
	return lines[:len(lines)-1], nil
}

func (k lineKind) Summarize(_ context.Context, log string, _ logkind.SummarizeOptions) (logkind.Summary, error) {
	events, err := k.events(log)
	return logkind.Summary{State: logkind.StateGood, Bytes: 2048, ModifiedMS: 1_000_000, Detail: cli.Plural(int64(len(events)), "event")}, err
}

func (k lineKind) Inspect(_ context.Context, log string) (logkind.Inspection, error) {
	events, err := k.events(log)
	return logkind.Inspection{
		Path: log, Kind: k.Name(), Format: "v1", State: logkind.StateGood, Bytes: 2048, Files: 1,
		Events: int64(len(events)), FirstMS: 1_000_000, LastMS: 1_060_000,
		Counts:  map[string]int64{"trials": 1200, "studies": 1},
		Writers: []logkind.Writer{{Name: "7\x1b", Events: 2, Bytes: 10, LastMS: 1_060_000}},
		Notes:   []string{"12 unpublished bytes"},
	}, err
}

func (k lineKind) Verify(_ context.Context, log string, opts logkind.VerifyOptions) (logkind.Verification, error) {
	v := logkind.Verification{Format: "v1"}
	events, err := k.events(log)
	offset := int64(len("lines\n"))
	for i, e := range events {
		if e == "bad\n" {
			at := offset
			v.Faults = append(v.Faults, logkind.Place{File: log, Offset: &at, Seq: int64(i) + 1, What: "bad line"})
		}
		if e == "odd\n" {
			v.Warnings = append(v.Warnings, logkind.Place{File: log, Seq: int64(i) + 1, What: "odd line"})
		}
		offset += int64(len(e))
		opts.Progress(offset, offset)
	}
	v.Events, v.Bytes = int64(len(events)), offset
	return v, err
}

func (k lineKind) Cat(_ context.Context, log string, w io.Writer, opts logkind.CatOptions) error {
	events, err := k.events(log)
	if opts.From == 0 {
		io.WriteString(w, "lines\n")
	}
	for i, e := range events {
		if e == "bad\n" {
			return errBadLine
		}
		if int64(i)+1 >= opts.From {
			io.WriteString(w, e)
		}
	}
	return err
}

func (k lineKind) Tail(ctx context.Context, log string, w io.Writer, opts logkind.TailOptions) error {
	events, err := k.events(log)
	for _, e := range events[max(0, len(events)-int(opts.Last)):] {
		io.WriteString(w, e)
	}
	if opts.Follow {
		<-ctx.Done()
		if slices.Contains(events, "stubborn\n") {
			io.WriteString(w, "draining\n")
			select {}
		}
		return ctx.Err()
	}
	return err
}

func (k lineKind) Copy(_ context.Context, log, dest string, opts logkind.CopyOptions) (logkind.CopyStats, error) {
	events, err := k.events(log)
	if err != nil {
		return logkind.CopyStats{}, err
	}
	var done logkind.CopyStats
	body := "lines\n"
	for _, e := range events {
		if e == "bad\n" {
			done.Lost = errBadLine
			break
		}
		body += e
		done.Events++
	}
	if done.Lost != nil && !opts.Salvage {
		return logkind.CopyStats{}, done.Lost
	}
	done.Bytes = int64(len(body))
	return done, os.WriteFile(dest, []byte(body), 0o666)
}

// result is what one command line did.
type result struct {
	status         int
	stdout, stderr string
}

// foldlog runs one command line with the line log as the only kind, in a
// directory that holds the files. The clock stands at 1,120 s.
func foldlog(t *testing.T, ctx context.Context, files map[string]string, args ...string) result {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, body := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return here(ctx, args...)
}

// here is foldlog in the directory of the last one.
func here(ctx context.Context, args ...string) result {
	var stdout, stderr bytes.Buffer
	env := &cli.Env{
		Stdout: &stdout, Stderr: &stderr,
		Now: func() time.Time { return time.UnixMilli(1_120_000) },
	}
	status := execute(ctx, env, []logkind.Kind{lineKind{}}, args)
	return result{status, stdout.String(), stderr.String()}
}
