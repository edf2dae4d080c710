package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/foldlog/foldlog/server/internal/projection"
)

// Event streams. Whoever watches everything gets a message for each thing that has
// changed; the last ones are kept, so that a client that was away goes on where it
// was, or is told to read anew.

const (
	// gatherFor is how long changes of one thing are gathered into a message.
	gatherFor = 200 * time.Millisecond
	// keptMessages is how many are kept for those who come back.
	keptMessages = 4096
	// heartbeat is how often a beat is sent, whatever else is.
	heartbeat = 15 * time.Second
	// slowest is how long a client may take to take one message.
	slowest = 20 * time.Second
)

// message is one event of a stream.
type message struct {
	seq  uint64
	kind string
	data []byte
}

// broker hands messages to everybody who watches.
type broker struct {
	most  int
	stats *stats
	boot  string // of this process: other processes count from 1 too

	telling sync.Mutex // one at a time, so that nothing is told after what came later

	mu      sync.Mutex
	seq     uint64
	kept    []message
	changed map[string]change // by kind and name: what is waiting to be told
	changes uint64            // so far
	waiting bool
	news    chan struct{} // closed and replaced with each message
	topics  map[string]chan struct{}
	ended   chan struct{}
	once    sync.Once
	count   int
}

func newBroker(most int, stats *stats) *broker {
	return &broker{most: most, stats: stats, boot: strconv.FormatInt(time.Now().UnixNano(), 36), changed: map[string]change{},
		news: make(chan struct{}), topics: map[string]chan struct{}{}, ended: make(chan struct{})}
}

// change is the newest change of a thing, the at-th of all.
type change struct {
	topic string
	at    uint64
	what  func() (any, bool)
}

func (b *broker) close() { b.once.Do(func() { close(b.ended) }) }

// change tells that a thing has changed. What is told is asked for when its time
// has come; several changes are one message. It never waits.
func (b *broker) change(kind, name string, what func() (any, bool)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	topic := kind + " " + name
	if c := b.topics[topic]; c != nil {
		close(c)
		delete(b.topics, topic)
	}
	b.changes++
	b.changed[topic] = change{topic, b.changes, what}
	if !b.waiting {
		b.waiting = true
		time.AfterFunc(gatherFor, b.tell)
	}
}

// tell makes messages of what has changed, in that order: a thing that is gone and there
// again is there.
func (b *broker) tell() {
	b.telling.Lock()
	defer b.telling.Unlock()
	b.mu.Lock()
	changed := slices.SortedFunc(maps.Values(b.changed), func(a, b change) int { return cmp.Compare(a.at, b.at) })
	b.changed, b.waiting = map[string]change{}, false
	b.mu.Unlock()
	var list []message
	for _, c := range changed {
		v, ok := c.what()
		if !ok {
			continue
		}
		kind, _, _ := strings.Cut(c.topic, " ")
		if data, err := json.Marshal(v); err == nil {
			list = append(list, message{kind: kind, data: data})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range list {
		b.seq++
		m.seq = b.seq
		b.kept = append(b.kept, m)
	}
	if over := len(b.kept) - keptMessages; over > 0 {
		b.kept = append([]message(nil), b.kept[over:]...)
	}
	close(b.news)
	b.news = make(chan struct{})
}

// topic is closed when a thing changes next.
func (b *broker) topic(kind, name string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := kind + " " + name
	c := b.topics[key]
	if c == nil {
		c = make(chan struct{})
		b.topics[key] = c
	}
	return c
}

// since returns the messages after one, and what to wait for. It is false if they
// are no longer all there.
func (b *broker) since(seq uint64) ([]message, <-chan struct{}, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if seq > b.seq || seq < b.seq && (len(b.kept) == 0 || seq+1 < b.kept[0].seq) {
		return nil, b.news, false
	}
	return b.kept[len(b.kept)-int(b.seq-seq):], b.news, true
}

func (b *broker) last() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// enter counts a subscriber, if there may be one more.
func (b *broker) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.count >= b.most {
		return false
	}
	b.count++
	b.stats.subscribers.Add(1)
	return true
}

func (b *broker) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count--
	b.stats.subscribers.Add(-1)
}

// eventStream writes server-sent events.
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
	ended   <-chan struct{}
	within  time.Duration // that the client may take for one message
	next    time.Time     // when the next beat is due
}

