package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// OpenInput opens a file to read, "-" for standard input.
func (e *Env) OpenInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(e.In()), nil
	}
	return os.Open(path)
}

// WriteOut writes a result to standard output, or to a file that is replaced once it is
// complete (see ReplaceFile).
func (e *Env) WriteOut(path string, write func(io.Writer) error) error {
	if path == "" {
		return Buffered(e.Out(), write)
	}
	return Failed("write", path, ReplaceFile(path, write))
}

// FormatOf is the format in which a file is written: the other one if that is the ending
// of its name. The ending of a format that is neither is a usage error: what such a file
// would hold is not what its name says.
func FormatOf(path, usual, other string) (string, error) {
	end := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), "."))
	switch {
	case end == other:
		return other, nil
	case end != usual && slices.Contains(dataFormats, end):
		return "", WithHint(Usagef("--out %q: it would be %s or %s", path, usual, other), "--format says which, whatever the name is")
	}
	return usual, nil
}

// dataFormats are the endings of names by which people mean a format.
var dataFormats = []string{"arrow", "csv", "feather", "json", "jsonl", "ndjson", "parquet", "tsv", "xlsx"}

// ReplaceFile writes a file beside path and renames it to path once it is
// complete and on disk. On an error path is as it was. The file that a link
// leads to is replaced, and not the link. What is not a regular file, such as a
// pipe or a device, is written to.
func ReplaceFile(path string, write func(io.Writer) error) error {
	mode := fs.FileMode(0o666)
	switch info, err := os.Stat(path); {
	case err == nil && info.IsDir():
		return syscall.EISDIR
	case err == nil && !info.Mode().IsRegular():
		return writeThrough(path, write)
	case err == nil:
		mode = info.Mode().Perm()
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return writeAndRename(path, mode, write)
}

func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(Buffered(f, write), f.Close())
}

func writeAndRename(path string, mode fs.FileMode, write func(io.Writer) error) (err error) {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+rand.Text())
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return withoutName(err)
	}
	defer func() {
		if err != nil {
			os.Remove(temporary)
		}
	}()
	err = Buffered(f, write)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// withoutName keeps the name of a temporary file, which means nothing to
// anybody, out of an error.
func withoutName(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", at.Op, at.Err)
	}
	return err
}
