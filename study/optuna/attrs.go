package optuna

import (
	"fmt"
	"iter"
	"strings"

	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/study"
)

// The attributes that hold what the journal has no operation for.
const (
	prefix         = study.SystemPrefix + "optuna."
	systemKey      = prefix + "system:"
	userKey        = prefix + "user:"
	systemTextKey  = prefix + "system-text:"
	userTextKey    = prefix + "user-text:"
	startKey       = prefix + "start"
	completeKey    = prefix + "complete"
	valuesKey      = prefix + "values"
	stepKey        = prefix + "step:"
	reservedByThem = "atune:"
)

// side tells Optuna's two sets of attributes apart.
type side int

const (
	userSide side = iota
	systemSide
)

// attr is one of Optuna's attributes; json is what Python's json module writes.
type attr struct {
	side side
	key  string
	json string
}

// stored is the key and the canonical JSON under which the journal keeps an
// attribute.
func (a attr) stored() (key string, value []byte, err error) {
	value, err = serde.AppendPortable(nil, []byte(a.json))
	switch {
	case err == nil && a.side == systemSide:
		return systemKey + a.key, value, nil
	case err == nil && (strings.HasPrefix(a.key, study.SystemPrefix) || strings.HasPrefix(a.key, reservedByThem)):
		return userKey + a.key, value, nil
	case err == nil:
		return a.key, value, nil
	case !pyValid([]byte(a.json)):
		return "", nil, fmt.Errorf("attribute %.80q: %w: %w", a.key, ErrInvalid, err)
	}
	key = userTextKey + a.key
	if a.side == systemSide {
		key = systemTextKey + a.key
	}
	return key, serde.AppendString(nil, a.json), nil
}

// loaded is the opposite of stored; false is for an attribute that is none of
// Optuna's.
func loaded(s study.Attr) (a attr, ok bool) {
	rest, own := strings.CutPrefix(s.Key, prefix)
	if !own {
		foreign := strings.HasPrefix(s.Key, study.SystemPrefix) || strings.HasPrefix(s.Key, reservedByThem)
		return attr{userSide, s.Key, string(s.Value)}, !foreign
	}
	kind, key, ok := strings.Cut(rest, ":")
	a = attr{key: key, json: string(s.Value)}
	switch prefix + kind + ":" {
	case systemKey:
		a.side = systemSide
	case userKey:
	case systemTextKey:
		a.side = systemSide
		return a.unwrapped()
	case userTextKey:
		return a.unwrapped()
	default:
		ok = false
	}
	return a, ok
}

func (a attr) unwrapped() (attr, bool) {
	text, err := pyString([]byte(a.json))
	a.json = text
	return a, err == nil && pyValid([]byte(text))
}

// attrMaps are the two sets of attributes as messages have them, nil if empty.
func attrMaps(all iter.Seq2[string, study.Attr]) (user, system map[string]string) {
	var sets [2]map[string]string
	var seqs [2]map[string]uint64
	for _, s := range all {
		a, ok := loaded(s)
		if ok && sets[a.side] == nil {
			sets[a.side], seqs[a.side] = map[string]string{}, map[string]uint64{}
		}
		if ok && s.Seq >= seqs[a.side][a.key] {
			sets[a.side][a.key], seqs[a.side][a.key] = a.json, s.Seq
		}
	}
	return sets[userSide], sets[systemSide]
}
