package datagencmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline/pipefile"
	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/datagenview"
	"github.com/foldlog/foldlog/internal/serde"
)

// request is one line of the input of a session. Which fields count depends
// on what is to be done.
type request struct {
	ID   json.RawMessage `json:"id"`
	Do   string          `json:"do"`
	Item string          `json:"item"`
	// Of item and sub:
	Tags  json.RawMessage `json:"tags"`
	Rerun bool            `json:"rerun"`
	// Of sub, and the step of checkpoint and fail:
	Step      string `json:"step"`
	Index     int64  `json:"index"`
	Instance  string `json:"instance"` // the step's name if empty
	Iteration *int64 `json:"iteration"`
	// Of checkpoint: the fields as commands print them, with paths of blobs.
	Fields json.RawMessage `json:"fields"`
	// Of checkpoint and end.
	End datagen.End `json:"end"`
	// Of fail.
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Of keys, and of next: which list, the latest if there is none.
	Keys []string `json:"keys"`
	List int      `json:"list"`
	// Of blob: the event and what it must be, and the file to write.
	Event    string `json:"event"`
	Size     int64  `json:"size"`
	Checksum string `json:"checksum"`
	To       string `json:"to"`
}

func (s *conversation) do(ctx context.Context, r *request) (any, error) {
	switch r.Do {
	case "open":
		return sessionLog{s.log.Pipeline(), s.log.Experiment(), s.writer.Run()}, nil
	case "item", "sub":
		return s.openItem(ctx, r)
	case "checkpoint":
		return s.checkpoint(ctx, r)
	case "fail":
		return s.fail(ctx, r)
	case "end":
		return s.end(ctx, r)
	case "close":
		return s.closeItem(ctx, r)
	case "keys":
		return s.keys(ctx, r)
	case "next":
		return s.next(r)
	case "blob":
		return s.blob(ctx, r)
	}
	return nil, cli.Usagef("there is no request %q; there are open, item, sub, checkpoint, fail, end, close, keys, next and blob", r.Do)
}

// sessionLog is the answer to the request open.
type sessionLog struct {
	Pipeline   string `json:"pipeline"`
	Experiment string `json:"experiment"`
	Run        string `json:"run"`
}

// sessionItem is the answer to item, sub and next: an item that is open in this
// session, unless it has ended.
type sessionItem struct {
	Item    string            `json:"item"`
	Root    string            `json:"root"`
	Parent  string            `json:"parent"` // "" for a root
	Status  datagen.Status    `json:"status"`
	Attempt int32             `json:"attempt"`
	Tags    json.RawMessage   `json:"tags"`
	Steps   []sessionStepDone `json:"steps"` // that are complete, in order
}

// sessionStepDone is a step that is complete, and what it changed.
type sessionStepDone struct {
	Step     string          `json:"step"`
	Instance string          `json:"instance"`
	Changes  []sessionChange `json:"changes"`
}

// sessionChange is a change of a field.
type sessionChange struct {
	Name   string            `json:"name"`
	Append bool              `json:"append"`
	Kind   datagen.ValueKind `json:"kind"`
	Value  json.RawMessage   `json:"value"` // as commands get it
	Event  string            `json:"event"` // that holds it, for the request blob
}

// openItem begins or resumes an item. One that has ended is told as it is.
func (s *conversation) openItem(ctx context.Context, r *request) (any, error) {
	opts := datagen.CreateOptions{Rerun: r.Rerun}
	if len(r.Tags) > 0 && string(r.Tags) != "null" {
		tags, err := datagen.CanonicalJSON(r.Tags)
		if err != nil {
			return nil, cli.Usagef("tags: %v", err)
		}
		opts.Tags = tags
	}
	var stream *datagen.Stream
	var err error
	if r.Do == "item" {
		if r.Item == "" {
			return nil, cli.Usagef("item: the item is missing")
		}
		stream, err = s.writer.Open(ctx, r.Item, opts)
	} else {
		var parent *datagen.Stream
		if parent, err = s.stream(r.Item); err == nil {
			stream, err = parent.Sub(ctx, r.Step, r.Index, opts)
		}
	}
	var over *datagen.EndedError
	if errors.As(err, &over) {
		return s.viewItem(ctx, over.Item)
	}
	if err != nil {
		return nil, err
	}
	return s.opened(ctx, stream)
}

func (s *conversation) opened(ctx context.Context, stream *datagen.Stream) (any, error) {
	s.mu.Lock()
	s.streams[stream.ID()] = stream
	s.mu.Unlock()
	item := stream.Item()
	if item == nil {
		item = &datagen.Item{ID: stream.ID(), Root: stream.ID(), Status: datagen.StatusPending}
	}
	return s.viewItem(ctx, item)
}

