package server

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// The files of datagen logs as a store of objects, for clients that read and write
// logs themselves: what works on logs in a directory works on those at a server, with
// the same fences, since these rest on nothing but objects that are put once.

const (
	objectsPath = "/api/v1/objects"
	// modifiedHeader is when an object was written, with all its digits.
	modifiedHeader = "Foldlog-Modified"
	// coordination is the directory beside a log by which its writers agree.
	coordination = "coordination"
	// mostObject is the largest object, in bytes.
	mostObject = 8 << 30
)

// objectScope is what a token must be allowed to write for a key, "" if the key is in
// no datagen log.
func objectScope(key string) string {
	if objstore.CheckKey(key) != nil || hidden(key) {
		return ""
	}
	parts := strings.Split(key, "/")
	for i, part := range parts {
		if part == datagen.Directory {
			if len(parts) < i+5 || datagen.CheckName(parts[i+1]) != nil || datagen.CheckName(parts[i+2]) != nil ||
				parts[i+3] != "log.lance" && parts[i+3] != coordination {
				return ""
			}
			return "datagen/" + parts[i+1] + "/" + parts[i+2]
		}
	}
	return ""
}

// listable tells whether a prefix is that of datagen logs.
func listable(prefix string) bool {
	dir, _, ok := strings.Cut(prefix, datagen.Directory+"/")
	return ok && (dir == "" || strings.HasSuffix(dir, "/")) && !strings.Contains(prefix, "..") && !strings.Contains(prefix, "//") &&
		!strings.HasPrefix(prefix, "/") && !hidden(strings.TrimSuffix(prefix, "/"))
}

func (s *Server) getObject(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	if objectScope(key) == "" {
		refuse(w, http.StatusNotFound, "there is no such object")
		return
	}
	f, err := fsx.OpenIn(s.root, filepath.FromSlash(key), 0, 0)
	if err != nil {
		s.refuseFor(w, err)
		return
	}
	defer f.Close()
	s.sendFile(w, r, f)
}

// refuseFor answers with an error of a package below.
func (s *Server) refuseFor(w http.ResponseWriter, err error) {
	var p *wire.Problem
	if errors.As(s.answer(err), &p) {
		refuse(w, p.Status, p.Detail)
	}
}

func (s *Server) listObjects(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	opts := objstore.ListOptions{Prefix: q.Get("prefix"), StartAfter: q.Get("after"), Delimiter: q.Get("delimiter") == "true"}
	if !listable(opts.Prefix) {
		refuse(w, http.StatusNotFound, "no datagen logs have that prefix")
		return
	}
	s.writeLines(w, func(put func(any) error) error {
		for info, err := range s.files.List(r.Context(), opts) {
			if err != nil {
				s.log.Warn("listing cut", "prefix", opts.Prefix, "err", err)
				return err
			}
			line := wire.ObjectLine{Key: info.Key, Size: info.Size}
			if !info.Modified.IsZero() {
				line.Modified = info.Modified.UTC().Format(time.RFC3339Nano)
			}
			if err := put(line); err != nil {
				return err
			}
		}
		return put(wire.ObjectLine{End: true})
	})
}

// changeObject lets a request through that may change an object.
func (s *Server) changeObject(do func(w http.ResponseWriter, r *http.Request, key string) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		scope := objectScope(key)
		if scope == "" {
			refuse(w, http.StatusNotFound, "datagen logs have no such object")
			return
		}
		err := need(r.Context(), ScopeWrite, scope)
		if err == nil {
			err = do(w, r, key)
		}
		if err != nil {
			s.refuseFor(w, err)
			return
		}
		s.datagens.wrote(key)
		w.WriteHeader(http.StatusNoContent)
	}
}

// putObject writes an object, durably before the answer. With If-None-Match: * the key
// must be free.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request, key string) error {
	body := &pacedReader{r: http.MaxBytesReader(w, r.Body, mostObject), control: http.NewResponseController(w), within: s.limits.Read}
	switch r.Header.Get("If-None-Match") {
	case "*":
		return s.putNew(r, key, body)
	case "":
	default:
		return problem(http.StatusBadRequest, "If-None-Match is * or nothing")
	}
	out, err := s.files.Create(r.Context(), key)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, body); err != nil {
		return body.problem(err)
	}
	return out.Close()
}

