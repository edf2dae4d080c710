package logkind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/studyview"
	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// journalKind is the study journal.
type journalKind struct{ World }

var _ Kind = journalKind{}

// stateLive is a journal whose lease is held at this moment.
const stateLive = "live"

func (journalKind) Name() string { return StudyJournal }

// reading is how journals are read in this world.
func (w World) reading() journal.ReaderOptions { return journal.ReaderOptions{FS: w.fs()} }

func (journalKind) Identify(c Candidate) (string, error) {
	if journal.Sniff(c.Start) {
		return c.Path, nil
	}
	return journal.StudyPath(c.Path), nil
}

func (journalKind) Parts(log string) []string {
	parts := []string{log + ".d"}
	for format := uint64(1); format < journal.FormatVersion; format++ {
		parts = append(parts, journal.KeptPath(log, format))
	}
	return parts
}

func (k journalKind) Summarize(ctx context.Context, log string, opts SummarizeOptions) (Summary, error) {
	s := Summary{}
	var err error
	if s.ModifiedMS, err = journal.LastChange(log, k.reading()); err != nil {
		return s, err
	}
	reading := k.reading()
	if !opts.Deep {
		reading.FS = k.files(cheapAway)
	}
	r, err := journal.OpenReader(log, reading)
	if err != nil {
		return s, err
	}
	defer r.Close()
	if s.Bytes, err = journal.Size(log, k.reading()); err != nil {
		return s, err
	}
	if err := r.CheckTip(); err != nil {
		s.State, s.Detail = StateFaulty, err.Error()
		return s, nil
	}
	s.State = StateGood
	if _, holder := r.Holder(); holder != nil {
		s.State = stateLive
	}
	if r.Header().Format < journal.FormatVersion {
		s.Detail = fmt.Sprintf("format %d, to be migrated", r.Header().Format)
	} else {
		s.Detail, err = studyWords(ctx, r, k.whole(s.Bytes, opts))
	}
	if err != nil && ctx.Err() == nil {
		s.State, s.Detail, err = StateFaulty, err.Error(), nil
	}
	return s, err
}

// whole tells whether a journal is replayed to the end to count its trials: one that is
// small, or any if that is asked for.
func (k journalKind) whole(size int64, opts SummarizeOptions) bool {
	if k.Server != nil {
		return opts.Deep || size <= cheapAway
	}
	return opts.Deep || size <= cheapReplay
}

// cheapReplay is up to which size ls replays a journal of this machine, in bytes, and
// cheapAway one at a server, of which it reads as much at once. Of a larger one it looks
// at the first firstOps operations to find out about which study it is.
const (
	cheapReplay = 4 << 20
	cheapAway   = 256 << 10
	firstOps    = 100
)

// studyWords says what studies a journal holds, of which the first operations tell unless
// the whole is asked for.
func studyWords(ctx context.Context, r *journal.Reader, whole bool) (string, error) {
	replay := study.NewReplay()
	n := 0
	err := readRecords(ctx, r, func(rec *journal.Record) error {
		if n++; !whole && n > firstOps {
			return errFirstOps
		}
		return replay.Apply(rec)
	})
	if err != nil && !errors.Is(err, errFirstOps) {
		return "", err
	}
	snap := replay.Snapshot()
	var studies []*study.Study
	counts := studyview.StateCounts{}
	for st := range snap.Studies() {
		if st.Deleted() {
			continue
		}
		studies = append(studies, st)
		counts.Add(studyview.CountsOf(st))
	}
	words := cli.Plural(int64(len(studies)), "study")
	switch {
	case len(studies) == 1:
		words = "study " + studies[0].Config.Name
	case len(studies) > 1:
		words = cli.Count(int64(len(studies))) + " studies"
	case err == nil:
		return "no study", nil
	}
	switch {
	case err != nil:
		return words + ", " + cli.Plural(int64(r.Head().Ops), "operation"), nil
	case counts == studyview.StateCounts{}:
		return words + ", no trial", nil
	}
	return words + ", trials: " + counts.String(), nil
}

// errFirstOps ends the reading of a large journal.
var errFirstOps = errors.New("the first operations are enough")

