package optuna

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// ImportOptions configure [Import]. The zero value is ready for use.
type ImportOptions struct {
	// Journal says what the header of the journal says: see [journal.Build].
	Journal journal.WriterOptions
	// Fault hears of every line that is not what it must be, in order.
	Fault func(*LineError)
	// Progress hears of the bytes read.
	Progress func(done int64)
}

// ImportStats tells what [Import] made.
type ImportStats struct {
	// Lines is how many lines there were, Studies and Trials how many of these the
	// journal holds, deleted studies and their trials included.
	Lines           int64
	Studies, Trials int
	// Ignored counts records that have no effect in Optuna either, such as a
	// second creation of a study, or a change of a trial that had ended.
	Ignored int64
	// Lost counts lines that could not be used. A torn last line is none: it never
	// was part of the log. Repaired counts those of which a record was saved, and
	// blank ones.
	Lost, Repaired int64
	// Torn tells that the last line is torn.
	Torn bool
}

// Import makes a journal at path of a file that Optuna's JournalStorage wrote, of
// any release. Studies and trials keep their numbers, operations the times that
// the file gives. Lines that cannot be used are reported and skipped. The file is
// read once, line by line. On an error, [journal.ErrExist] if something is at path
// already, or [ErrNoLog], no journal is made.
func Import(ctx context.Context, in io.Reader, path string, opts ImportOptions) (*ImportStats, error) {
	im := &importer{opts: opts, dists: map[distKey]study.Distribution{}}
	err := journal.Build(ctx, path, opts.Journal, func(b *journal.Builder) error {
		im.history = history{fold: study.NewFold(), out: b}
		return im.run(newLogReader(in))
	})
	if err != nil {
		return nil, err
	}
	snap := im.history.Snapshot()
	im.done.Studies, im.done.Trials = snap.NumStudies(), snap.NumTrials()
	return &im.done, nil
}

// history is a journal that is being made. It implements target.
type history struct {
	fold *study.Fold
	out  *journal.Builder
	// worker and at are what the next operations carry.
	worker, at uint64
	buf        []byte
	// broken is why the journal could not be written.
	broken error
}

func (h *history) Snapshot() *study.Snapshot { return h.fold.Snapshot() }

func (h *history) AtMillis() uint64 { return h.at }

func (h *history) Apply(op study.Op) error {
	b, err := study.AppendOp(h.buf[:0], op)
	if err != nil {
		return err
	}
	h.buf = b
	if err := h.fold.Apply(h.out.NextSeq(), h.worker, h.at, op); err != nil {
		return err
	}
	if h.broken == nil {
		h.broken = h.out.Append(h.worker, h.at, b)
	}
	return h.broken
}

// importer applies records one after another.
type importer struct {
	opts    ImportOptions
	history history
	done    ImportStats
	dists   map[distKey]study.Distribution
	lost    *LineError // the first
}

func (im *importer) run(r *logReader) error {
	for n := 0; ; n++ {
		rec, err := r.next()
		if errors.Is(err, io.EOF) {
			im.done.Lines = r.line
			if im.lost != nil && im.history.Snapshot().NumStudies() == 0 {
				return fmt.Errorf("%w: %d of its %d lines cannot be used, the first: %w", ErrNoLog, im.done.Lost, r.line, im.lost)
			}
			return nil
		}
		if err := im.take(r, rec, err); err != nil {
			return err
		}
		if im.opts.Progress != nil && n%1000 == 0 {
			im.opts.Progress(r.read)
		}
	}
}

// take applies a record, or tells what is wrong with its line. The error ends the
// import.
func (im *importer) take(r *logReader, rec record, err error) error {
	var fault *LineError
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	if fault != nil {
		im.tell(fault)
	}
	if rec == nil {
		return nil
	}
	err = im.apply(rec)
	switch {
	case im.history.broken != nil:
		return im.history.broken
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrFinished), errors.Is(err, ErrDuplicate), errors.Is(err, errIncompatible):
		im.done.Ignored++
	case err != nil:
		im.tell(&LineError{r.line, fmt.Errorf("%w: %w", ErrLine, err)})
	}
	return nil
}

func (im *importer) tell(fault *LineError) {
	switch {
	case errors.Is(fault, ErrTorn):
		im.done.Torn = true
	case errors.Is(fault, ErrBlank), errors.Is(fault, ErrGlued):
		im.done.Repaired++
	default:
		if im.done.Lost++; im.lost == nil {
			im.lost = fault
		}
	}
	if im.opts.Fault != nil {
		im.opts.Fault(fault)
	}
}

// apply does what Optuna does on reading a record.
func (im *importer) apply(rec record) error {
	code, err := rec.int("op_code")
	if err != nil {
		return err
	}
	if rec.has("worker_id") {
		if id, err := rec.text("worker_id"); err == nil {
			im.history.worker = workerOf(id)
		}
	}
	c := change{target: &im.history, known: im.known}
	switch code {
	case opCreateStudy, opDeleteStudy, opSetStudyUserAttr, opSetStudySystemAttr:
		return im.applyStudy(c, code, rec)
	case opCreateTrial:
		return im.createTrial(c, rec)
	case opSetTrialParam, opSetTrialStateValues, opSetTrialIntermediateValue, opSetTrialUserAttr, opSetTrialSystemAttr:
		return im.applyTrial(c, code, rec)
	}
	return fmt.Errorf("%w: op_code %d", ErrInvalid, code)
}

// workerOf makes a worker id of the text that Optuna names a worker by, the same
// each time and exact in JSON.
func workerOf(id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return h.Sum64() >> 11
}

func (im *importer) known(id study.StudyID, name string) (study.Distribution, bool) {
	d, ok := im.dists[distKey{id, name}]
	return d, ok
}

func (im *importer) applyStudy(c change, code int64, rec record) error {
	if code == opCreateStudy {
		return im.createStudy(c, rec)
	}
	id, err := rec.int("study_id")
	if err != nil {
		return err
	}
	if code == opDeleteStudy {
		return c.deleteStudy(id)
	}
	key, side := "user_attr", userSide
	if code == opSetStudySystemAttr {
		key, side = "system_attr", systemSide
	}
	attrs, err := rec.attrs(key, side)
	for _, a := range attrs {
		err = errors.Join(err, c.setStudyAttr(id, a))
	}
	return err
}

func (im *importer) createStudy(c change, rec record) error {
	name, err := rec.text("study_name")
	if err != nil {
		return err
	}
	numbers, err := rec.floats("directions")
	if err != nil {
		return err
	}
	directions := make([]study.Direction, len(numbers))
	for i, n := range numbers {
		if n == 2 {
			directions[i] = study.Maximize
		}
	}
	_, err = c.createStudy(name, directions)
	return err
}
