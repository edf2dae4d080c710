package journal

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sniff tells whether a file that begins with these bytes is, or clearly was, a
// study journal of some format, also a newer one. It judges a beginning of any
// length.
func Sniff(start []byte) bool {
	line, _, whole := bytes.Cut(start, []byte("\n"))
	if whole {
		if _, err := headerFormat(line); err == nil {
			return true
		}
	}
	return bytes.HasPrefix(start, []byte(`{"record":"header"`))
}

// StudyPath returns the study path that a path belongs to by its place alone:
// a data directory's, or that of a path beside which a data directory with data
// files lies. It returns "" if there is none.
func StudyPath(path string) string {
	if head, ok := strings.CutSuffix(filepath.Clean(path), ".d"); ok && hasData(path) {
		return head
	}
	if hasData(path + ".d") {
		return path
	}
	return ""
}

func hasData(dir string) bool {
	d, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(256)
		for _, name := range names {
			if strings.HasPrefix(name, dataPrefix) || name == leaseDir {
				return true
			}
		}
		if err != nil {
			return false
		}
	}
}

// LastChange returns when a journal was last published to in Unix milliseconds, as
// its file system says, without reading it.
func LastChange(path string, opts ReaderOptions) (int64, error) {
	fsys := orOS(opts.FS)
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = fsys.Stat(path + ".d")
	}
	if err != nil {
		return 0, err
	}
	return info.ModTime().UnixMilli(), nil
}
