package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// itemClaim is an item that a client works on.
type itemClaim struct {
	id     string
	key    string // that it was asked for with, or empty
	stream *datagen.Stream
	lease  time.Duration

	mu   sync.Mutex // over what follows; held while something is written
	seen time.Time
	done []doneKey
}

// doneKey is a request that was carried out.
type doneKey struct {
	key, what string
	answer    wire.ClaimState
}

// keptKeys is how many requests of a claim are remembered. A client that waits for
// each answer needs one.
const keptKeys = 64

// defaultItemLease is how long a client may be silent that does not say.
const defaultItemLease = time.Minute

func (c *itemClaim) silent(now time.Time) bool {
	if !c.mu.TryLock() {
		return false // it is at work
	}
	defer c.mu.Unlock()
	return now.Sub(c.seen) > c.lease
}

type claimItemInput struct {
	ID   string `path:"id" maxLength:"64"`
	Body struct {
		Items   []string    `json:"items" minItems:"1" maxItems:"10000" doc:"the first of these that has work left and that nobody has is claimed; where the search begins is drawn"`
		Tags    wire.Object `json:"tags,omitempty" doc:"of an item that is new"`
		Rerun   bool        `json:"rerun,omitempty" doc:"with one item: begin it once more if it has ended"`
		Parent  string      `json:"parent,omitempty" maxLength:"4096" doc:"with one item: it is a sub-item of this one, which must be there"`
		LeaseMS int64       `json:"lease_ms,omitempty" minimum:"0" maximum:"86400000" doc:"how long the client may be silent, a minute if 0"`
		Key     string      `json:"key,omitempty" maxLength:"200" doc:"drawn by the client for each claim that it wants, at random: the same request with the same key gives the claim that was given, as long as there is one"`
		Most    int         `json:"max_attempts,omitempty" minimum:"0" doc:"leave items out whose latest attempt failed and that had so many"`
	}
}

func (s *Server) claimItem(ctx context.Context, in *claimItemInput) (*struct{ Body wire.ItemClaim }, error) {
	l, err := s.mayWriteTo(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	x, err := l.ready(ctx)
	if err != nil {
		return nil, s.answer(err)
	}
	var answer wire.ItemClaim
	err = l.write(ctx, func(w *datagenWriter) error {
		c, err := l.once(ctx, w, in, func() (c *itemClaim, err error) {
			c, answer.Waiting, err = s.claimFirst(ctx, l, w, x, in)
			return c, err
		})
		if c != nil {
			answer = c.shown()
		}
		return err
	})
	if err != nil {
		return nil, s.answer(err)
	}
	return &struct{ Body wire.ItemClaim }{answer}, nil
}

// claimFirst goes through the items, from some place on, until one can be had. If none
// can, so many are with others.
func (s *Server) claimFirst(ctx context.Context, l *datagenLog, w *datagenWriter, x *datagen.Index, in *claimItemInput) (c *itemClaim, waiting int, err error) {
	items := in.Body.Items
	opts, err := in.create(x)
	if err != nil {
		return nil, 0, err
	}
	first := mathrand.IntN(len(items))
	for i := range items {
		item := items[(first+i)%len(items)]
		if len(items) > 1 && !wanted(x, item, in.Body.Most) {
			continue
		}
		stream, err := w.Open(ctx, item, opts)
		switch {
		case err == nil:
			return l.claimed(w, stream, in), 0, nil
		case len(items) == 1:
			return nil, 0, err
		case errors.Is(err, datagen.ErrHeld):
			waiting++
		case errors.Is(err, datagen.ErrEnded), errors.Is(err, datagen.ErrFault):
		default:
			return nil, 0, err
		}
	}
	return nil, waiting, nil
}

// wanted tells whether the index has work left in an item.
func wanted(x *datagen.Index, item string, most int) bool {
	sum, ok := x.Item(item)
	return !ok || !sum.Status.Finished() && (most == 0 || sum.Status != datagen.StatusFailed || int(sum.Attempt)+1 < most)
}

func (in *claimItemInput) create(x *datagen.Index) (opts datagen.CreateOptions, err error) {
	b := &in.Body
	if (b.Rerun || b.Parent != "") && len(b.Items) > 1 {
		return opts, problem(http.StatusUnprocessableEntity, "rerun and parent go with one item")
	}
	opts.Rerun = b.Rerun
	if len(b.Tags) > 0 {
		if opts.Tags, err = datagen.CanonicalJSON(b.Tags); err != nil {
			return opts, problem(http.StatusUnprocessableEntity, "tags: "+err.Error())
		}
	}
	if b.Parent != "" {
		parent, ok := x.Item(b.Parent)
		if !ok {
			return opts, problem(http.StatusNotFound, "there is no such parent")
		}
		opts.Parent, opts.Root = parent.ID, parent.Root
	}
	return opts, nil
}

// claimed keeps a stream for its client.
func (l *datagenLog) claimed(w *datagenWriter, stream *datagen.Stream, in *claimItemInput) *itemClaim {
	lease := time.Duration(in.Body.LeaseMS) * time.Millisecond
	if lease == 0 {
		lease = defaultItemLease
	}
	c := &itemClaim{id: rand.Text(), key: in.Body.Key, stream: stream, lease: lease, seen: time.Now()}
	l.writing.Lock()
	defer l.writing.Unlock()
	w.keep(c)
	return c
}

// shown is the answer to who asked for the claim, who lives.
func (c *itemClaim) shown() wire.ItemClaim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = time.Now()
	answer := wire.ItemClaim{Claim: c.id, LeaseMS: c.lease.Milliseconds(), Attempt: c.stream.Attempt(), Epoch: c.stream.Epoch(), Name: c.stream.ID()}
	if it := c.stream.Item(); it != nil && it.Creations > 0 && it.LastSeq > 0 {
		item := datagenItem(it)
		answer.Item = &item
	}
	return answer
}

