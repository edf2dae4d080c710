package pipefile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/foldlog/foldlog/datagen"
	"github.com/foldlog/foldlog/datagen/pipeline"
)

// maxSourceLine is the longest line of a file of items, in bytes.
const maxSourceLine = 64 << 20

// SourceError says which line of a file of items is wrong.
type SourceError struct {
	File string
	Line int
	Err  error
}

// Error implements error.
func (e *SourceError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns what is wrong.
func (e *SourceError) Unwrap() error { return e.Err }

// Hint says what a line looks like.
func (e *SourceError) Hint() string {
	return `a line is a key, "cat-1", or an object: {"key": "cat-1", "fields": {"prompt": "a cat"}, "tags": {"split": "train"}}; of lines that are the fields themselves --key FIELD says which is the key`
}

// Sources reads items, one JSON value a line, as they are wanted: a text or a
// whole number is a key; an object has a key, and may have fields and tags. If
// keyField is not "", an object is the fields, and that one of them is the key.
// Paths of blobs are relative to dir; file is for messages. Errors are
// *SourceError or those of reading.
func Sources(file string, r io.Reader, dir, keyField string) iter.Seq2[pipeline.Source, error] {
	return func(yield func(pipeline.Source, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxSourceLine)
		n := 0
		for lines.Scan() {
			n++
			text := bytes.TrimSpace(lines.Bytes())
			if len(text) == 0 {
				continue
			}
			s, err := source(bytes.Clone(text), dir, keyField)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = errors.New("the JSON ends too early")
			}
			if err != nil {
				yield(s, &SourceError{file, n, err})
				return
			}
			if !yield(s, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(pipeline.Source{}, &SourceError{file, n + 1, err})
		}
	}
}

func source(text []byte, dir, keyField string) (s pipeline.Source, err error) {
	if !bytes.HasPrefix(text, []byte("{")) {
		s.Key, err = key(text)
		return s, err
	}
	var fields json.RawMessage
	if keyField != "" {
		fields = text
		err = eachMember(text, func(name string, raw json.RawMessage) (err error) {
			if name == keyField {
				s.Key, err = key(raw)
			}
			return err
		})
	} else {
		err = eachMember(text, func(name string, raw json.RawMessage) (err error) {
			switch name {
			case "key":
				s.Key, err = key(raw)
			case "fields":
				fields = raw
			case "tags":
				s.Tags, err = tags(raw)
			default:
				err = fmt.Errorf("there is no member %q; there are key, fields and tags", name)
			}
			return err
		})
	}
	switch {
	case err != nil:
		return s, err
	case s.Key == "" && keyField != "":
		return s, fmt.Errorf("the field %q, which is the key, is missing", keyField)
	case s.Key == "":
		return s, errors.New("the key is missing")
	case fields == nil:
		return s, nil
	case !bytes.HasPrefix(bytes.TrimSpace(fields), []byte("{")):
		return s, errors.New("fields must be an object")
	}
	s.Fields = func() ([]datagen.Change, error) {
		changes, filter, err := changesOf(fields, dir)
		if filter {
			err = fmt.Errorf("the key %q is not known here", filterKey)
		}
		return changes, err
	}
	return s, nil
}

func key(raw []byte) (string, error) {
	raw = bytes.TrimSpace(raw)
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		v, numErr := parseValue(raw, "")
		if numErr != nil || v.Kind != datagen.Int {
			return "", errors.New("a key is a text or a whole number")
		}
		text = string(raw)
	}
	switch {
	case text == "":
		return "", errors.New("the key is empty")
	case len(text) > datagen.MaxTextBytes:
		return "", fmt.Errorf("the key has %d bytes, and %d is the most", len(text), datagen.MaxTextBytes)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", fmt.Errorf("the key %q has a character that no key may have", text)
	}
	return text, nil
}

func tags(raw json.RawMessage) (json.RawMessage, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil, errors.New("tags must be an object")
	}
	return datagen.CanonicalJSON(raw)
}
