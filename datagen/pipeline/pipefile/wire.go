package pipefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/internal/serde"
)

// The JSON by which commands and sources say values. A value is itself; what JSON
// cannot say is an object with one of these keys.
const (
	blobKey   = "$blob"   // the path of a file with the bytes
	floatKey  = "$float"  // "NaN", "Infinity" or "-Infinity"
	appendKey = "$append" // a value that is added to those of the field
	jsonKey   = "$json"   // a value that is kept as JSON, whatever it is
	filterKey = "$filter" // beside the fields: true ends the item as filtered
)

// ValueJSON is a value as commands get it. A blob is its size and checksum, with
// the path of a file that has the bytes if there is one.
func ValueJSON(v datagen.Value, path string) json.RawMessage {
	switch v.Kind {
	case datagen.Int:
		return strconv.AppendInt(nil, v.Int, 10)
	case datagen.Float:
		text := serde.AppendFloat(nil, v.Float)
		if math.IsNaN(v.Float) || math.IsInf(v.Float, 0) {
			return slices.Concat([]byte(`{"`+floatKey+`":`), text, []byte("}"))
		}
		return text
	case datagen.Bool:
		return strconv.AppendBool(nil, v.Bool)
	case datagen.Str:
		return serde.AppendString(nil, v.Str)
	case datagen.JSON:
		return v.JSON
	case datagen.Blob:
		out := []byte("{")
		if path != "" {
			out = append(serde.AppendString(append(out, `"`+blobKey+`":`...), path), ',')
		}
		out = append(out, fmt.Sprintf(`"size":%d,"checksum":"%s"}`, v.Blob.Size, v.Blob.Checksum)...)
		return out
	}
	return json.RawMessage("null")
}

// parseValue reads a value. Paths of blobs are relative to dir.
func parseValue(raw json.RawMessage, dir string) (datagen.Value, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return datagen.Value{}, errors.New("there is no value")
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return datagen.Value{}, err
		}
		return datagen.StrValue(s), nil
	case c == 't' || c == 'f':
		var b bool
		err := json.Unmarshal(raw, &b)
		return datagen.BoolValue(b), err
	case c == '-' || c >= '0' && c <= '9':
		return numberValue(raw)
	case c == '{':
		if v, ok, err := special(raw, dir); ok || err != nil {
			return v, err
		}
	}
	return jsonValue(raw)
}

func numberValue(raw json.RawMessage) (datagen.Value, error) {
	text := string(raw)
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return datagen.IntValue(i), nil
	}
	if !strings.ContainsAny(text, ".eE") {
		return jsonValue(raw) // a whole number beyond 64 bits keeps its digits
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return datagen.Value{}, fmt.Errorf("%s is not a float", text)
	}
	return datagen.FloatValue(f), nil
}

func jsonValue(raw json.RawMessage) (datagen.Value, error) {
	canonical, err := datagen.CanonicalJSON(raw)
	if err != nil {
		return datagen.Value{}, err
	}
	return datagen.JSONValue(canonical), nil
}

// special reads the objects that stand for something else; ok tells if it is one.
func special(raw json.RawMessage, dir string) (v datagen.Value, ok bool, err error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return v, false, err
	}
	for key, inner := range o {
		if !strings.HasPrefix(key, "$") {
			continue
		}
		if len(o) > 1 {
			return v, false, fmt.Errorf("an object with the key %q must have no other", key)
		}
		v, err = specialValue(key, inner, dir)
		return v, true, err
	}
	return v, false, nil
}

func specialValue(key string, raw json.RawMessage, dir string) (v datagen.Value, err error) {
	if key == jsonKey {
		return jsonValue(raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return v, fmt.Errorf("%s: %w", key, err)
	}
	switch key {
	case floatKey:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return v, fmt.Errorf("%s: %q is not a float", key, text)
		}
		return datagen.FloatValue(f), nil
	case blobKey:
		if !filepath.IsAbs(text) {
			text = filepath.Join(dir, text)
		}
		b, err := readBlob(text)
		return datagen.BlobValue(b), err
	}
	return v, fmt.Errorf("the key %q is not known; there are %s, %s, %s and %s", key, blobKey, floatKey, appendKey, jsonKey)
}

// readBlob reads a regular file; another, such as a pipe, might never end.
func readBlob(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	if err == nil && info.Size() > datagen.MaxBlobBytes {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", datagen.MaxBlobBytes)}
	}
	if err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read blob: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, datagen.MaxBlobBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read blob: %w", err)
	case len(b) > datagen.MaxBlobBytes:
		return nil, fmt.Errorf("read blob: %s has more than %d bytes", path, datagen.MaxBlobBytes)
	case b == nil:
		b = []byte{}
	}
	return b, nil
}

// Changes reads the fields that a command printed: an object whose members are
// the new values, in their order; or several objects, one after another.
func Changes(text []byte, dir string) (changes []datagen.Change, filter bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	for {
		var object json.RawMessage
		switch err := dec.Decode(&object); {
		case errors.Is(err, io.EOF):
			return changes, filter, nil
		case err != nil:
			return nil, false, fmt.Errorf("it is not JSON: %w", err)
		}
		some, f, err := changesOf(object, dir)
		if err != nil {
			return nil, false, err
		}
		changes, filter = append(changes, some...), filter || f
	}
}

func changesOf(object json.RawMessage, dir string) (changes []datagen.Change, filter bool, err error) {
	err = eachMember(object, func(name string, raw json.RawMessage) error {
		if name == filterKey {
			return json.Unmarshal(raw, &filter)
		}
		c, err := changeOf(name, raw, dir)
		changes = append(changes, c)
		return err
	})
	return changes, filter, err
}

func changeOf(name string, raw json.RawMessage, dir string) (c datagen.Change, err error) {
	if strings.HasPrefix(name, "$") {
		return c, fmt.Errorf("the key %q is not known; there is %s", name, filterKey)
	}
	add := false
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		var o map[string]json.RawMessage
		if err := json.Unmarshal(raw, &o); err != nil {
			return c, err
		}
		if inner, ok := o[appendKey]; ok && len(o) == 1 {
			add, raw = true, inner
		}
	}
	v, err := parseValue(raw, dir)
	if err != nil {
		return c, fmt.Errorf("field %q: %w", name, err)
	}
	if add {
		return datagen.Append(name, v), nil
	}
	return datagen.Set(name, v), nil
}

// eachMember goes through the members of an object in their order; a key that
// stands twice is an error.
func eachMember(object json.RawMessage, fn func(name string, raw json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("it is %.20s and not an object", object)
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("%q stands twice", name)
		}
		seen[name] = true
		if err := fn(name, raw); err != nil {
			return err
		}
	}
	return nil
}