// JournalDetail is the detail of an inspection of a study journal.
type JournalDetail struct {
	CreatedMS  uint64              `json:"created_ms"`
	CreatedBy  uint64              `json:"created_by"` // the worker that created it
	Extents    int                 `json:"extents"`    // published
	Generation uint64              `json:"generation"` // how often the lease has changed hands
	Holder     *LeaseHolder        `json:"holder"`     // who holds the lease at this moment, null if nobody does
	DataFiles  []DataFileCount     `json:"data_files"`
	Studies    []studyview.Summary `json:"studies"`
	Kept       []string            `json:"kept"` // files of older formats that migrations left
}

// LeaseHolder is who holds the lease of a journal.
type LeaseHolder struct {
	Host   string `json:"host"`    // "" if it has not said who it is
	PID    int    `json:"pid"`     // the process on that host
	Worker uint64 `json:"worker"`  // the id that its operations carry
	TermMS int64  `json:"term_ms"` // how long the lease lasts unless it is renewed
}

// DataFileCount is one data file of a journal.
type DataFileCount struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	Published int64  `json:"published"` // up to the end of its last published extent
	Extents   int    `json:"extents"`
}

func (k journalKind) Inspect(ctx context.Context, log string) (Inspection, error) {
	info, err := journal.Inspect(log, k.reading())
	if err != nil {
		return Inspection{}, err
	}
	found := Inspection{
		Path: log, Kind: k.Name(), Format: FormatName(info.Header.Format), State: StateGood, Program: info.Header.Program,
		Files: int64(1 + len(info.Files)), Counts: map[string]int64{},
	}
	if info.Holder != nil {
		found.State = stateLive
	}
	if found.Bytes, err = journal.Size(log, k.reading()); err != nil {
		return found, err
	}
	detail := &JournalDetail{
		CreatedMS: info.Header.CreatedAtMillis, CreatedBy: info.Header.CreatedBy, Extents: info.Extents,
		Generation: info.Generation, Kept: k.names(info.Kept), DataFiles: []DataFileCount{},
	}
	if h := info.Holder; h != nil {
		detail.Holder = &LeaseHolder{h.Host, h.PID, h.Worker, h.TermMillis}
	}
	found.Detail = detail
	for _, f := range info.Files {
		detail.DataFiles = append(detail.DataFiles, DataFileCount{f.Name, f.Size, f.Published, f.Extents})
		if f.Size > f.Published {
			found.Notes = append(found.Notes, fmt.Sprintf("%d unpublished bytes in %s", f.Size-f.Published, f.Name))
		}
	}
	err = k.fold(ctx, log, &found, detail)
	return found, err
}

// fold adds what the operations say.
func (k journalKind) fold(ctx context.Context, log string, found *Inspection, detail *JournalDetail) error {
	writers := map[uint64]*Writer{}
	var order []uint64
	replay := study.NewReplay()
	r, err := journal.OpenReader(log, k.reading())
	if err != nil {
		return err
	}
	defer r.Close()
	err = readRecords(ctx, r, func(rec *journal.Record) error {
		if rec.Seq == 1 {
			found.FirstMS = int64(rec.AtMillis)
		}
		found.LastMS = int64(rec.AtMillis)
		w := writers[rec.Worker]
		if w == nil {
			w = &Writer{Name: strconv.FormatUint(rec.Worker, 10)}
			writers[rec.Worker] = w
			order = append(order, rec.Worker)
		}
		w.Events++
		w.Bytes += int64(len(rec.Line))
		w.LastMS = int64(rec.AtMillis)
		found.Events++
		return replay.Apply(rec)
	})
	if err != nil {
		return err
	}
	for _, id := range order {
		found.Writers = append(found.Writers, *writers[id])
	}
	snap := replay.Snapshot()
	found.Counts["studies"] = 0
	for st := range snap.Studies() {
		if st.Deleted() {
			found.Counts["deleted studies"]++
		} else {
			found.Counts["studies"]++
		}
	}
	found.Counts["trials"] = int64(snap.NumTrials())
	detail.Studies = studyview.Summaries(snap)
	found.Notes = append(found.Notes, replay.Notes()...)
	return nil
}

// FormatName is "v6", or "" if the format is not known.
func FormatName(format uint64) string {
	if format == 0 {
		return ""
	}
	return "v" + strconv.FormatUint(format, 10)
}

