package remote

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/foldlog/foldlog/journal"
	"github.com/foldlog/foldlog/study"
)

// Journal is a study journal at a server: a [study.Storage] that folds its operations
// here.
type Journal struct {
	*study.Replica
	log *journalLog
}

var _ study.Storage = (*Journal)(nil)

// OpenJournal opens a journal at the server by its path under the server's root. It is
// [fs.ErrNotExist] if there is none. If worker is nil its id is drawn at random.
func (c *Client) OpenJournal(ctx context.Context, path string, worker *uint64) (*Journal, error) {
	log := &journalLog{c: c, path: path}
	r, err := study.OpenReplica(ctx, log, worker)
	if err != nil {
		return nil, err
	}
	return &Journal{r, log}, nil
}

// CreateJournal makes a journal at the server and opens it. The error is
// [journal.ErrExist] if the path has one already.
func (c *Client) CreateJournal(ctx context.Context, path string, worker *uint64) (*Journal, error) {
	// The server knows by created_by what it made when the answer was lost.
	by := 1 + rand.Uint64N(1<<53-1)
	var made struct{ Created bool }
	if err := c.call(ctx, "/api/v1/journals", nil, map[string]string{"path": path, "created_by": strconv.FormatUint(by, 10)}, &made); err != nil {
		return nil, fmt.Errorf("create journal: %w", err)
	}
	if !made.Created {
		return nil, fmt.Errorf("create journal: %w", journal.ErrExist)
	}
	return c.OpenJournal(ctx, path, worker)
}

// Header is that of the journal on the server's disk.
func (j *Journal) Header() journal.Header {
	j.log.mu.Lock()
	defer j.log.mu.Unlock()
	return j.log.header
}

type journalLog struct {
	c    *Client
	path string

	mu     sync.Mutex
	header journal.Header
	known  bool   // the header has been read
	mark   opMark // of the operation that was read or published last
}

// opMark tells an operation from another one that has its place in another history.
type opMark struct {
	seq, worker, atMillis uint64
}

// markJSON is how a server spells what it knows of an operation.
type markJSON struct {
	Worker uint64 `json:"worker,string"`
	AtMS   uint64 `json:"at_ms,string"`
}

// take keeps the head of an answer, if that is of the journal that was opened and goes
// on from what is known of it.
func (l *journalLog) take(head *opLine, after uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := journal.Header{Format: head.Format, Program: head.Program, CreatedAtMillis: head.CreatedMS, CreatedBy: head.CreatedBy}
	known := l.header
	if known.Format = h.Format; l.known && known != h {
		return fmt.Errorf("%s: %w", l.path, journal.ErrReplaced)
	}
	if m := head.Last; m != nil && after > 0 && l.mark.seq == after && l.mark != (opMark{after, m.Worker, m.AtMS}) {
		return fmt.Errorf("%s: %w", l.path, study.ErrRewound)
	}
	l.header, l.known = h, true
	return nil
}

func (l *journalLog) setMark(m opMark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mark = m
}

// at is what is known of the journal up to an operation, for the server to compare.
func (l *journalLog) at(after uint64) (head *headJSON, last *markJSON) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		head = &headJSON{l.header.CreatedAtMillis, l.header.CreatedBy}
	}
	if after > 0 && l.mark.seq == after {
		last = &markJSON{l.mark.worker, l.mark.atMillis}
	}
	return head, last
}

// headJSON is the identity of a journal.
type headJSON struct {
	CreatedMS uint64 `json:"created_ms,string"`
	CreatedBy uint64 `json:"created_by,string"`
}

const opsPath = "/api/v1/journals/ops"

// opLine is a line of the operations of a journal: the head, an operation, or the end.
type opLine struct {
	Format    uint64          `json:"format"`
	Program   string          `json:"program"`
	CreatedMS uint64          `json:"created_ms,string"`
	CreatedBy uint64          `json:"created_by,string"`
	Last      *markJSON       `json:"last"`
	Seq       uint64          `json:"seq,string"`
	Worker    uint64          `json:"worker,string"`
	AtMS      uint64          `json:"at_ms,string"`
	Op        json.RawMessage `json:"op"`
	End       *string         `json:"end"`
}

// Since implements [study.Log]. An answer that is cut goes on where it was.
func (l *journalLog) Since(ctx context.Context, after uint64, apply func(*journal.Record) error) error {
	for try := 1; ; try++ {
		before := after
		done, err := l.since(ctx, &after, apply)
		if done || err != nil && !errors.Is(err, errCut) {
			return err
		}
		if after != before {
			try = 1
		}
		if try == mostCuts || ctx.Err() != nil {
			return fmt.Errorf("read operations: %w", err)
		}
	}
}

