package server

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/objstore"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// The files of logs, to be read as they are: whatever reads a log on disk reads one at
// a server, and what it checks are the bytes. Nothing but the files of logs is there,
// whatever else is under the root.

const filesPath = "/api/v1/files"

// datasetParts are the directories of a Lance dataset.
var datasetParts = []string{"_versions", "_transactions", "_deletions", "_indices", "_refs", "_mem_wal", "_pins", "data", "tree"}

// fileOfLog tells whether a path is that of a file of a log, or of a directory that is
// a log or in one.
func (s *Server) fileOfLog(name string) bool {
	if objstore.CheckKey(name) != nil || hidden(name) || strings.ContainsAny(name, "\\\x00") {
		return false
	}
	if head, ok := journalOf(name); ok {
		return s.journalThere(head)
	}
	if _, ok := s.datasetOf(name); ok {
		return true
	}
	return path.Ext(name) == metrics.Extension && s.streamThere(name)
}

// journalOf is the journal that a file or directory is of by its name.
func journalOf(name string) (head string, ok bool) {
	if before, _, in := strings.Cut(name+"/", ".atj.d/"); in {
		return before + ".atj", true
	}
	if ext := path.Ext(name); len(ext) == 3 && ext[1] == 'v' && '1' <= ext[2] && ext[2] <= '9' {
		name = strings.TrimSuffix(name, ext) // what a migration has kept
	}
	return name, path.Ext(name) == ".atj"
}

// journalThere also knows a journal whose head is lost or damaged, by its data.
func (s *Server) journalThere(head string) bool {
	if _, err := s.journalNow(head); err == nil {
		return true
	}
	info, err := s.root.Lstat(filepath.FromSlash(head + ".d"))
	return err == nil && info.IsDir()
}

// datasetOf is the Lance dataset that a path is or is in; the outermost one.
func (s *Server) datasetOf(name string) (dir string, ok bool) {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		if slices.Contains(datasetParts, part) && i > 0 {
			if dir := strings.Join(parts[:i], "/"); s.isDataset(dir) {
				return dir, true
			}
		}
	}
	return name, s.isDataset(name)
}

// isDataset looks for a version.
func (s *Server) isDataset(dir string) bool {
	if _, _, _, ok := datagenPlace(dir); ok {
		return true
	}
	return s.find.dataset(dir) || s.holdsVersions(dir)
}

// holdsVersions tells a dataset by a version of it.
func (s *Server) holdsVersions(dir string) bool {
	entries, err := fs.ReadDir(s.root.FS(), path.Join(dir, "_versions"))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return path.Ext(e.Name()) == ".manifest" })
}

func (s *Server) streamThere(name string) bool {
	if known, _ := s.store.Fresh(name, 0, 0); known {
		return true
	}
	info, err := s.root.Lstat(filepath.FromSlash(name))
	return err == nil && info.Mode().IsRegular() && s.find.isStream(name, info)
}

func (s *Server) getFile(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("path")
	if info, err := s.root.Lstat(filepath.FromSlash(name)); err != nil || !info.Mode().IsRegular() || !s.fileOfLog(name) {
		refuse(w, http.StatusNotFound, "there is no such file of a log")
		return
	}
	f, err := fsx.OpenIn(s.root, filepath.FromSlash(name), os.O_RDONLY, 0)
	if err != nil {
		s.refuseFor(w, err)
		return
	}
	defer f.Close()
	s.sendFile(w, r, f)
}

// sendFile answers with a regular file, or parts of it.
func (s *Server) sendFile(w http.ResponseWriter, r *http.Request, f *os.File) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		refuse(w, http.StatusNotFound, "there is no such file")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "no-store")
	h.Set(modifiedHeader, info.ModTime().UTC().Format(time.RFC3339Nano))
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.limits.Write + time.Duration(info.Size()>>18)*time.Second))
	http.ServeContent(w, r, "", time.Time{}, f)
}

// listDir lists a directory of a log.
func (s *Server) listDir(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimSuffix(r.URL.Query().Get("list"), "/")
	if !s.fileOfLog(name) {
		refuse(w, http.StatusNotFound, "no log has such a directory")
		return
	}
	entries, err := fs.ReadDir(s.root.FS(), name)
	if err != nil {
		s.refuseFor(w, err)
		return
	}
	s.writeLines(w, func(put func(any) error) error {
		for _, e := range entries {
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) || err == nil && !e.IsDir() && !info.Mode().IsRegular() {
				continue
			}
			if err != nil {
				s.log.Warn("directory cut", "path", name, "err", err)
				return err
			}
			if err := put(fileLine(info)); err != nil {
				return err
			}
		}
		return put(wire.FileLine{End: true})
	})
}

func fileLine(info fs.FileInfo) wire.FileLine {
	line := wire.FileLine{Name: info.Name(), Modified: info.ModTime().UTC().Format(time.RFC3339Nano), Dir: info.IsDir()}
	if !line.Dir {
		line.Size = info.Size()
	}
	return line
}

func (s *Server) registerFiles(api huma.API) {
	s.mux.HandleFunc("GET "+filesPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("list") {
			s.listDir(w, r)
		} else {
			s.getFile(w, r)
		}
	})
	op := operation(http.MethodGet, filesPath, "get-file", "A file of a log as it is, or a directory of one", "files")
	op.Description = "With path the bytes, parts of them by Range; " + modifiedHeader + " says when they were written. With list JSON lines: a FileLine for each entry of a directory, " +
		"and one with end, without which the answer is cut. Files that are of no log are not there."
	op.Parameters = []*huma.Param{textParam("path", "of a file under the root"), textParam("list", "path of a directory under the root")}
	op.Responses = map[string]*huma.Response{strconv.Itoa(http.StatusOK): {Description: http.StatusText(http.StatusOK)}}
	api.OpenAPI().AddOperation(&op)
}