// recordFunc is an applier for one pass over a journal that nobody rewinds.
type recordFunc func(*journal.Record) error

func (f recordFunc) Apply(rec *journal.Record) error { return f(rec) }
func (f recordFunc) Reset()                          {}

// readRecords hands every committed record to fn, until ctx ends.
func readRecords(ctx context.Context, r *journal.Reader, fn recordFunc) error {
	return r.Refresh(recordFunc(func(rec *journal.Record) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return fn(rec)
	}))
}

func (k journalKind) Verify(ctx context.Context, log string, opts VerifyOptions) (Verification, error) {
	var v Verification
	replay := study.NewReplay()
	add := func(list *[]Place, f journal.Finding) {
		p := Place{File: k.NameOf(f.Path), Seq: int64(f.Seq), What: f.Err.Error()}
		if f.Offset > 0 || f.Severity == journal.Fault {
			p.Offset = &f.Offset
		}
		*list = append(*list, p)
	}
	sum, err := journal.Verify(ctx, log, journal.VerifyOptions{ReaderOptions: k.reading(), Machine: replay, Progress: opts.Progress}, func(f journal.Finding) {
		switch f.Severity {
		case journal.Fault:
			add(&v.Faults, f)
		case journal.Warning:
			add(&v.Warnings, f)
		default:
			add(&v.Notes, f)
		}
	})
	if sum != nil {
		v.Format, v.Events, v.Bytes = FormatName(sum.Format), int64(sum.Ops), sum.Bytes
	}
	for _, note := range replay.Notes() {
		v.Warnings = append(v.Warnings, Place{File: k.NameOf(log), What: note})
	}
	return v, err
}

func (k journalKind) Cat(ctx context.Context, log string, w io.Writer, opts CatOptions) error {
	r, err := journal.OpenReader(log, k.reading())
	if err != nil {
		return err
	}
	defer r.Close()
	if opts.From == 0 {
		if _, err := w.Write(r.HeaderLine()); err != nil {
			return err
		}
	}
	return readRecords(ctx, r, func(rec *journal.Record) error {
		if rec.Seq < uint64(opts.From) {
			return nil
		}
		_, err := w.Write(rec.Line)
		return err
	})
}

func (k journalKind) Copy(ctx context.Context, log, dest string, opts CopyOptions) (CopyStats, error) {
	o := journal.CopyOptions{ReaderOptions: k.reading(), To: fsx.OS, Progress: opts.Progress}
	if opts.Salvage {
		done, err := journal.Salvage(ctx, log, dest, study.NewReplay(), o)
		if err != nil {
			return CopyStats{}, err
		}
		if done.Ops == 0 && done.Fault != nil {
			return CopyStats{}, errors.Join(nothingSaved(done), removeJournal(dest))
		}
		return CopyStats{Events: int64(done.Ops), Bytes: done.Bytes, Lost: leftOut(dest, salvageLoss(done))}, nil
	}
	done, err := journal.Copy(ctx, log, dest, o)
	if err != nil {
		return CopyStats{}, err
	}
	return CopyStats{Events: int64(done.Ops), Bytes: done.Bytes}, nil
}

// nothingSaved is the error of a journal whose first operation is damaged.
func nothingSaved(done *journal.CopyStats) error {
	all := "what is behind it"
	if done.Lost > 0 {
		all = cli.Plural(done.Lost, "operation")
	}
	return cli.WithHint(fmt.Errorf("no operation is sound before the first fault: %s cannot be saved: %w", all, done.Fault),
		"nothing was copied; take a copy that was made earlier")
}

// removeJournal removes a journal that was made a moment ago.
func removeJournal(path string) error {
	return errors.Join(os.Remove(path), os.RemoveAll(path+".d"))
}

// salvageLoss is why a salvaged copy ends where it does, and what is missing.
func salvageLoss(done *journal.CopyStats) error {
	end := fmt.Sprintf("the copy ends with operation %d", done.Ops)
	if done.Lost > 0 {
		end += fmt.Sprintf(", %d are lost", done.Lost)
	}
	switch {
	case done.Fault == nil:
		return nil
	case done.Guessed:
		return fmt.Errorf("%s, the last of which may never have been published: %w", end, done.Fault)
	}
	return fmt.Errorf("%s: %w", end, done.Fault)
}
