package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sort"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/metrics"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

type namesInput struct {
	Run    []string `query:"run,explode" maxItems:"1000" doc:"only names of these runs; all runs if left out"`
	Text   string   `query:"q" maxLength:"500" doc:"only names that have this or match it as a regular expression, whatever the case"`
	Limit  int      `query:"limit" minimum:"0" maximum:"10000" doc:"names at most, 1000 if 0"`
	Cursor string   `query:"cursor" maxLength:"200"`
}

func (s *Server) registerNames(api huma.API) {
	huma.Register(api, operation(http.MethodGet, "/api/v1/names", "list-names", "The catalogue of metric names", "runs"),
		func(_ context.Context, in *namesInput) (*struct{ Body wire.NamePage }, error) {
			return s.catalogue(in, s.metricNames)
		})
	huma.Register(api, operation(http.MethodGet, "/api/v1/keys", "list-keys", "The paths that occur in open metadata", "runs"),
		func(_ context.Context, in *namesInput) (*struct{ Body wire.NamePage }, error) {
			return s.catalogue(in, metadataKeys)
		})
	huma.Register(api, operation(http.MethodGet, "/api/v1/tags", "list-tags", "The tags of all runs", "runs"),
		func(_ context.Context, in *namesInput) (*struct{ Body wire.NamePage }, error) {
			return s.catalogue(in, s.allTags)
		})
	huma.Register(api, operation(http.MethodGet, "/api/v1/diff", "diff-runs", "How the open metadata of runs differs", "runs"), s.diff)
}

func (s *Server) catalogue(in *namesInput, count func([]*projection.Run) map[string]int) (*struct{ Body wire.NamePage }, error) {
	runs := s.store.Runs()
	if len(in.Run) > 0 {
		runs = nil
		for _, slug := range in.Run {
			if r := s.store.Run(slug); r != nil {
				runs = append(runs, r)
			}
		}
	}
	from, err := indexCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	found := finder(in.Text)
	page := wire.NamePage{Items: []wire.NameItem{}}
	for name, n := range count(runs) {
		if found(name) {
			page.Items = append(page.Items, wire.NameItem{Name: name, Runs: n})
		}
	}
	sort.Slice(page.Items, func(i, j int) bool { return page.Items[i].Name < page.Items[j].Name })
	page.Total = len(page.Items)
	page.Items, page.Next = pageOf(page.Items, from, cmp.Or(in.Limit, mostPage))
	return &struct{ Body wire.NamePage }{page}, nil
}

func (s *Server) metricNames(runs []*projection.Run) map[string]int {
	var counts []int
	for _, r := range runs {
		for i := range r.Curves {
			for id := int(r.Curves[i].Name); id >= len(counts); {
				counts = append(counts, 0)
			}
			counts[r.Curves[i].Name]++
		}
	}
	names := map[string]int{}
	for id, n := range counts {
		if n > 0 {
			names[s.store.Name(uint32(id))] = n
		}
	}
	return names
}

func metadataKeys(runs []*projection.Run) map[string]int {
	keys := map[string]int{}
	for _, r := range runs {
		for _, v := range r.Values() {
			keys[v.Path]++
		}
	}
	return keys
}

func (s *Server) allTags(runs []*projection.Run) map[string]int {
	tags := map[string]int{}
	for _, r := range runs {
		for _, tag := range s.labels.of(r.Slug).Tags {
			tags[tag]++
		}
	}
	return tags
}

type diffInput struct {
	Run []string `query:"run,explode" required:"true" minItems:"1" maxItems:"100" doc:"slugs"`
	All bool     `query:"all" doc:"also what all have in common"`
}

func (s *Server) diff(_ context.Context, in *diffInput) (*struct{ Body wire.DiffAnswer }, error) {
	answer := wire.DiffAnswer{Runs: []string{}, Missing: []string{}, Rows: []wire.DiffRow{}}
	rows := map[string]map[int]string{}
	for _, slug := range in.Run {
		run := s.store.Run(slug)
		if run == nil {
			answer.Missing = append(answer.Missing, slug)
			continue
		}
		meta, err := s.openMetadata(run)
		if err != nil {
			return nil, s.answer(err)
		}
		column := len(answer.Runs)
		answer.Runs = append(answer.Runs, slug)
		add := func(path, text string) {
			if rows[path] == nil {
				rows[path] = map[int]string{}
			}
			rows[path][column] = text
		}
		sources, _ := metrics.ReadSources(meta)
		for _, source := range sources {
			add("sources/"+source.Path, source.SHA256)
		}
		for _, v := range projection.Flatten(meta) {
			if v.Path != "sources" || len(sources) == 0 {
				add(v.Path, serde.Text([]byte(v.Raw)))
			}
		}
	}
	for path, values := range rows {
		row := wire.DiffRow{Path: path, Same: len(values) == len(answer.Runs), Has: make([]bool, len(answer.Runs)), Values: make([]string, len(answer.Runs))}
		for column, text := range values {
			row.Has[column], row.Values[column] = true, text
			row.Same = row.Same && text == values[0]
		}
		if in.All || !row.Same {
			answer.Rows = append(answer.Rows, row)
		}
	}
	slices.SortFunc(answer.Rows, func(a, b wire.DiffRow) int { return strings.Compare(a.Path, b.Path) })
	return &struct{ Body wire.DiffAnswer }{answer}, nil
}

// openMetadata is the whole metadata of the newest open.
func (s *Server) openMetadata(run *projection.Run) (metrics.Metadata, error) {
	outlines, err := s.store.Outlines(run)
	if err != nil {
		return "", err
	}
	for _, o := range outlines {
		if o.Digest.Path == run.Path {
			return o.Outline.Metadata, nil
		}
	}
	return run.Metadata, nil
}
