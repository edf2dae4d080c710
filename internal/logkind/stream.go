package logkind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/metricsview"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/remote"
)

// metricsKind is the metrics stream of a training run.
type metricsKind struct{ World }

var _ Kind = metricsKind{}

// metricsFormat is the version of the format as the general verbs show it.
const metricsFormat = "v1"

func (metricsKind) Name() string { return MetricsStream }

func (metricsKind) Identify(c Candidate) (string, error) {
	if c.Info != nil && c.Info.Mode().IsRegular() && metrics.IsStream(c.Start) {
		return c.Path, nil
	}
	return "", nil
}

func (metricsKind) Parts(string) []string { return nil }

func (k metricsKind) Summarize(_ context.Context, log string, _ SummarizeOptions) (Summary, error) {
	f, err := k.Open(log)
	if err != nil {
		return Summary{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Summary{}, err
	}
	s := Summary{State: StateGood, Bytes: info.Size(), ModifiedMS: info.ModTime().UnixMilli()}
	slug, err := metricsview.FirstSlug(f)
	if err != nil {
		return s, err
	}
	end, err := metricsview.EndingOf(f, info.Size())
	if err != nil {
		return s, err
	}
	s.Detail = cmp.Or(slug, noOpen) + end.String()
	return s, nil
}

// noOpen is said of a stream without a slug.
const noOpen = "no open"

// streamWords is what Summarize says, of a stream at a server.
func streamWords(l remote.Log) string {
	end := metricsview.Ending{Opened: true, Stepped: l.Stepped, Done: l.Ended, Step: l.Step, Failure: l.Failure, Signal: l.Signal}
	return cmp.Or(l.Slug, noOpen) + end.String()
}

// StreamDetail is the detail of an inspection of a metrics stream.
type StreamDetail struct {
	Slug        string                `json:"slug"`
	Description string                `json:"description"`
	Status      string                `json:"status"`      // running, done or failed
	Interrupted string                `json:"interrupted"` // the signal that stopped the newest process, "" if none did
	StreamID    string                `json:"stream_id"`   // as a server names it
	Segments    []metricsview.Segment `json:"segments"`    // one per process
	TornBytes   int64                 `json:"torn_bytes"`  // of a last line without its newline
	BadLines    int64                 `json:"bad_lines"`   // that are no events, the torn one aside
}

func (k metricsKind) Inspect(ctx context.Context, log string) (Inspection, error) {
	found := Inspection{Path: log, Kind: k.Name(), Format: metricsFormat, State: StateGood, Files: 1}
	run, err := k.ReadRun(ctx, log)
	if err != nil {
		return found, err
	}
	checked, err := k.Verify(ctx, log, VerifyOptions{})
	if err != nil {
		return found, err
	}
	if len(checked.Faults) > 0 {
		found.State = StateFaulty
	}
	f := &run.Fold
	found.Bytes, found.Events, found.FirstMS, found.LastMS = run.Bytes, f.Events, f.FirstTSMS, f.LastTSMS
	if v := f.Metadata.Text("sexpgpu"); v != "" {
		found.Program = "sexpgpu " + v
	}
	series := 0
	for _, c := range f.Curves() {
		series += len(c.Series)
	}
	found.Counts = map[string]int64{
		"processes": int64(len(f.Segments)), "metrics": f.Metrics, "annotations": int64(len(f.Marks)),
		"curves": int64(len(f.Curves())), "series": int64(series), "checkpoints": int64(len(f.MarksOf(metrics.NoteCheckpoint))),
	}
	found.Notes = streamNotes(run, checked)
	found.Detail = &StreamDetail{Slug: f.Slug, Description: f.Description, Status: f.Status.String(), Interrupted: f.Interrupted(),
		StreamID: metrics.StreamID(run.FirstLine), Segments: metricsview.SegmentsOf(f), TornBytes: run.Torn, BadLines: run.Bad}
	return found, nil
}

// streamNotes are the words about a stream, its identity first.
func streamNotes(run *metricsview.Run, checked Verification) []string {
	f := &run.Fold
	notes := []string{fmt.Sprintf("run %s is %s", f.Slug, metricsview.StatusText(f))}
	if f.Slug == "" {
		notes[0] = "no open names the run"
	}
	for i, seg := range f.Segments {
		for _, c := range seg.Changes {
			notes = append(notes, fmt.Sprintf("process %d opened with another %s: %s", i+1, c.Path, metricsview.ChangeText(c)))
		}
	}
	const most = 5
	for i, p := range checked.Faults {
		if i == most {
			notes = append(notes, fmt.Sprintf("%s more; foldlog verify lists them", cli.Plural(int64(len(checked.Faults)-most), "fault")))
			break
		}
		notes = append(notes, p.What)
	}
	for _, p := range checked.Notes {
		notes = append(notes, p.What)
	}
	return notes
}

// maxPlaces bounds what one verification lists of each sort.
const maxPlaces = 10_000

func (k metricsKind) Verify(ctx context.Context, log string, opts VerifyOptions) (Verification, error) {
	v := Verification{Format: metricsFormat}
	f, err := k.Open(log)
	if err != nil {
		return v, err
	}
	defer f.Close()
	sum, err := metrics.Check(metricsview.Watched(ctx, f, opts.Progress), metrics.CheckOptions{}, func(found metrics.Finding) {
		list := &v.Faults
		switch {
		case errors.Is(found.Err, metrics.ErrTorn):
			list = &v.Notes
		case found.Warning:
			list = &v.Warnings
		}
		if len(*list) < maxPlaces {
			*list = append(*list, Place{File: k.NameOf(log), Offset: &found.Offset, What: found.Error()})
		}
	})
	v.Events, v.Bytes = sum.Events, sum.Bytes
	return v, err
}

// Cat prints every event, those behind a bad line too, and then fails if there
// was one that no resume explains.
func (k metricsKind) Cat(ctx context.Context, log string, w io.Writer, opts CatOptions) error {
	f, err := k.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	var n int64
	var bad metricsview.BadLines
	var writeErr error
	err = metrics.ReadStream(metricsview.Watched(ctx, f, nil), func(it *metrics.Item) {
		bad.See(it)
		if it.Kind != metrics.ItemEvent || writeErr != nil {
			return
		}
		if n++; n >= opts.From {
			writeErr = writeLine(w, it.Line)
		}
	})
	if writeErr != nil {
		return writeErr
	}
	if err != nil {
		return err
	}
	return bad.Err()
}

func writeLine(w io.Writer, line []byte) error {
	if _, err := w.Write(line); err != nil {
		return err
	}
	_, err := w.Write([]byte{'\n'})
	return err
}

// errStreamFault ends the copy of a stream at its first fault.
type errStreamFault struct{ metrics.Finding }

func (e *errStreamFault) Error() string { return e.Finding.Error() }

func (e *errStreamFault) Unwrap() error { return e.Err }

func (e *errStreamFault) Hint() string {
	return "foldlog verify lists every fault; foldlog cp --salvage copies what is sound"
}

// Copy copies the whole lines that are there when it begins, byte for byte.
func (k metricsKind) Copy(ctx context.Context, log, dest string, opts CopyOptions) (done CopyStats, err error) {
	f, err := k.Open(log)
	if err != nil {
		return CopyStats{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return CopyStats{}, err
	}
	end, events, fault, err := checkPrefix(ctx, f, info.Size())
	if err == nil && fault != nil {
		if !opts.Salvage {
			return CopyStats{}, fault
		}
		all := events
		end, events, _, err = checkPrefix(ctx, f, fault.Offset)
		if err == nil && events == 0 {
			err = cli.WithHint(fmt.Errorf("no event is sound before the first fault: %s cannot be saved: %w", cli.Plural(all, "event"), fault),
				"nothing was copied; foldlog cat prints what can be read")
		}
		done.Lost = leftOut(dest, fmt.Errorf("the copy ends with event %d before the first fault, %s behind it are left out: %w", events, cli.Plural(all-events, "event"), fault))
	}
	if err != nil {
		return CopyStats{}, err
	}
	done.Events, done.Bytes = events, end
	return done, copyPrefix(ctx, f, dest, end, opts.Progress)
}

// checkPrefix finds the end of the last whole line before size, how many events
// there are, and the first fault.
func checkPrefix(ctx context.Context, f File, size int64) (end, events int64, fault *errStreamFault, err error) {
	end = size
	sum, err := metrics.Check(metricsview.UntilCancelled(ctx, io.NewSectionReader(f, 0, size)), metrics.CheckOptions{}, func(found metrics.Finding) {
		switch {
		case errors.Is(found.Err, metrics.ErrTorn):
			end = found.Offset
		case !found.Warning && fault == nil:
			fault = &errStreamFault{found}
		}
	})
	return end, sum.Events, fault, err
}

// copyPrefix writes the first bytes of a file to a new one. On an error
// nothing is left.
func copyPrefix(ctx context.Context, f File, dest string, n int64, progress func(done, total int64)) (err error) {
	out, err := os.OpenFile(dest, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(dest)
		}
	}()
	_, err = io.Copy(out, metricsview.Watched(ctx, metricsview.Part{Reader: io.NewSectionReader(f, 0, n), Source: f}, progress))
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// ReadRun reads and folds a whole stream.
func (w World) ReadRun(ctx context.Context, path string) (*metricsview.Run, error) {
	f, err := w.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return metricsview.Read(ctx, f, w.NameOf(path))
}