// claim is what a client shows. One that is not known is gone: it was silent for too
// long, or another server gave it.
func (l *datagenLog) claim(id string) (*itemClaim, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.writer != nil {
		if c := l.writer.claims[id]; c != nil {
			return c, nil
		}
	}
	return nil, claimGone()
}

// record carries a request out once, whatever number of times it comes.
func (s *Server) record(ctx context.Context, id, claim, key, what string, do func(*datagen.Stream) error) (*struct{ Body wire.ClaimState }, error) {
	l, err := s.mayWriteTo(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := l.claim(claim)
	if err != nil {
		return nil, err
	}
	w, err := l.takeWriter(ctx)
	if err != nil {
		return nil, s.answer(err)
	}
	defer l.giveWriter(w)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = time.Now()
	for _, d := range c.done {
		switch {
		case d.key == key && d.what == what:
			return &struct{ Body wire.ClaimState }{d.answer}, nil
		case d.key == key:
			return nil, problem(http.StatusConflict, "the key was used for something else")
		}
	}
	// A client that goes away does not stop what is being made durable.
	if err := do(c.stream); err != nil {
		return nil, s.answer(c.lost(l, err))
	}
	return c.told(l, key, what), nil
}

// lost forgets a claim whose stream is of no use any more.
func (c *itemClaim) lost(l *datagenLog, err error) error {
	for _, final := range []error{datagen.ErrFenced, datagen.ErrUnsure, datagen.ErrClosed, datagen.ErrHeld} {
		if errors.Is(err, final) {
			l.forget(c)
			return claimGone()
		}
	}
	return err
}

func (l *datagenLog) forget(c *itemClaim) {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.writer != nil && l.writer.claims[c.id] == c {
		l.writer.forget(c)
	}
}

// told remembers what was done. The claim of an item that has ended stays until its
// lease is over, so that a repeated request is answered.
func (c *itemClaim) told(l *datagenLog, key, what string) *struct{ Body wire.ClaimState } {
	it := c.stream.Item()
	answer := wire.ClaimState{Item: it.ID, LastSeq: wire.Integer(it.LastSeq), Attempt: c.stream.Attempt(), Open: !it.Status.Finished()}
	c.done = append(c.done, doneKey{key, what, answer})
	if len(c.done) > keptKeys {
		c.done = c.done[1:]
	}
	return &struct{ Body wire.ClaimState }{answer}
}

func stepFrom(b *wire.StepBody) datagen.Step {
	s := datagen.Step{Name: b.Name, Index: b.Index, Instance: b.Instance, Iteration: b.Iteration}
	if s.Instance == "" {
		s.Instance = b.Name
	}
	return s
}

type checkpointInput struct {
	ID    string `path:"id" maxLength:"64"`
	Claim string `path:"claim" maxLength:"64"`
	Body  struct {
		Key     string            `json:"key" minLength:"1" maxLength:"200" doc:"drawn by the client for this checkpoint; a repetition has the same"`
		Step    wire.StepBody     `json:"step"`
		Changes []wire.ChangeBody `json:"changes,omitempty" maxItems:"100000"`
		End     datagen.End       `json:"end,omitempty" enum:",completed,filtered" doc:"end the item as well"`
	}
}

func (s *Server) checkpoint(ctx context.Context, in *checkpointInput) (*struct{ Body wire.ClaimState }, error) {
	b := &in.Body
	changes := make([]datagen.Change, len(b.Changes))
	for i := range b.Changes {
		v, err := changedValue(&b.Changes[i])
		if err != nil {
			return nil, problem(http.StatusUnprocessableEntity, fmt.Sprintf("change of %.100q: %v", b.Changes[i].Name, err))
		}
		changes[i] = datagen.Set(b.Changes[i].Name, v)
		changes[i].Append = b.Changes[i].Append
	}
	what, err := json.Marshal(b)
	if err != nil {
		return nil, s.answer(err)
	}
	step := stepFrom(&b.Step)
	return s.record(ctx, in.ID, in.Claim, b.Key, digest("checkpoint", what), func(stream *datagen.Stream) error {
		ctx := context.WithoutCancel(ctx)
		if b.End != "" {
			return stream.CheckpointEnd(ctx, step, changes, b.End)
		}
		return stream.Checkpoint(ctx, step, changes)
	})
}

// digest stands for a request.
func digest(what string, body []byte) string {
	return what + " " + datagen.Checksum(body)
}

// changedValue is what a client says a field has.
func changedValue(c *wire.ChangeBody) (v datagen.Value, err error) {
	raw := bytes.TrimSpace(c.Value)
	if v.Kind = c.Kind; v.Kind == "" {
		v.Kind = kindOf(raw)
	}
	switch v.Kind {
	case datagen.Int:
		var n wire.Integer
		err = n.UnmarshalJSON(raw)
		v.Int = int64(n)
	case datagen.Float:
		var n wire.Number
		err = n.UnmarshalJSON(raw)
		v.Float = float64(n)
	case datagen.Bool:
		err = json.Unmarshal(raw, &v.Bool)
	case datagen.Str:
		err = json.Unmarshal(raw, &v.Str)
	case datagen.Blob:
		var b []byte
		err = json.Unmarshal(raw, &b)
		v = datagen.BlobValue(serde.NotNil(b))
	default:
		v.JSON, err = datagen.CanonicalJSON(json.RawMessage(raw))
	}
	return v, err
}

// kindOf is the kind that a JSON value is by itself.
func kindOf(raw []byte) datagen.ValueKind {
	switch {
	case len(raw) == 0:
		return datagen.JSON
	case raw[0] == '"':
		return datagen.Str
	case raw[0] == 't', raw[0] == 'f':
		return datagen.Bool
	case raw[0] == '-', raw[0] >= '0' && raw[0] <= '9':
		if bytes.ContainsAny(raw, ".eE") {
			return datagen.Float
		}
		return datagen.Int
	}
	return datagen.JSON
}

type failInput struct {
	ID    string `path:"id" maxLength:"64"`
	Claim string `path:"claim" maxLength:"64"`
	Body  struct {
		Key       string         `json:"key" minLength:"1" maxLength:"200"`
		Step      *wire.StepBody `json:"step,omitempty" doc:"left out outside of steps"`
		Type      string         `json:"type" minLength:"1" maxLength:"4096"`
		Message   string         `json:"message,omitempty"`
		Traceback string         `json:"traceback,omitempty"`
	}
}

func (s *Server) failItem(ctx context.Context, in *failInput) (*struct{ Body wire.ClaimState }, error) {
	b := &in.Body
	what, err := json.Marshal(b)
	if err != nil {
		return nil, s.answer(err)
	}
	dump := append(serde.AppendString([]byte(`{"message":`), b.Message), '}')
	f := datagen.Failure{Type: b.Type, Dump: dump, Traceback: b.Traceback}
	return s.record(ctx, in.ID, in.Claim, b.Key, digest("fail", what), func(stream *datagen.Stream) error {
		if b.Step == nil {
			return stream.Fail(context.WithoutCancel(ctx), nil, f)
		}
		step := stepFrom(b.Step)
		return stream.Fail(context.WithoutCancel(ctx), &step, f)
	})
}

type endInput struct {
	ID    string `path:"id" maxLength:"64"`
	Claim string `path:"claim" maxLength:"64"`
	Body  struct {
		Key string      `json:"key" minLength:"1" maxLength:"200"`
		End datagen.End `json:"end" enum:"completed,filtered"`
	}
}

func (s *Server) endItem(ctx context.Context, in *endInput) (*struct{ Body wire.ClaimState }, error) {
	return s.record(ctx, in.ID, in.Claim, in.Body.Key, "end "+string(in.Body.End), func(stream *datagen.Stream) error {
		return stream.End(context.WithoutCancel(ctx), in.Body.End)
	})
}

type claimRefInput struct {
	ID    string `path:"id" maxLength:"64"`
	Claim string `path:"claim" maxLength:"64"`
}

func (s *Server) renewClaim(ctx context.Context, in *claimRefInput) (*struct{}, error) {
	l, err := s.mayWriteTo(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	c, err := l.claim(in.Claim)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = time.Now()
	return nil, nil
}

// releaseClaim gives an item up. A claim that is gone is given up already.
func (s *Server) releaseClaim(ctx context.Context, in *claimRefInput) (*struct{}, error) {
	l, err := s.mayWriteTo(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	c, err := l.claim(in.Claim)
	if err != nil {
		return nil, nil
	}
	l.forget(c)
	return nil, s.answer(c.stream.Close(context.WithoutCancel(ctx)))
}
