package server

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/server/internal/projection"
	"github.com/foldlog/foldlog/server/internal/wire"
)

type listInput struct {
	Text   string   `query:"q" maxLength:"500" doc:"only runs whose slug, description or a tag has this or matches it as a regular expression, whatever the case"`
	Slug   []string `query:"slug,explode" maxItems:"1000" doc:"only these runs"`
	Status []string `query:"status,explode" doc:"only these: running, done, failed"`
	Tag    []string `query:"tag,explode" doc:"only runs that have all of these tags"`
	Where  []string `query:"where,explode" maxItems:"20" doc:"only runs for which all of these hold: KEY, a relation (= != < <= > >= ~), and a value. KEY is slug, status, stage, failure, metric:NAME, metric:NAME:min, :max, :count or :step, or a path in the open metadata such as knobs/lr. ~ is contains. Without a relation the run must have KEY."`
	Sort   string   `query:"sort" maxLength:"1200" doc:"updated (the default), created, slug, status, step, points, or a KEY as in where; descending with a minus before it, as times are by default. Runs without it come last."`
	Metric []string `query:"metric,explode" maxItems:"100" doc:"names whose sums to add to each run"`
	Meta   []string `query:"meta,explode" maxItems:"100" doc:"paths in the open metadata to add to each run"`
	Limit  int      `query:"limit" minimum:"0" maximum:"1000" doc:"runs per page, 100 if 0"`
	Offset int      `query:"offset" minimum:"0" doc:"begin behind so many of the runs that match: for tables that jump; cursors are steadier"`
	Cursor string   `query:"cursor" maxLength:"4000" doc:"next of the page before; goes before offset"`
}

func (s *Server) registerList(api huma.API) {
	op := operation(http.MethodGet, "/api/v1/runs", "list-runs", "List runs", "runs")
	op.Description = "Reads no points. A page begins behind the last run of the page before, by its place in the order: runs that move meanwhile may come twice or not."
	huma.Register(api, op, s.listRuns)
}

// sortable is a run with what it is ordered by.
type sortable struct {
	run *projection.Run
	key sortKey
}

// sortKey is a number or a text; numbers come first, and nothing last.
type sortKey struct {
	kind   int8 // 0 number, 1 text, 2 nothing
	number float64
	text   string
}

// noKey is of what has nothing to be ordered by.
var noKey = sortKey{kind: 2}

func (k sortKey) compare(o sortKey, down bool) int {
	if c := cmp.Compare(k.kind, o.kind); c != 0 {
		return c
	}
	c := cmp.Or(compareNumbers(k.number, o.number), strings.Compare(k.text, o.text))
	if down {
		return -c
	}
	return c
}

// compareNumbers puts NaN behind every number.
func compareNumbers(a, b float64) int {
	if a != a || b != b {
		return cmp.Compare(truth(a != a), truth(b != b))
	}
	return cmp.Compare(a, b)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *Server) listRuns(_ context.Context, in *listInput) (*struct{ Body wire.RunPage }, error) {
	keep, err := s.filterOf(in)
	if err != nil {
		return nil, err
	}
	order, down := orderOf(in.Sort)
	key := s.keyOf(order)
	var list []sortable
	for _, run := range s.store.Runs() {
		if keep(run) {
			list = append(list, sortable{run, key(run)})
		}
	}
	before := func(a, b sortable) int {
		return cmp.Or(a.key.compare(b.key, down), strings.Compare(a.run.Slug, b.run.Slug))
	}
	slices.SortFunc(list, before)
	from := min(in.Offset, len(list))
	if in.Cursor != "" {
		last, err := lastOf(in.Cursor)
		if err != nil {
			return nil, err
		}
		var found bool
		if from, found = slices.BinarySearchFunc(list, last, before); found {
			from++
		}
	}
	page := wire.RunPage{Items: []wire.RunItem{}, Total: len(list)}
	for _, it := range list[from:min(len(list), from+pageSize(in.Limit))] {
		page.Items = append(page.Items, s.columns(it.run, in))
	}
	if end := from + len(page.Items); end < len(list) && len(page.Items) > 0 {
		last := list[end-1]
		page.Next = encodeCursor(strconv.Itoa(int(last.key.kind)), strconv.FormatFloat(last.key.number, 'g', -1, 64), last.key.text, last.run.Slug)
	}
	return &struct{ Body wire.RunPage }{page}, nil
}

