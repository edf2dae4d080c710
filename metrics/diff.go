package metrics

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
)

// Change is one difference between two metadata objects.
type Change struct {
	// Path is the key, keys of objects inside joined with "/"; a source is
	// "sources/" and its path.
	Path string
	// From and To are the values as people read them, "" where there is none.
	From, To string
}

// DiffMetadata lists what differs, sorted by path. Order of keys, white space
// and the order of sources do not count.
func DiffMetadata(from, to Metadata) []Change {
	a, b := leaves(from), leaves(to)
	var changes []Change
	for path, old := range a {
		if now, ok := b[path]; !ok || now != old {
			changes = append(changes, Change{path, textOf(old), textOf(now)})
		}
	}
	for path, now := range b {
		if _, ok := a[path]; !ok {
			changes = append(changes, Change{path, "", textOf(now)})
		}
	}
	slices.SortFunc(changes, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	return changes
}

// leaves maps the path of every value that is not a full object to its
// canonical spelling.
func leaves(m Metadata) map[string]string {
	out := map[string]string{}
	for key, raw := range m.All() {
		if key == "sources" {
			var sources []Source
			if json.Unmarshal([]byte(raw), &sources) == nil {
				for _, s := range sources {
					out["sources/"+s.Path] = quote(s.SHA256)
				}
				continue
			}
		}
		addLeaves(out, key, raw, maxFlatten)
	}
	return out
}

func addLeaves(out map[string]string, path, raw string, depth int) {
	if strings.HasPrefix(raw, "{") && raw != "{}" && depth > 0 {
		for key, inner := range Metadata(raw).All() {
			addLeaves(out, path+"/"+key, inner, depth-1)
		}
		return
	}
	if b, err := serde.AppendPortable(nil, []byte(raw)); err == nil {
		raw = string(b)
	}
	out[path] = raw
}