// putNew holds the whole body, since the bytes decide who has won a key.
func (s *Server) putNew(r *http.Request, key string, body *pacedReader) error {
	size := r.ContentLength
	if size < 0 {
		return problem(http.StatusLengthRequired, "say how long the object is")
	}
	if size > s.limits.Bodies/2 {
		return problem(http.StatusRequestEntityTooLarge, "the object is larger than the server takes at once")
	}
	if !s.bodies.take(size) {
		return problem(http.StatusServiceUnavailable, "too many requests at once")
	}
	defer s.bodies.give(size)
	b := make([]byte, size)
	if _, err := io.ReadFull(body, b); err != nil {
		return body.problem(err)
	}
	err := s.files.PutIfAbsent(r.Context(), key, b)
	if errors.Is(err, objstore.ErrExists) {
		return problem(http.StatusPreconditionFailed, "there is such an object")
	}
	return err
}

// problem tells what went wrong where a body was stored: it, or the disk.
func (p *pacedReader) problem(err error) error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, "the object is larger than the server takes")
	case errors.Is(p.err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "the object does not come in time")
	case p.err != nil, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return problem(http.StatusBadRequest, "the object is cut")
	}
	return err
}

// pacedReader lets a long body go on as long as it comes, pacedBytes within the time
// for one request.
type pacedReader struct {
	r       io.Reader
	control *http.ResponseController
	within  time.Duration
	since   int
	err     error // of the body
}

// pacedBytes is how much of a long body or answer has to pass within the time there is.
const pacedBytes = 256 << 10

// Read implements io.Reader.
func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	if err != io.EOF {
		p.err = err
	}
	if p.since += n; p.since > pacedBytes && err == nil {
		p.since = 0
		_ = p.control.SetReadDeadline(time.Now().Add(p.within))
		_ = p.control.SetWriteDeadline(time.Now().Add(2 * p.within))
	}
	return n, err
}

func (s *Server) deleteObject(_ http.ResponseWriter, r *http.Request, key string) error {
	return s.files.Delete(r.Context(), key)
}

func (s *Server) registerObjects(api huma.API) {
	s.mux.HandleFunc("GET "+objectsPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("key") {
			s.getObject(w, r)
		} else {
			s.listObjects(w, r)
		}
	})
	s.mux.HandleFunc("PUT "+objectsPath, s.changeObject(s.putObject))
	s.mux.HandleFunc("DELETE "+objectsPath, s.changeObject(s.deleteObject))
	add := func(method, id, summary, doc string, status int, params ...*huma.Param) {
		op := operation(method, objectsPath, id, summary, "objects")
		op.Description, op.Parameters = doc, params
		op.Responses = map[string]*huma.Response{strconv.Itoa(status): {Description: http.StatusText(status)}}
		api.OpenAPI().AddOperation(&op)
	}
	key := textParam("key", "path of the file of a datagen log under the root")
	add(http.MethodGet, "get-object", "A file of a datagen log, or a list of them",
		"With key the bytes, parts of them by Range; "+modifiedHeader+" says when they were written. Without, JSON lines: an ObjectLine for each file whose path begins with prefix, "+
			"in order, after a key, with delimiter=true what is below the next slash as one. Without a last line with end the answer is cut.",
		http.StatusOK, key, textParam("prefix", "of the paths"), textParam("after", "a key that comes before"), textParam("delimiter", "true or nothing"))
	add(http.MethodPut, "put-object", "Write a file of a datagen log", "Durable before the answer. With If-None-Match: * it must not be there: 412 if it is.", http.StatusNoContent, key)
	add(http.MethodDelete, "delete-object", "Remove a file of a datagen log", "One that is not there is no error.", http.StatusNoContent, key)
}

// textParam describes a parameter of a query that huma does not read itself.
func textParam(name, doc string) *huma.Param {
	return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeString}}
}
