package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/wire"
)

// What people say about a run, its tags and its note, is a log of its own beside
// the run's streams: runs/SLUG/labels.log, one JSON object per line, the newest of
// each kind counts. It is no projection: it is copied and backed up with the root.
//
//	{"ts_ms":1,"kind":"tags","tags":["baseline"],"by":"anna"}
//	{"ts_ms":2,"kind":"note","note":"worth a second look","by":"anna"}
const labelsFile = "labels.log"

// Limits of labels.
const (
	maxTags    = 100
	maxTag     = 100      // bytes
	maxNote    = 64 << 10 // bytes
	labelsKind = "tags"
	noteKind   = "note"
)

// labelEvent is one line.
type labelEvent struct {
	TSMS int64    `json:"ts_ms"`
	Kind string   `json:"kind"`
	Tags []string `json:"tags,omitempty"`
	Note string   `json:"note,omitempty"`
	By   string   `json:"by,omitempty"`
}

// labels are those of all runs, as their files have them.
type labels struct {
	root *os.Root
	fs   fsx.FS

	files sync.Mutex             // held while a file is read or written; over what follows
	known map[string]fs.FileInfo // as read, by path
	named map[string]bool        // files whose names are durable

	mu   sync.RWMutex
	runs map[string]wire.Labels
}

func newLabels(root *os.Root) *labels {
	return &labels{root: root, fs: fsx.InRoot(root), known: map[string]fs.FileInfo{}, named: map[string]bool{}, runs: map[string]wire.Labels{}}
}

func (l *labels) of(slug string) wire.Labels {
	l.mu.RLock()
	defer l.mu.RUnlock()
	got := l.runs[slug]
	if got.Tags == nil {
		got.Tags = []string{}
	}
	return got
}

// look reads a file if it has changed.
func (l *labels) look(name string, info fs.FileInfo) {
	slug := slugOf(path.Join(path.Dir(name), "x"+metrics.Extension), "")
	l.files.Lock()
	defer l.files.Unlock()
	old := l.known[name]
	if slug == "" || old != nil && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()) {
		return
	}
	got, err := l.read(name)
	if err != nil {
		return
	}
	l.known[name] = info
	l.put(slug, got)
}

func (l *labels) put(slug string, got wire.Labels) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[slug] = got
}

func (l *labels) read(name string) (wire.Labels, error) {
	f, err := fsx.OpenIn(l.root, filepath.FromSlash(name), os.O_RDONLY, 0)
	if err != nil {
		return wire.Labels{}, err
	}
	defer f.Close()
	var got wire.Labels
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 2*maxNote+maxTags*maxTag)
	for lines.Scan() {
		applyLabels(&got, lines.Bytes())
	}
	return got, lines.Err()
}

// applyLabels takes one line; one that is torn or of another kind is passed over.
func applyLabels(l *wire.Labels, line []byte) {
	var e labelEvent
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Kind {
	case labelsKind:
		l.Tags = e.Tags
	case noteKind:
		l.Note, l.NoteMS, l.NoteBy = e.Note, e.TSMS, e.By
	}
}

// change appends what edit makes of the labels, synced before it returns. A torn
// line that a crash has left is closed off first.
func (l *labels) change(slug string, edit func(wire.Labels) labelEvent) (wire.Labels, error) {
	l.files.Lock()
	defer l.files.Unlock()
	name := path.Join(metrics.RunsDir, metrics.EncodeSlug(slug), labelsFile)
	now, err := l.extend(name, edit)
	if err != nil {
		return wire.Labels{}, fmt.Errorf("write labels: %w", err)
	}
	l.put(slug, now)
	return now, nil
}