func (l *journalLog) since(ctx context.Context, after *uint64, apply func(*journal.Record) error) (done bool, err error) {
	q := url.Values{"path": {l.path}, "after": {strconv.FormatUint(*after, 10)}}
	resp, err := l.c.send(ctx, &request{method: http.MethodGet, path: opsPath, query: q})
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusConflict && *after > 0 {
		return false, fmt.Errorf("%s: %w: %w", l.path, study.ErrRewound, err)
	}
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	for first := true; ; first = false {
		var line opLine
		if err := dec.Decode(&line); err != nil {
			return false, fmt.Errorf("%w: %w", errCut, err)
		}
		switch {
		case first:
			if err := l.take(&line, *after); err != nil {
				return true, err
			}
		case line.End != nil:
			io.Copy(io.Discard, resp.Body) // so that the connection is of use again
			return true, nil
		default:
			rec := &journal.Record{Seq: line.Seq, Worker: line.Worker, AtMillis: line.AtMS, Op: line.Op}
			if err := apply(rec); err != nil {
				return true, err
			}
			*after = line.Seq
			l.setMark(opMark{rec.Seq, rec.Worker, rec.AtMillis})
		}
	}
}

// signed is an operation that names its request: who does not know whether that was
// carried out by a server that is no more finds it.
func signed(op []byte, id string) []byte {
	var fields map[string]json.RawMessage
	if json.Unmarshal(op, &fields) != nil || fields[study.RequestField] != nil {
		return op
	}
	return fmt.Appendf(nil, `%s,%q:%q}`, op[:len(op)-1], study.RequestField, id)
}

// Append implements [study.Log].
func (l *journalLog) Append(ctx context.Context, after uint64, ops [][]byte) (worker, atMillis uint64, err error) {
	id := crand.Text()
	raw := make([]json.RawMessage, len(ops))
	for i, op := range ops {
		raw[i] = op
	}
	raw[0] = signed(ops[0], id)
	head, last := l.at(after)
	in := struct {
		ID    string            `json:"id"`
		After uint64            `json:"after,string"`
		Head  *headJSON         `json:"journal,omitempty"`
		Last  *markJSON         `json:"last,omitempty"`
		Ops   []json.RawMessage `json:"ops"`
	}{id, after, head, last, raw}
	var out markJSON
	tries, err := l.c.post(ctx, opsPath, url.Values{"path": {l.path}}, in, &out)
	var status *StatusError
	uncertain := func(err error) error {
		return &journal.UncertainError{First: after + 1, Last: after + uint64(len(ops)), Err: err}
	}
	if err == nil {
		l.setMark(opMark{after + uint64(len(ops)), out.Worker, out.AtMS})
		return out.Worker, out.AtMS, nil
	}
	if !errors.As(err, &status) || errors.Is(err, ErrAway) {
		return 0, 0, uncertain(err)
	}
	moved := status.Status == http.StatusPreconditionFailed
	if tries > 1 {
		// An earlier try may be what has moved the journal, and what is refused now need
		// not have been refused then.
		rec, lookErr := l.published(ctx, after, id)
		switch {
		case lookErr != nil:
			return 0, 0, uncertain(errors.Join(err, lookErr))
		case rec != nil:
			l.setMark(opMark{after + uint64(len(ops)), rec.Worker, rec.AtMillis})
			return rec.Worker, rec.AtMillis, nil
		case !moved:
			return 0, 0, uncertain(err)
		}
	}
	if moved {
		return 0, 0, fmt.Errorf("%w: %w", study.ErrConflict, err)
	}
	return 0, 0, fmt.Errorf("publish operations: %w", err)
}

// errFound ends a look at a journal.
var errFound = errors.New("found")

// published looks whether a request has published what follows after, and returns the
// first record of it, nil if others did.
func (l *journalLog) published(ctx context.Context, after uint64, id string) (found *journal.Record, err error) {
	err = l.Since(ctx, after, func(rec *journal.Record) error {
		var op map[string]json.RawMessage
		if err := json.Unmarshal(rec.Op, &op); err != nil {
			return err
		}
		if string(op[study.RequestField]) == strconv.Quote(id) {
			found = &journal.Record{Seq: rec.Seq, Worker: rec.Worker, AtMillis: rec.AtMillis}
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
