package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// opTail is the end of a journal, so that those who follow it cost little.
type opTail struct {
	mu     sync.Mutex
	reader *journal.Reader
	ops    []wire.OpRecord // without gaps, the newest last
	before *wire.OpRecord  // the one before them, nil from the beginning
	bytes  int
	used   time.Time
	sent   map[string]sentOps // by the id that a client drew
	order  []string
	busy   map[string]chan struct{} // the requests that are being carried out
}

// sentOps is an append that was answered.
type sentOps struct {
	after  uint64
	answer wire.OpsAnswer
}

const (
	// tailBytes is how much of the end of a journal is kept.
	tailBytes = 4 << 20
	// keptAppends is for how many appends a repetition is known.
	keptAppends = 1024
)

// opTails are those of the journals that are followed.
type opTails struct {
	mu   sync.Mutex
	tail map[string]*opTail
}

func (t *opTails) of(path string) *opTail {
	t.mu.Lock()
	defer t.mu.Unlock()
	tail := t.tail[path]
	if tail == nil {
		if t.tail == nil {
			t.tail = map[string]*opTail{}
		}
		tail = &opTail{sent: map[string]sentOps{}, busy: map[string]chan struct{}{}}
		t.tail[path] = tail
	}
	tail.used = time.Now()
	return tail
}

// rest lets go of the tails that nobody has asked for lately.
func (t *opTails) rest(idle time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for path, tail := range t.tail {
		if time.Since(tail.used) < idle || !tail.mu.TryLock() {
			continue
		}
		if len(tail.busy) == 0 {
			if tail.reader != nil {
				tail.reader.Close()
			}
			tail.reader = nil
			delete(t.tail, path)
		}
		tail.mu.Unlock()
	}
}

func (t *opTails) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tail := range t.tail {
		tail.mu.Lock()
		if tail.reader != nil {
			tail.reader.Close()
		}
		tail.mu.Unlock()
	}
	t.tail = nil
}

// Apply implements journal.Applier.
func (t *opTail) Apply(rec *journal.Record) error {
	t.ops = append(t.ops, recordOf(rec))
	t.bytes += len(rec.Op)
	drop := 0
	for t.bytes > tailBytes && drop < len(t.ops)-1 {
		t.bytes -= len(t.ops[drop].Op)
		drop++
	}
	if drop > 0 {
		t.before = &wire.OpRecord{Seq: t.ops[drop-1].Seq, Worker: t.ops[drop-1].Worker, AtMS: t.ops[drop-1].AtMS}
		t.ops = append([]wire.OpRecord(nil), t.ops[drop:]...)
	}
	return nil
}

// Reset implements journal.Applier.
func (t *opTail) Reset() { t.ops, t.before, t.bytes = nil, nil, 0 }

// refresh takes in what has been published, of whatever journal is there now. The caller
// holds the lock.
func (t *opTail) refresh(l *journalLog) error {
	err := t.catchUp(l)
	if lostJournal(err) {
		err = t.catchUp(l)
	}
	return err
}

func (t *opTail) catchUp(l *journalLog) error {
	if t.reader == nil {
		r, err := journal.OpenReader(l.fullPath(), journal.ReaderOptions{FS: l.owner.fs})
		if err != nil {
			return err
		}
		t.reader = r
		t.Reset()
	}
	if err := t.reader.Refresh(t); err != nil {
		t.reader.Close()
		t.reader = nil
		return err
	}
	return nil
}

// mark is that of an operation that the tail knows, nil if it does not.
func (t *opTail) mark(seq uint64) *wire.OpMark {
	for _, rec := range []*wire.OpRecord{t.before, t.at(seq)} {
		if rec != nil && uint64(rec.Seq) == seq {
			return &wire.OpMark{Worker: rec.Worker, AtMS: rec.AtMS}
		}
	}
	return nil
}

func (t *opTail) at(seq uint64) *wire.OpRecord {
	if len(t.ops) == 0 || seq < uint64(t.ops[0].Seq) || seq-uint64(t.ops[0].Seq) >= uint64(len(t.ops)) {
		return nil
	}
	return &t.ops[seq-uint64(t.ops[0].Seq)]
}

// expect refuses a client whose journal, or whose history of it, is not the one that is
// there.
func (t *opTail) expect(l *journalLog, in *appendOpsInput) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.refresh(l); err != nil {
		return err
	}
	last := t.mark(uint64(in.Body.After))
	switch {
	case t.reader.Applied() != uint64(in.Body.After):
		return errMoved
	case in.Body.Head != nil && *in.Body.Head != headOf(t.reader.Header()).JournalIdentity:
		return errMoved
	case in.Body.Last != nil && last != nil && *in.Body.Last != *last:
		return errMoved
	}
	return nil
}

// begin returns the answer to a request that came before, or lets it be carried out
// until end. One that is sent again while that is being done waits for it.
func (t *opTail) begin(ctx context.Context, id string, after uint64) (answer wire.OpsAnswer, ok bool, err error) {
	for {
		t.mu.Lock()
		got, ok := t.sent[id]
		first := t.busy[id]
		if first == nil && !ok {
			t.busy[id] = make(chan struct{})
		}
		t.mu.Unlock()
		switch {
		case ok && got.after == after:
			return got.answer, true, nil
		case ok:
			return answer, false, problem(http.StatusConflict, "the id was used for something else")
		case first == nil:
			return answer, false, nil
		}
		select {
		case <-first:
		case <-ctx.Done():
			return answer, false, problem(http.StatusServiceUnavailable, "the request is still being carried out")
		}
	}
}

func (t *opTail) end(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.busy[id])
	delete(t.busy, id)
}

func (t *opTail) remember(id string, sent sentOps) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent[id] = sent
	if t.order = append(t.order, id); len(t.order) > keptAppends {
		delete(t.sent, t.order[0])
		t.order = t.order[1:]
	}
}
