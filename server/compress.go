package server

import (
	"compress/gzip"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// compressible are the types of answers that become much smaller. Event streams and
// streams of lines are not among them: each of their pieces goes out at once.
var compressible = []string{"application/json", "application/problem+json", "application/vnd.oai.openapi+json", "application/vnd.oai.openapi",
	packedType, "text/html", "text/css", "text/javascript", "application/javascript", "image/svg+xml"}

// compressFrom is from how many bytes on it is worth it, where the length is known.
const compressFrom = 1024

// compressed sends answers compressed to clients that ask for it, except over
// loopback, where that takes longer than sending them as they are.
func compressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Header.Get("Range") != "" || !acceptsGzip(r.Header.Get("Accept-Encoding")) || fromLoopback(r.RemoteAddr) {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w}
		next.ServeHTTP(c, r)
		// A handler that panics cuts its answer, and the client is to notice.
		c.close()
	})
}

func acceptsGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType("x/" + strings.TrimSpace(part))
		if q, bad := strconv.ParseFloat(params["q"], 64); err == nil && name == "x/gzip" {
			return bad != nil || q > 0
		}
	}
	return false
}

func fromLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a socket of this machine
	}
	ip := net.ParseIP(host)
	return ip == nil || ip.IsLoopback()
}

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	return w
}}

// compressor decides by the head of an answer.
type compressor struct {
	http.ResponseWriter
	decided bool
	zip     *gzip.Writer // nil if the answer goes out as it is
}

// WriteHeader implements http.ResponseWriter.
func (c *compressor) WriteHeader(status int) {
	if !c.decided && status >= http.StatusOK {
		c.decided = true
		c.decide(status)
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *compressor) decide(status int) {
	h := c.Header()
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || !slices.Contains(compressible, kind) || h.Get("Content-Encoding") != "" ||
		status == http.StatusNoContent || status == http.StatusPartialContent || status == http.StatusNotModified {
		return
	}
	h.Add("Vary", "Accept-Encoding")
	if n, err := strconv.Atoi(h.Get("Content-Length")); err == nil && n < compressFrom {
		return
	}
	h.Del("Content-Length")
	h.Set("Content-Encoding", "gzip")
	c.zip = gzipWriters.Get().(*gzip.Writer)
	c.zip.Reset(c.ResponseWriter)
}

// Write implements io.Writer.
func (c *compressor) Write(b []byte) (int, error) {
	if !c.decided {
		c.WriteHeader(http.StatusOK)
	}
	if c.zip == nil {
		return c.ResponseWriter.Write(b)
	}
	return c.zip.Write(b)
}

// FlushError is what http.ResponseController calls.
func (c *compressor) FlushError() error {
	if c.zip != nil {
		if err := c.zip.Flush(); err != nil {
			return err
		}
	}
	return http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressor) close() {
	if c.zip == nil {
		return
	}
	_ = c.zip.Close() // the client is gone: nobody is there to be told
	c.zip.Reset(io.Discard)
	gzipWriters.Put(c.zip)
}
