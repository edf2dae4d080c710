package server

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// stats are the counters of /metrics, in the text format of Prometheus.
type stats struct {
	connections, subscribers atomic.Int64
	ingestBytes, ingestLines atomic.Int64
	ingestSyncs              atomic.Int64
	indexed, indexErrors     atomic.Int64
	answered                 atomic.Int64

	mu       sync.Mutex
	requests map[requestKey]*histogram
}

type requestKey struct {
	route string
	code  int
}

// bounds are the upper ends of the buckets of durations, in seconds.
var bounds = [...]float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 5, 30}

type histogram struct {
	buckets [len(bounds)]int64
	count   int64
	sum     float64
}

func (h *histogram) add(v float64) {
	h.count++
	h.sum += v
	for i, bound := range bounds {
		if v <= bound {
			h.buckets[i]++
		}
	}
}

func (s *stats) request(route string, code int, took time.Duration) {
	s.answered.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = map[requestKey]*histogram{}
	}
	key := requestKey{route, code}
	h := s.requests[key]
	if h == nil {
		h = &histogram{}
		s.requests[key] = h
	}
	h.add(took.Seconds())
}

// write spells everything.
func (s *stats) write(b *bytes.Buffer, gauges map[string]int64) {
	simple := func(name, kind, help string, v int64) {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n%s %d\n", name, help, name, kind, name, v)
	}
	simple("foldlog_connections", "gauge", "Open connections.", s.connections.Load())
	simple("foldlog_subscribers", "gauge", "Open event streams.", s.subscribers.Load())
	simple("foldlog_ingest_bytes_total", "counter", "Bytes appended to streams.", s.ingestBytes.Load())
	simple("foldlog_ingest_lines_total", "counter", "Lines appended to streams.", s.ingestLines.Load())
	simple("foldlog_ingest_syncs_total", "counter", "Syncs of stream files.", s.ingestSyncs.Load())
	simple("foldlog_indexed_total", "counter", "Times that a stream was read.", s.indexed.Load())
	simple("foldlog_index_errors_total", "counter", "Times that a stream could not be read.", s.indexErrors.Load())
	names := make([]string, 0, len(gauges))
	for name := range gauges {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		simple(name, "gauge", "As of now.", gauges[name])
	}
	s.writeRequests(b)
}

func (s *stats) writeRequests(b *bytes.Buffer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]requestKey, 0, len(s.requests))
	for key := range s.requests {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool {
		return keys[i].route < keys[j].route || keys[i].route == keys[j].route && keys[i].code < keys[j].code
	})
	const name = "foldlog_request_seconds"
	fmt.Fprintf(b, "# HELP %s Time to answer.\n# TYPE %s histogram\n", name, name)
	for _, key := range keys {
		h := s.requests[key]
		labels := fmt.Sprintf("route=%q,code=\"%d\"", key.route, key.code)
		for i, bound := range bounds {
			fmt.Fprintf(b, "%s_bucket{%s,le=%q} %d\n", name, labels, strconv.FormatFloat(bound, 'g', -1, 64), h.buckets[i])
		}
		fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, h.count)
		fmt.Fprintf(b, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, labels, h.sum, name, labels, h.count)
	}
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

type routeKey struct{}

// counted counts requests by the pattern that they matched, never by what their
// path says.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		rec := &recorder{ResponseWriter: w}
		route := "refused"
		defer func() { s.stats.request(route, rec.status, time.Since(start)) }()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), routeKey{}, &route)))
	})
}

// routed notes which pattern a request has matched.
func routed(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if route, ok := r.Context().Value(routeKey{}).(*string); ok && r.Pattern != "" {
				*route = r.Pattern
			}
		}()
		mux.ServeHTTP(w, r)
	})
}
