package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/foldlog/foldlog/internal/fsx"
)

const (
	dataPrefix = "data-"
	leaseDir   = "lease"
	queueDir   = "queue"
)

// layout is where a journal's parts lie.
type layout struct {
	fs fsx.FS
	// head is the study path with its symbolic links resolved.
	head string
	// parent holds the head and the data directory, data is that directory.
	parent, data string
}

// newLayout resolves the study path. A path that does not exist yet is taken as
// it is.
func newLayout(fsys fsx.FS, path string) (layout, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return layout{}, err
	}
	resolved, err := fsys.EvalSymlinks(abs)
	switch {
	case err == nil:
		abs = resolved
	case errors.Is(err, fs.ErrNotExist):
		if dir, err := fsys.EvalSymlinks(filepath.Dir(abs)); err == nil {
			abs = filepath.Join(dir, filepath.Base(abs))
		}
	default:
		return layout{}, err
	}
	return layout{fs: fsys, head: abs, parent: filepath.Dir(abs), data: abs + ".d"}, nil
}

func (l layout) dataFile(base string) string { return filepath.Join(l.data, base) }

// dataFiles lists the base names of the data files, sorted. No directory is no
// files.
func (l layout) dataFiles() ([]string, error) {
	entries, err := l.fs.ReadDir(l.data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), dataPrefix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// missing explains a head that is not there: ErrHeadMissing if data lies beside
// it, else an error for which errors.Is(err, fs.ErrNotExist) holds.
func (l layout) missing(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if names, listErr := l.dataFiles(); listErr == nil && len(names) > 0 {
		return fmt.Errorf("%s: %w (%s holds %d data files)", l.head, ErrHeadMissing, l.data, len(names))
	}
	return err
}

// syncDirs makes the names in the data directory and of the directory itself
// durable.
func (l layout) syncDirs() error {
	if err := l.fs.SyncDir(l.data); err != nil {
		return fmt.Errorf("sync data directory: %w", err)
	}
	return l.syncParent()
}

func (l layout) syncParent() error {
	if err := l.fs.SyncDir(l.parent); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// createShared creates a file that must not exist, open for flag, and shares it.
func createShared(fsys fsx.FS, name string, flag int) (fsx.File, error) {
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_EXCL|flag, 0o666)
	if err != nil {
		return nil, err
	}
	if err := share(fsys, name, f, 0o060); err != nil {
		f.Close()
		fsys.Remove(name)
		return nil, err
	}
	return f, nil
}

// mkdir makes a directory and shares it, or leaves nothing.
func (l layout) mkdir(dir string) error {
	if err := l.fs.Mkdir(dir, 0o777); err != nil {
		return err
	}
	d, err := l.fs.OpenFile(dir, os.O_RDONLY, 0)
	if err == nil {
		err = errors.Join(share(l.fs, dir, d, 0o070), d.Close())
	}
	if err != nil {
		l.fs.Remove(dir)
	}
	return err
}

// share gives the group these rights to what was made in a directory that it may
// write to: a shared root works whatever the umask.
func share(fsys fsx.FS, name string, f fsx.File, rights fs.FileMode) error {
	above, err := fsys.Stat(filepath.Dir(name))
	if err != nil || above.Mode()&0o020 == 0 {
		return err
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&rights == rights {
		return err
	}
	return f.Chmod(info.Mode() | rights)
}

// mkdirIfMissing is mkdir where the directory may be there already.
func (l layout) mkdirIfMissing(dir string) error {
	if err := l.mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