// lastOf is the place in the order that a cursor stands for.
func lastOf(cursor string) (sortable, error) {
	parts, err := decodeCursor(cursor, 4)
	if err != nil {
		return sortable{}, err
	}
	kind, err := strconv.ParseInt(parts[0], 10, 8)
	number, err2 := strconv.ParseFloat(parts[1], 64)
	if err != nil || err2 != nil {
		return sortable{}, problem(http.StatusBadRequest, "the cursor is not one of this server")
	}
	run := &projection.Run{Digest: projection.Digest{Slug: parts[3]}}
	return sortable{run, sortKey{int8(kind), number, parts[2]}}, nil
}

// orderOf splits a sort; times are descending where nothing is said.
func orderOf(sort string) (key string, down bool) {
	key, down = strings.CutPrefix(sort, "-")
	if key == "" {
		return "updated", true
	}
	if key == sort && (key == "updated" || key == "created") {
		return key, true
	}
	if up, ok := strings.CutPrefix(key, "+"); ok {
		return up, false
	}
	return key, down
}

// keyOf is what runs are ordered by and compared with.
func (s *Server) keyOf(key string) func(*projection.Run) sortKey {
	number := func(v func(*projection.Run) float64) func(*projection.Run) sortKey {
		return func(r *projection.Run) sortKey { return sortKey{number: v(r)} }
	}
	text := func(v func(*projection.Run) string) func(*projection.Run) sortKey {
		return func(r *projection.Run) sortKey { return textKey(v(r)) }
	}
	switch key {
	case "updated":
		return number(func(r *projection.Run) float64 { return float64(r.LastTSMS) })
	case "created":
		return number(func(r *projection.Run) float64 { return float64(r.FirstTSMS) })
	case "step":
		return number(func(r *projection.Run) float64 { return float64(r.LastStep) })
	case "points":
		return number(func(r *projection.Run) float64 { return float64(r.Metrics) })
	case "slug":
		return text(func(r *projection.Run) string { return r.Slug })
	case "status":
		return text(func(r *projection.Run) string { return r.Status.String() })
	case "stage":
		return text(func(r *projection.Run) string { return r.Stage })
	case "failure":
		return text(func(r *projection.Run) string { return r.Failure })
	}
	if name, ok := strings.CutPrefix(key, "metric:"); ok {
		return s.metricKey(name)
	}
	return func(r *projection.Run) sortKey {
		raw, ok := r.Value(key)
		if !ok || raw == "null" {
			return noKey
		}
		return valueKey(serde.Text([]byte(raw)))
	}
}

// textKey is a text as it stands.
func textKey(s string) sortKey {
	if s == "" {
		return noKey
	}
	return sortKey{kind: 1, text: s}
}

// valueKey is a number if it reads as one.
func valueKey(s string) sortKey {
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return sortKey{number: f}
	}
	return textKey(s)
}

func (s *Server) metricKey(name string) func(*projection.Run) sortKey {
	pick := func(c *projection.CurveStat) float64 { return c.Last }
	if base, what, ok := cutLast(name, ':'); ok {
		picks := map[string]func(*projection.CurveStat) float64{
			"last":  pick,
			"min":   func(c *projection.CurveStat) float64 { return orNaN(c.Finite(), c.Min) },
			"max":   func(c *projection.CurveStat) float64 { return orNaN(c.Finite(), c.Max) },
			"count": func(c *projection.CurveStat) float64 { return float64(c.Count) },
			"step":  func(c *projection.CurveStat) float64 { return float64(c.LastStep) },
		}
		if p := picks[what]; p != nil {
			name, pick = base, p
		}
	}
	id, known := s.store.NameID(name)
	return func(r *projection.Run) sortKey {
		if known {
			if c := r.Curve(id); c != nil {
				return sortKey{number: pick(c)}
			}
		}
		return noKey
	}
}