// extend reads the labels and appends what edit makes of them, while no other server
// writes to them.
func (l *labels) extend(name string, edit func(wire.Labels) labelEvent) (now wire.Labels, err error) {
	if err := l.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return wire.Labels{}, err
	}
	f, err := l.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return wire.Labels{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	unlock, err := lockFile(l.fs, l.root, name)
	if err != nil {
		return wire.Labels{}, err
	}
	defer unlock()
	if now, err = l.read(name); err != nil {
		return wire.Labels{}, err
	}
	line, err := json.Marshal(edit(now))
	if err != nil {
		return wire.Labels{}, err
	}
	applyLabels(&now, line)
	return now, l.append(f, name, append(line, '\n'))
}

func (l *labels) append(f *os.File, name string, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	var last [1]byte
	if size > 0 {
		if _, err := f.ReadAt(last[:], size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if _, err := f.WriteAt(line, size); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	if !l.named[name] {
		if err := syncNames(l.fs, l.root, path.Dir(name)); err != nil {
			return err
		}
		l.named[name] = true
	}
	if info, err := f.Stat(); err == nil {
		l.known[name] = info
	}
	return nil
}

type tagsInput struct {
	Slug string `path:"slug" maxLength:"600"`
	Body struct {
		Add    []string `json:"add,omitempty" maxItems:"100" doc:"tags to add"`
		Remove []string `json:"remove,omitempty" maxItems:"100" doc:"tags to remove"`
	}
}

type noteInput struct {
	Slug string `path:"slug" maxLength:"600"`
	Body struct {
		Note string `json:"note" doc:"replaces the note; empty removes it"`
	}
}

type labelsOutput struct{ Body wire.Labels }

func (s *Server) registerLabels(api huma.API) {
	huma.Register(api, operation(http.MethodPost, "/api/v1/runs/{slug}/tags", "tag-run", "Add and remove tags of a run", "runs"),
		func(ctx context.Context, in *tagsInput) (*labelsOutput, error) {
			for _, tag := range in.Body.Add {
				if err := checkTag(tag); err != nil {
					return nil, err
				}
			}
			return s.label(ctx, in.Slug, func(now wire.Labels) labelEvent {
				tags := append(slices.Clone(now.Tags), in.Body.Add...)
				tags = slices.DeleteFunc(tags, func(t string) bool { return slices.Contains(in.Body.Remove, t) })
				slices.Sort(tags)
				tags = slices.Compact(tags)
				return labelEvent{Kind: labelsKind, Tags: tags[:min(len(tags), maxTags)]}
			})
		})
	huma.Register(api, operation(http.MethodPut, "/api/v1/runs/{slug}/note", "note-run", "Write the note of a run", "runs"),
		func(ctx context.Context, in *noteInput) (*labelsOutput, error) {
			if len(in.Body.Note) > maxNote || !utf8.ValidString(in.Body.Note) {
				return nil, problem(http.StatusUnprocessableEntity, "a note has at most 64 KiB of UTF-8")
			}
			return s.label(ctx, in.Slug, func(wire.Labels) labelEvent { return labelEvent{Kind: noteKind, Note: in.Body.Note} })
		})
}

func checkTag(tag string) error {
	if tag == "" || len(tag) > maxTag || !utf8.ValidString(tag) || strings.TrimSpace(tag) != tag || strings.ContainsFunc(tag, unicode.IsControl) {
		return problem(http.StatusUnprocessableEntity, "a tag has 1 to 100 bytes of UTF-8 without control characters and spaces around it")
	}
	return nil
}

func (s *Server) label(ctx context.Context, slug string, edit func(wire.Labels) labelEvent) (*labelsOutput, error) {
	run, err := s.run(slug)
	if err != nil {
		return nil, err
	}
	if err := need(ctx, ScopeWrite, "runs/"+slug); err != nil {
		return nil, err
	}
	p, _ := ctx.Value(principalKey{}).(*principal)
	got, err := s.labels.change(slug, func(now wire.Labels) labelEvent {
		e := edit(now)
		e.TSMS, e.By = time.Now().UnixMilli(), p.token.Name
		return e
	})
	if err != nil {
		return nil, s.answer(err)
	}
	s.runChanged(slug, run)
	return &labelsOutput{got}, nil
}
