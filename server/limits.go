package server

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/foldlog/foldlog/metrics"
)

// Limits bound what clients can make the server hold. A zero field is its
// default.
type Limits struct {
	// Body is the most bytes of one request's body: [DefaultBody].
	Body int64
	// Bodies is the most bytes of all bodies that are being read or handled:
	// [DefaultBodies]. A request that would go beyond is answered 503, with Retry-After.
	Bodies int64
	// Connections is how many there may be at once: [DefaultConnections].
	// Further ones wait to be accepted.
	Connections int
	// Subscribers is how many event streams there may be: [DefaultSubscribers].
	Subscribers int
	// Header is how long the head of a request may take, Read the whole of it,
	// Write an answer, Idle the next request: [DefaultHeaderTime] and so on.
	Header, Read, Write, Idle time.Duration
	// Listing is how long a list of logs waits for streams that were just found to be
	// read: [DefaultListingTime].
	Listing time.Duration
}

// Defaults of [Limits].
const (
	DefaultBody        = 16 << 20
	DefaultBodies      = 256 << 20
	DefaultConnections = 12_000
	DefaultSubscribers = 4096
	DefaultHeaderTime  = 10 * time.Second
	DefaultReadTime    = 60 * time.Second
	DefaultWriteTime   = 60 * time.Second
	DefaultIdleTime    = 5 * time.Minute
	DefaultListingTime = time.Second
)

const (
	// maxHeaderBytes is the most bytes of a request's head.
	maxHeaderBytes = 32 << 10
	// maxLine is the longest line that is taken in; no reader holds longer ones.
	maxLine = metrics.MaxLine
	// maxJSON is the most bytes of a body that is not a stream's.
	maxJSON = 1 << 20
)

func (l Limits) withDefaults() Limits {
	set := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if l.Body == 0 {
		l.Body = DefaultBody
	}
	if l.Bodies == 0 {
		l.Bodies = DefaultBodies
	}
	if l.Connections == 0 {
		l.Connections = DefaultConnections
	}
	if l.Subscribers == 0 {
		l.Subscribers = DefaultSubscribers
	}
	set(&l.Header, DefaultHeaderTime)
	set(&l.Read, DefaultReadTime)
	set(&l.Write, DefaultWriteTime)
	set(&l.Idle, DefaultIdleTime)
	set(&l.Listing, DefaultListingTime)
	return l
}

// budget is bytes that requests share.
type budget struct {
	mu   sync.Mutex
	left int64
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// bounded lets a request through whose body fits, within the time there is.
func (s *Server) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Now().Add(s.limits.Read + s.limits.Write))
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &timedBody{ReadCloser: r.Body, control: control, until: time.Now().Add(s.limits.Read)}
		body.limit(body.until) // also of what no handler reads
		r.Body = body
		if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
			refuse(w, http.StatusUnsupportedMediaType, "bodies come as they are, without an encoding")
			return
		}
		if r.Method == http.MethodPut && r.URL.Path == objectsPath {
			next.ServeHTTP(w, r) // which see to it themselves
			return
		}
		size := r.ContentLength
		if size > s.limits.Body {
			refuse(w, http.StatusRequestEntityTooLarge, "the body is larger than the server takes")
			return
		}
		if size < 0 {
			size = s.limits.Body
		}
		if !s.bodies.take(size) {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, "too many requests at once")
			return
		}
		defer s.bodies.give(size)
		r.Body = http.MaxBytesReader(w, body, s.limits.Body)
		next.ServeHTTP(w, r)
	})
}

// timedBody is a body that has to come in time. Once it is there the time is over that
// its reading may take: what is done with it may take longer.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time
	begun   bool
}

func (b *timedBody) limit(t time.Time) { _ = b.control.SetReadDeadline(t) }

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.limit(b.until) // whatever was set meanwhile
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.limit(time.Time{})
	}
	return n, err
}

// connections is how many there may be: what the limits say, or less where the system
// gives the process few files, some of which it needs for logs.
func (l *Limits) connections(files uint64) int {
	most := max(files/2, files-min(files, filesForLogs))
	return int(min(uint64(l.Connections), most))
}

// filesForLogs is how many files are left for logs, if there are many.
const filesForLogs = 4096

// limitListener accepts so many connections at once.
type limitListener struct {
	net.Listener
	slots chan struct{}
	open  func(delta int64)
	once  sync.Once
	done  chan struct{}
}

func newLimitListener(l net.Listener, n int, open func(delta int64)) *limitListener {
	return &limitListener{Listener: l, slots: make(chan struct{}, n), open: open, done: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	l.open(1)
	return &limitedConn{Conn: c, free: func() { l.open(-1); <-l.slots }}, nil
}

// Close implements net.Listener.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	once sync.Once
	free func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}
