// Package streamtest has a small server of the stream protocol for tests. It
// keeps streams in memory and misbehaves on command.
package streamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"
)

// Fault is what becomes of one request. The zero value is an honest answer.
type Fault struct {
	// Status, if not 0, is answered instead of doing anything.
	Status int
	// RetryAfter is sent with Status, in whole seconds.
	RetryAfter time.Duration
	// Delay passes before anything else, or until the client gives up.
	Delay time.Duration
	// Half stores the lines and breaks off in the middle of the answer.
	Half bool
	// Lost breaks the connection before anything is stored.
	Lost bool
}

// Receiver is a server of the stream protocol.
type Receiver struct {
	// URL is the root to give to a client.
	URL string

	token  string
	fault  func(n int) Fault
	server *httptest.Server

	mu      sync.Mutex
	posts   int
	streams map[string][]byte
}

// New starts a receiver. Requests must carry the token, if it is not empty.
// The function tells the fate of the n-th request, from 1; nil is no fault.
// The caller closes it.
func New(token string, fault func(n int) Fault) *Receiver {
	r := &Receiver{token: token, fault: fault, streams: map[string][]byte{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/runs/{slug}/streams/{id}", r.post)
	r.server = httptest.NewServer(mux)
	r.URL = r.server.URL
	return r
}

// Close stops the server.
func (r *Receiver) Close() { r.server.Close() }

// Posts is how many requests have come.
func (r *Receiver) Posts() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.posts
}

// Stream returns the bytes of a stream.
func (r *Receiver) Stream(slug, id string) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.streams[slug+"/"+id])
}

// Streams returns all streams by "slug/id".
func (r *Receiver) Streams() map[string][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.streams)
}

// Put replaces the bytes of a stream.
func (r *Receiver) Put(slug, id string, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams[slug+"/"+id] = bytes.Clone(b)
}

func (r *Receiver) post(w http.ResponseWriter, req *http.Request) {
	fault := r.next()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if fault.Delay > 0 {
		select {
		case <-req.Context().Done():
			panic(http.ErrAbortHandler)
		case <-time.After(fault.Delay):
		}
	}
	switch {
	case fault.Lost:
		panic(http.ErrAbortHandler)
	case fault.Status != 0:
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(fault.RetryAfter.Seconds())))
		}
		problem(w, fault.Status, "as told", -1)
	case r.token != "" && req.Header.Get("Authorization") != "Bearer "+r.token:
		problem(w, http.StatusUnauthorized, "wrong token", -1)
	default:
		r.append(w, req, body, fault.Half)
	}
}

func (r *Receiver) next() Fault {
	r.mu.Lock()
	r.posts++
	n := r.posts
	r.mu.Unlock()
	if r.fault == nil {
		return Fault{}
	}
	return r.fault(n)
}

func (r *Receiver) append(w http.ResponseWriter, req *http.Request, body []byte, half bool) {
	slug, id := req.PathValue("slug"), req.PathValue("id")
	offset, err := strconv.ParseInt(req.URL.Query().Get("offset"), 10, 64)
	if err != nil || offset < 0 || len(body) > 0 && body[len(body)-1] != '\n' {
		problem(w, http.StatusBadRequest, "whole lines at an offset, please", -1)
		return
	}
	r.mu.Lock()
	have := r.streams[slug+"/"+id]
	length := int64(len(have))
	overlap := min(max(length-offset, 0), int64(len(body)))
	conflict := ""
	switch {
	case offset > length:
		conflict = "a gap"
	case !bytes.Equal(have[min(offset, length):][:overlap], body[:overlap]):
		conflict = "other bytes"
	default:
		have = append(bytes.Clone(have), body[overlap:]...)
		if len(have) > 0 {
			r.streams[slug+"/"+id] = have
		}
	}
	r.mu.Unlock()
	if conflict != "" {
		problem(w, http.StatusConflict, conflict, length)
		return
	}
	answer, err := json.Marshal(map[string]any{"run": slug, "stream": id, "offset": len(have), "page": r.URL + "/runs/" + slug})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
	if half {
		answer = answer[:len(answer)/2]
	}
	w.Write(answer)
}

func problem(w http.ResponseWriter, status int, detail string, expected int64) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	at := ""
	if expected >= 0 {
		at = fmt.Sprintf(`,"expected":%d`, expected)
	}
	fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q%s}`, http.StatusText(status), status, detail, at)
}
