package metrics

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/foldlog/foldlog/internal/serde"
)

// Layout under a root: runs/<slug>/<stream id>.jsonl, both names as
// [EncodeSlug] and [StreamID] spell them.
const (
	// RunsDir is the directory of a root that holds one directory per slug.
	RunsDir = "runs"
	// Extension is that of a stream's file.
	Extension = ".jsonl"
)

// longestEncoded is where an encoded slug gives way to a shortened one: file
// names end at 255 bytes.
const longestEncoded = 240

// CheckSlug refuses with [ErrSlug] what is not 1 to [MaxSlug] bytes of UTF-8
// without "/" and control characters, and "." and "..", which no path of a URL can end
// in.
func CheckSlug(slug string) error {
	switch {
	case slug == "":
		return fmt.Errorf("%w: it is empty", ErrSlug)
	case slug == ".", slug == "..":
		return fmt.Errorf("%w: %q cannot be part of an address", ErrSlug, slug)
	case len(slug) > MaxSlug:
		return &LimitError{"slug", len(slug), MaxSlug, "bytes", ErrSlug}
	}
	if err := serde.ValidString(slug); err != nil {
		return fmt.Errorf("%w: %w", ErrSlug, err)
	}
	for _, r := range slug {
		if r == '/' || unicode.IsControl(r) {
			return fmt.Errorf("%w: %q in %q", ErrSlug, r, slug)
		}
	}
	return nil
}

// EncodeSlug spells a slug as the name of a directory that cannot be another
// directory's path: letters, digits, "-", "_", "." inside, and everything
// beyond ASCII stand for themselves, all else is %XX. One too long for a file
// name is cut and ends in "%" and a hash; the stream itself has the slug.
func EncodeSlug(slug string) string {
	var b strings.Builder
	for i := range len(slug) {
		c := slug[i]
		if plainSlugByte(c) && (c != '.' || i > 0 && i < len(slug)-1) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	name := b.String()
	if reservedName(name) {
		name = fmt.Sprintf("%%%02X", name[0]) + name[1:]
	}
	if len(name) <= longestEncoded {
		return name
	}
	sum := sha256.Sum256([]byte(slug))
	return strings.ToValidUTF8(name[:longestEncoded-20], "") + "%" + hex.EncodeToString(sum[:8])
}

func plainSlugByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' || c >= utf8.RuneSelf
}

// reservedName knows the names that Windows keeps for devices.
func reservedName(name string) bool {
	base, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch base {
	case "CON", "PRN", "AUX", "NUL":
		return true
	}
	return len(base) == 4 && (base[:3] == "COM" || base[:3] == "LPT") && '0' <= base[3] && base[3] <= '9'
}

// DecodeSlug is the reverse of [EncodeSlug]; a cut name is refused with
// [ErrSlug], as is whatever EncodeSlug does not write.
func DecodeSlug(name string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		var c [1]byte
		if i+3 > len(name) {
			return "", fmt.Errorf("%w: directory name %q", ErrSlug, name)
		}
		if _, err := hex.Decode(c[:], []byte(name[i+1:i+3])); err != nil {
			return "", fmt.Errorf("%w: directory name %q", ErrSlug, name)
		}
		b.WriteByte(c[0])
		i += 2
	}
	slug := b.String()
	if err := CheckSlug(slug); err != nil {
		return "", err
	}
	if EncodeSlug(slug) != name {
		return "", fmt.Errorf("%w: directory name %q", ErrSlug, name)
	}
	return slug, nil
}

// StreamID names a stream: the first 16 hex digits of the SHA-256 of its first
// line, without its newline.
func StreamID(firstLine []byte) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(string(firstLine), "\n")))
	return hex.EncodeToString(sum[:8])
}

// CheckStreamID refuses with [ErrRefused] what is not 16 lower-case hex digits.
func CheckStreamID(id string) error {
	if len(id) == 16 && strings.Trim(id, "0123456789abcdef") == "" {
		return nil
	}
	return fmt.Errorf("%w: stream id %.40q is not 16 hex digits", ErrRefused, id)
}

// StreamPath is where the file of a stream is under a root.
func StreamPath(root, slug, id string) string {
	return filepath.Join(root, RunsDir, EncodeSlug(slug), id+Extension)
}

// FindStreams lists every .jsonl file under a root in file name order, those
// of [StreamPath] and loose ones; hidden directories, links and what may not be read
// are left out. It does not look into the files: see [IsStream].
func FindStreams(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case err != nil:
			return nil
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.Type().IsRegular() && filepath.Ext(path) == Extension:
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find streams: %w", err)
	}
	return found, nil
}

// IsStream tells from the beginning of a file, 4 KiB or so, whether it is a
// metrics stream: there is an event among its whole lines, or its first line is
// the beginning of a long open.
func IsStream(start []byte) bool {
	found := false
	var dec Decoder
	lines := splitter{}
	lines.write(start, func(l line) {
		if !found {
			var e Event
			found = dec.Decode(l.text, &e) == nil
		}
	})
	return found || lines.number == 0 && looksLikeOpen(lines.held)
}

// looksLikeOpen knows the cut beginning of an open.
func looksLikeOpen(b []byte) bool {
	s := serde.NewScanner(b)
	for s.Object(); s.NextKey(); {
		if string(s.Key()) != "kind" {
			s.Skip()
			continue
		}
		return s.Peek() == '"' && string(s.Bytes()) == "open"
	}
	return false
}