// viewItem tells an item with what each of its steps changed, so that a program can
// go through its steps anew and find the fields as they were.
func (s *conversation) viewItem(ctx context.Context, item *datagen.Item) (sessionItem, error) {
	v := sessionItem{item.ID, item.Root, item.Parent, item.Status, item.Attempt, datagenview.TagsOf(item.Tags), []sessionStepDone{}}
	if len(item.Steps) == 0 {
		return v, nil
	}
	view, err := s.log.View(ctx)
	if err != nil {
		return v, err
	}
	events, err := view.Events(ctx, item.ID)
	if err != nil {
		return v, err
	}
	changed := map[string][]datagen.Delta{}
	for _, c := range datagen.Trajectory(events) {
		changed[c.ID] = append(changed[c.ID], c.Changes...)
	}
	for _, step := range item.Steps {
		done := sessionStepDone{step.Name, cmp.Or(step.Instance, step.Name), []sessionChange{}}
		for _, d := range changed[step.From.Checkpoint] {
			done.Changes = append(done.Changes, sessionChange{d.Name, d.Append, d.New.Kind, pipefile.ValueJSON(d.New.Value, ""), d.New.Blob.Event})
		}
		v.Steps = append(v.Steps, done)
	}
	return v, nil
}

// stream is an item that is open in this session.
func (s *conversation) stream(item string) (*datagen.Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.streams[item]
	if stream == nil {
		return nil, cli.Usagef("item %q is not open in this session", item)
	}
	return stream, nil
}

// forget closes an item.
func (s *conversation) forget(ctx context.Context, item string) error {
	s.mu.Lock()
	stream := s.streams[item]
	delete(s.streams, item)
	s.mu.Unlock()
	if stream == nil {
		return nil
	}
	return stream.Close(ctx)
}

func (r *request) step() datagen.Step {
	return datagen.Step{Name: r.Step, Index: r.Index, Instance: cmp.Or(r.Instance, r.Step), Iteration: r.Iteration}
}

func (s *conversation) checkpoint(ctx context.Context, r *request) (any, error) {
	stream, err := s.stream(r.Item)
	if err != nil {
		return nil, err
	}
	fields := r.Fields
	if len(fields) == 0 || string(fields) == "null" {
		fields = json.RawMessage("{}")
	}
	changes, filter, err := pipefile.Changes(fields, "")
	switch {
	case err != nil:
		return nil, &cli.UsageError{Err: fmt.Errorf("checkpoint: fields: %w", err)}
	case filter:
		r.End = datagen.EndFiltered
	}
	if r.End == "" {
		return struct{}{}, stream.Checkpoint(ctx, r.step(), changes)
	}
	if err := stream.CheckpointEnd(ctx, r.step(), changes, r.End); err != nil {
		return nil, err
	}
	return struct{}{}, s.forget(ctx, r.Item)
}

func (s *conversation) fail(ctx context.Context, r *request) (any, error) {
	stream, err := s.stream(r.Item)
	if err != nil {
		return nil, err
	}
	dump := append(serde.AppendString([]byte(`{"message":`), r.Message), '}')
	f := datagen.Failure{Type: r.Type, Dump: dump, Traceback: r.Traceback}
	if r.Step == "" {
		return struct{}{}, stream.Fail(ctx, nil, f)
	}
	step := r.step()
	return struct{}{}, stream.Fail(ctx, &step, f)
}

func (s *conversation) end(ctx context.Context, r *request) (any, error) {
	stream, err := s.stream(r.Item)
	if err != nil {
		return nil, err
	}
	if err := stream.End(ctx, r.End); err != nil {
		return nil, err
	}
	return struct{}{}, s.forget(ctx, r.Item)
}

func (s *conversation) closeItem(ctx context.Context, r *request) (any, error) {
	return struct{}{}, s.forget(ctx, r.Item)
}

// keys begins to share a list of items with other workers.
func (s *conversation) keys(ctx context.Context, r *request) (any, error) {
	claims, err := s.writer.Claims(ctx, r.Keys, datagen.ClaimsOptions{})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	s.claims[s.lists] = claims
	return sessionKeys{s.lists}, nil
}

// sessionKeys is the answer to keys.
type sessionKeys struct {
	List int `json:"list"`
}

// next is the next of them that has work left, null once there is none.
func (s *conversation) next(r *request) (any, error) {
	s.mu.Lock()
	list := cmp.Or(r.List, s.lists)
	claims, known := s.claims[list], list > 0 && list <= s.lists
	s.mu.Unlock()
	switch {
	case !known:
		return nil, cli.Usagef("next: there are no keys; the request keys gives them")
	case claims == nil: // all have ended
		return nil, nil
	}
	stream, err := claims.Next(s.waits)
	if errors.Is(err, io.EOF) {
		s.mu.Lock()
		delete(s.claims, list)
		s.mu.Unlock()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.opened(s.waits, stream)
}

// blob writes the bytes of a blob into a file.
func (s *conversation) blob(ctx context.Context, r *request) (any, error) {
	if r.To == "" {
		return nil, cli.Usagef("blob: the file is missing")
	}
	v, err := s.log.View(ctx)
	if err != nil {
		return nil, err
	}
	b, err := v.Blob(ctx, datagen.BlobRef{Event: r.Event, Size: r.Size, Checksum: r.Checksum})
	if err != nil {
		return nil, err
	}
	return struct{}{}, os.WriteFile(r.To, b, 0o600)
}
