package optuna

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/foldlog/foldlog/internal/serde"
)

// Python's json module writes and reads more than JSON: NaN, Infinity and
// -Infinity bare, halves of surrogate pairs, keys that stand twice, numbers of any
// size. What follows walks such text without judging it further.

// maxNesting bounds the recursion over what a file or a client sends.
const maxNesting = 500

var errPython = errors.New("not JSON as Python writes it")

// pyValid tells whether Python's json.loads reads raw.
func pyValid(raw []byte) bool {
	end, err := pySkip(raw, pySpace(raw, 0), 0)
	return err == nil && pySpace(raw, end) == len(raw) && utf8.Valid(raw)
}

func pySpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

func pyFail(at int) (int, error) { return at, fmt.Errorf("%w: at byte %d", errPython, at) }

// pySkip returns where the value that begins at i ends.
func pySkip(b []byte, i, depth int) (int, error) {
	switch {
	case i >= len(b) || depth > maxNesting:
		return pyFail(i)
	case b[i] == '"':
		return pySkipString(b, i)
	case b[i] == '{':
		return pyWalk(b, i, '}', depth, nil)
	case b[i] == '[':
		return pyWalk(b, i, ']', depth, nil)
	}
	end := i
	for end < len(b) && bytes.IndexByte([]byte(" \t\r\n,:]}\"[{"), b[end]) < 0 {
		end++
	}
	switch token := b[i:end]; string(token) {
	case "NaN", "Infinity", "-Infinity":
	default:
		if !json.Valid(token) {
			return pyFail(i)
		}
	}
	return end, nil
}

func pySkipString(b []byte, i int) (int, error) {
	escaped := false
	for end := i + 1; end < len(b); end++ {
		switch c := b[end]; {
		case c < ' ':
			return pyFail(end)
		case c == '\\':
			escaped = true
			end++
		case c == '"':
			if escaped && !json.Valid(b[i:end+1]) {
				return pyFail(i)
			}
			return end + 1, nil
		}
	}
	return pyFail(len(b))
}

// pyWalk goes through the object or array that begins at i and hands its members
// to each, if not nil: key is the raw string, nil in an array.
func pyWalk(b []byte, i int, closing byte, depth int, each func(key, value []byte) error) (int, error) {
	i = pySpace(b, i+1)
	if i < len(b) && b[i] == closing {
		return i + 1, nil
	}
	for {
		var key []byte
		if closing == '}' {
			if i >= len(b) || b[i] != '"' {
				return pyFail(i)
			}
			end, err := pySkipString(b, i)
			if err != nil {
				return end, err
			}
			key, i = b[i:end], pySpace(b, end)
			if i >= len(b) || b[i] != ':' {
				return pyFail(i)
			}
			i = pySpace(b, i+1)
		}
		end, err := pySkip(b, i, depth+1)
		if err != nil {
			return end, err
		}
		if each != nil {
			if err := each(key, b[i:end]); err != nil {
				return i, err
			}
		}
		i = pySpace(b, end)
		switch {
		case i < len(b) && b[i] == ',':
			i = pySpace(b, i+1)
		case i < len(b) && b[i] == closing:
			return i + 1, nil
		default:
			return pyFail(i)
		}
	}
}

// pyMembers hands the members of the object that raw is to each.
func pyMembers(raw []byte, each func(key string, value []byte) error) error {
	return pyWhole(raw, '{', '}', func(key, value []byte) error {
		name, err := pyString(key)
		if err != nil {
			return err
		}
		return each(name, value)
	})
}

// pyElements hands the elements of the array that raw is to each.
func pyElements(raw []byte, each func(value []byte) error) error {
	return pyWhole(raw, '[', ']', func(_, value []byte) error { return each(value) })
}

func pyWhole(raw []byte, opening, closing byte, each func(key, value []byte) error) error {
	i := pySpace(raw, 0)
	if i >= len(raw) || raw[i] != opening {
		return fmt.Errorf("%w: %q expected", errPython, opening)
	}
	end, err := pyWalk(raw, i, closing, 0, each)
	if err == nil && pySpace(raw, end) != len(raw) {
		_, err = pyFail(end)
	}
	return err
}

func pyString(raw []byte) (string, error) {
	s := serde.NewScanner(raw)
	text := s.String()
	return text, s.End()
}

func pyNull(raw []byte) bool { return string(raw) == "null" }

// pyFloat reads a number; true and false count as Python counts them.
func pyFloat(raw []byte) (float64, error) {
	switch string(raw) {
	case "NaN":
		return math.NaN(), nil
	case "Infinity":
		return math.Inf(1), nil
	case "-Infinity":
		return math.Inf(-1), nil
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%w: number expected, not %.40q", errPython, raw)
	}
	return f, nil
}

func pyInt(raw []byte) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return n, nil
	}
	f, err := pyFloat(raw)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, fmt.Errorf("%w: integer expected, not %.40q", errPython, raw)
	}
	return int64(f), nil
}

// appendPyFloat spells a float as Python's json module reads it.
func appendPyFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		quoted := serde.AppendFloat(nil, f)
		return append(dst, quoted[1:len(quoted)-1]...)
	}
	return serde.AppendFloat(dst, f)
}

// oneLine takes the line breaks out of a text that is JSON, where they can only
// stand between values.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