// stream answers with an event stream that run writes. It ends when the client
// goes, the server shuts down, or run returns.
func (s *Server) stream(run func(*eventStream)) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		r, w := humago.Unwrap(hc)
		if !s.live.enter() {
			w.Header().Set("Retry-After", "10")
			refuse(w, http.StatusServiceUnavailable, "too many event streams")
			return
		}
		defer s.live.leave()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		e := &eventStream{w: w, control: http.NewResponseController(w), ctx: r.Context(), ended: s.live.ended,
			within: min(slowest, s.limits.Write)}
		if e.beat() {
			run(e)
		}
	}}
}

// beat shows that the stream is whole, which a client cannot see otherwise: one that
// hears none for long has lost it, or is behind something that holds it back. It has
// the time, since the client's clock may be wrong, and no id: nothing is missed with it.
func (e *eventStream) beat() bool {
	now := time.Now()
	e.next = now.Add(heartbeat)
	return e.write(fmt.Sprintf("event: beat\ndata: {\"now_ms\":%d}\n\n", now.UnixMilli()))
}

func (e *eventStream) send(id, kind string, data []byte) bool {
	if !time.Now().Before(e.next) && !e.beat() {
		return false
	}
	return e.write(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, kind, data))
}

func (e *eventStream) write(text string) bool {
	_ = e.control.SetWriteDeadline(time.Now().Add(e.within))
	if _, err := e.w.Write([]byte(text)); err != nil {
		return false
	}
	return e.control.Flush() == nil
}

// wait waits for news, and beats meanwhile.
func (e *eventStream) wait(news ...<-chan struct{}) bool {
	due := time.NewTimer(time.Until(e.next))
	defer due.Stop()
	var second <-chan struct{}
	if len(news) > 1 {
		second = news[1]
	}
	for {
		select {
		case <-news[0]:
			return true
		case <-second:
			return true
		case <-due.C:
			if !e.beat() {
				return false
			}
			due.Reset(heartbeat)
		case <-e.ctx.Done():
			return false
		case <-e.ended:
			return false
		}
	}
}

type liveInput struct {
	Last string `header:"Last-Event-ID" maxLength:"100" doc:"of the last event that was seen"`
	From string `query:"from" maxLength:"100" doc:"the same, for a client that cannot set the header"`
}

func (s *Server) registerLive(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/live", "live", "Everything that changes, as server-sent events", "live")
	op.Description = "Events: run (a RunItem), run-gone ({slug}), study (a StudyItem), study-gone ({id}), experiment (an ExperimentItem), experiment-gone ({id}), reset ({}): events were missed, read everything anew. An event is at most a second behind the file."
	streamed(&op)
	huma.Register(api, op, func(_ context.Context, in *liveInput) (*huma.StreamResponse, error) {
		last := in.Last
		if last == "" {
			last = in.From
		}
		return s.stream(func(e *eventStream) { s.live.follow(e, last) }), nil
	})
}

// streamed makes the document say that the answer is an event stream.
func streamed(op *huma.Operation) {
	op.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
	}}}
}

func (b *broker) follow(e *eventStream, last string) {
	seq := b.last()
	if last != "" {
		boot, text, _ := strings.Cut(last, "-")
		n, err := strconv.ParseUint(text, 10, 64)
		if _, _, ok := b.since(n); err == nil && boot == b.boot && ok {
			seq = n
		} else if !e.send(b.id(seq), "reset", []byte("{}")) {
			return
		}
	}
	for {
		list, news, ok := b.since(seq)
		if !ok {
			seq = b.last()
			if !e.send(b.id(seq), "reset", []byte("{}")) {
				return
			}
			continue
		}
		for _, m := range list {
			if !e.send(b.id(m.seq), m.kind, m.data) {
				return
			}
			seq = m.seq
		}
		if len(list) == 0 && !e.wait(news) {
			return
		}
	}
}

func (b *broker) id(seq uint64) string { return b.boot + "-" + strconv.FormatUint(seq, 10) }

// goneItem tells of a thing that has been removed.
type goneItem struct {
	Slug string `json:"slug,omitempty"`
	ID   string `json:"id,omitempty"`
}

// runChanged hears from the projection.
func (s *Server) runChanged(slug string, run *projection.Run) {
	if run == nil {
		s.live.change("run-gone", slug, func() (any, bool) { return goneItem{Slug: slug}, s.store.Run(slug) == nil })
		return
	}
	s.live.change("run", slug, func() (any, bool) {
		now := s.store.Run(slug)
		if now == nil {
			return nil, false
		}
		return s.itemOf(now), true
	})
}