func orNaN(ok bool, v float64) float64 {
	if !ok {
		return math.NaN()
	}
	return v
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

type runFilter func(*projection.Run) bool

func (s *Server) filterOf(in *listInput) (runFilter, error) {
	var all []runFilter
	if len(in.Slug) > 0 {
		all = append(all, func(r *projection.Run) bool { return slices.Contains(in.Slug, r.Slug) })
	}
	if len(in.Status) > 0 {
		all = append(all, func(r *projection.Run) bool { return slices.Contains(in.Status, r.Status.String()) })
	}
	for _, tag := range in.Tag {
		all = append(all, func(r *projection.Run) bool { return slices.Contains(s.labels.of(r.Slug).Tags, tag) })
	}
	for _, where := range in.Where {
		keep, err := relation(where, func(key string) (func(*projection.Run) sortKey, error) { return s.keyOf(key), nil })
		if err != nil {
			return nil, err
		}
		all = append(all, keep)
	}
	if in.Text != "" { // the last, since it costs most
		found := finder(in.Text)
		all = append(all, func(r *projection.Run) bool {
			return found(r.Slug) || found(r.Description) || slices.ContainsFunc(s.labels.of(r.Slug).Tags, found)
		})
	}
	return func(r *projection.Run) bool {
		for _, keep := range all {
			if !keep(r) {
				return false
			}
		}
		return true
	}, nil
}

// relation reads KEY, a relation and a value. KeyOf is what a thing has under a key.
func relation[T any](where string, keyOf func(key string) (func(T) sortKey, error)) (func(T) bool, error) {
	name, op, value, err := splitRelation(where)
	if err != nil {
		return nil, err
	}
	key, err := keyOf(name)
	if err != nil {
		return nil, err
	}
	if op == "" {
		return func(one T) bool { return key(one) != noKey }, nil
	}
	want := valueKey(value)
	return func(one T) bool { return holds(key(one), op, want, value) }, nil
}

// splitRelation takes KEY, a relation and a value apart; without a relation there
// is only a key.
func splitRelation(where string) (key, op, value string, err error) {
	at := strings.IndexAny(where, "=!<>~")
	if at < 0 {
		return where, "", "", nil
	}
	op = where[at : at+1]
	if at+1 < len(where) && where[at+1] == '=' && op != "=" && op != "~" {
		op = where[at : at+2]
	}
	if at == 0 || op == "!" {
		return "", "", "", problem(http.StatusBadRequest, "where "+strconv.Quote(where)+" is not KEY, a relation and a value")
	}
	return where[:at], op, where[at+len(op):], nil
}

func holds(have sortKey, op string, want sortKey, value string) bool {
	if op == "~" {
		text := have.text
		if have.kind == 0 {
			text = strconv.FormatFloat(have.number, 'g', -1, 64)
		}
		return have != noKey && strings.Contains(strings.ToLower(text), strings.ToLower(value))
	}
	equal := have.kind == want.kind && have.compare(want, false) == 0
	switch op {
	case "=":
		return equal
	case "!=":
		return !equal
	}
	if have.kind != want.kind || have == noKey || have.number != have.number {
		return false
	}
	c := have.compare(want, false)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// columns adds to a run what the list was asked for.
func (s *Server) columns(run *projection.Run, in *listInput) wire.RunItem {
	it := s.itemOf(run)
	if len(in.Meta) > 0 {
		found := map[string]json.RawMessage{}
		for _, path := range in.Meta {
			if raw, ok := run.Value(path); ok {
				found[path] = json.RawMessage(raw)
			}
		}
		if b, err := json.Marshal(found); err == nil {
			it.Metadata = b
		}
	}
	for _, name := range in.Metric {
		if id, ok := s.store.NameID(name); ok {
			if c := run.Curve(id); c != nil {
				it.Metrics = append(it.Metrics, s.statOf(c))
			}
		}
	}
	return it
}
