// Command archive puts a directory into a .tar.gz or .zip file, the same bytes for the
// same files: names in order, owned by nobody, and all of one time.
//
//	archive DIRECTORY FILE
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: archive DIRECTORY FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "archive:", err)
		os.Exit(1)
	}
}

// epoch is the time of everything in an archive.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

func write(dir, file string) (err error) {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if strings.HasSuffix(file, ".zip") {
		return writeZip(dir, out)
	}
	return writeTar(dir, out)
}

// each calls add with the files of a directory, under its name, in order.
func each(dir string, add func(name string, mode fs.FileMode, b []byte) error) error {
	return filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.TrimSuffix(e.Name(), ".exe") == "foldlog" {
			mode = 0o755
		}
		return add(path.Join(filepath.Base(dir), filepath.ToSlash(rel)), mode, b)
	})
}

func writeTar(dir string, out io.Writer) error {
	zipped := gzip.NewWriter(out)
	w := tar.NewWriter(zipped)
	err := each(dir, func(name string, mode fs.FileMode, b []byte) error {
		h := &tar.Header{Name: name, Mode: int64(mode), Size: int64(len(b)), ModTime: epoch, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err := w.Write(b)
		return err
	})
	return errors.Join(err, w.Close(), zipped.Close())
}

func writeZip(dir string, out io.Writer) error {
	w := zip.NewWriter(out)
	err := each(dir, func(name string, mode fs.FileMode, b []byte) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: epoch}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		_, err = f.Write(b)
		return err
	})
	return errors.Join(err, w.Close())
}
