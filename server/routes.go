package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/foldlog/foldlog/internal/version"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// routes builds the API and its document from the same types.
func (s *Server) routes() {
	config := huma.DefaultConfig("Foldlog", version.Number())
	config.OpenAPIPath, config.DocsPath, config.SchemasPath = "", "", ""
	config.CreateHooks = nil
	config.Info.Description = "Metrics streams, study journals and datagen logs under one root. docs/http-api.md tells the rest."
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":   {Type: "http", Scheme: "bearer"},
		"session": {Type: "apiKey", In: "cookie", Name: sessionCookie},
	}
	config.Security = []map[string][]string{{"token": {}}, {"session": {}}}
	api := humago.New(s.mux, config)
	s.registerSession(api)
	s.registerOverview(api)
	s.registerRuns(api)
	s.registerStudies(api)
	s.registerDatagen(api)
	s.registerJournals(api)
	s.registerObjects(api)
	s.registerLogs(api)
	s.registerFiles(api)
	s.registerLive(api)
	s.document(api)
	s.mux.HandleFunc("GET /healthz", s.healthz)
	s.mux.HandleFunc("GET /metrics", s.prometheus)
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusNotFound, "there is no such path") })
	s.mux.HandleFunc("/", s.dashboard)
}

// document serves the OpenAPI document, made once.
func (s *Server) document(api huma.API) {
	spec, err := json.Marshal(api.OpenAPI())
	yaml, err2 := api.OpenAPI().YAML()
	if err != nil || err2 != nil {
		s.log.Error("document of the API not made", "err", err, "yaml", err2)
		return
	}
	serve := func(kind string, b []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Write(b)
		}
	}
	s.mux.HandleFunc("GET /api/v1/openapi.json", serve("application/vnd.oai.openapi+json", spec))
	s.mux.HandleFunc("GET /api/v1/openapi.yaml", serve("application/vnd.oai.openapi", yaml))
}

// healthz tells that the server answers and can reach its root.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if _, err := s.root.Stat("."); err != nil {
		refuse(w, http.StatusServiceUnavailable, "the root cannot be reached")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ok")
}

func (s *Server) prometheus(w http.ResponseWriter, _ *http.Request) {
	var b bytes.Buffer
	s.stats.write(&b, map[string]int64{
		"foldlog_runs": int64(len(s.store.Runs())), "foldlog_streams": int64(len(s.store.Paths())),
		"foldlog_streams_waiting": s.index.pending(), "foldlog_streams_read_anew": s.store.Anew(), "foldlog_journals": int64(s.studies.count()),
		"foldlog_experiments": int64(s.datagens.count()),
	})
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Write(b.Bytes())
}

func (s *Server) registerOverview(api huma.API) {
	huma.Register(api, operation(http.MethodGet, "/api/v1/overview", "overview", "What is in the root, and what is alive", "overview"),
		func(context.Context, *struct{}) (*struct{ Body wire.Overview }, error) {
			o := wire.Overview{Version: version.Number(), Alive: []wire.RunItem{}, Waiting: int(s.index.pending())}
			o.Datagen = s.datagens.count()
			o.Journals, o.Studies = s.studies.count(), s.studies.countStudies()
			for _, run := range s.store.Runs() {
				o.Runs.Total++
				switch run.Status {
				case metrics.StatusRunning:
					o.Runs.Running++
					if s.lost(run) != "" {
						o.Runs.Lost++
					}
				case metrics.StatusDone:
					o.Runs.Done++
				default:
					o.Runs.Failed++
				}
			}
			o.Alive = s.alive()
			return &struct{ Body wire.Overview }{o}, nil
		})
}

// dashboard serves the built page. Paths that are no files are the page itself,
// which knows what to show there.
func (s *Server) dashboard(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		refuse(w, http.StatusMethodNotAllowed, "pages are read by GET")
		return
	}
	if s.ui == nil {
		if r.URL.Path != "/" {
			refuse(w, http.StatusNotFound, "there is no such path")
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "This is a Foldlog server, built without its dashboard. The API is described by /api/v1/openapi.json.")
		return
	}
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if info, err := fs.Stat(s.ui, name); name == "" || err != nil || info.IsDir() {
		if strings.HasPrefix(name, "assets/") {
			refuse(w, http.StatusNotFound, "there is no such path")
			return
		}
		name = "index.html"
	}
	if strings.HasPrefix(name, "assets/") {
		// Their names have a hash of their content.
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	if name == "index.html" {
		b, err := fs.ReadFile(s.ui, name)
		if err != nil {
			refuse(w, http.StatusNotFound, "there is no such path")
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(b)
		return
	}
	http.ServeFileFS(w, r, s.ui, name)
}

// alive are the runs that have said something lately and have not ended, nor told of a
// signal that stops them, nor are known to be lost, the newest first.
func (s *Server) alive() []wire.RunItem {
	since := time.Now().Add(-10 * time.Minute).UnixMilli()
	var runs []*projection.Run
	for _, run := range s.store.Runs() {
		if run.Status == metrics.StatusRunning && run.Interrupted == "" && run.LastTSMS >= since && s.lost(run) == "" {
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b *projection.Run) int {
		return cmp.Or(cmp.Compare(b.LastTSMS, a.LastTSMS), cmp.Compare(a.Slug, b.Slug))
	})
	items := []wire.RunItem{}
	for _, run := range runs[:min(len(runs), 100)] {
		items = append(items, s.itemOf(run))
	}
	return items
}
