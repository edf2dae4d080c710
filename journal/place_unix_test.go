//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

// create makes a journal at a path of the operating system with one operation.
func create(t *testing.T, path string) {
	t.Helper()
	w, err := Create(t.Context(), path, WriterOptions{}, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, w, "one")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// appendTo appends one operation with a new handle.
func appendTo(t *testing.T, path, id string) {
	t.Helper()
	w, err := OpenWriter(t.Context(), path, WriterOptions{}, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, id)
}

func TestHeadThatIsASymbolicLinkStaysOne(t *testing.T) {
	dir := t.TempDir()
	store, link := filepath.Join(dir, "store"), filepath.Join(dir, "link.atj")
	if err := os.Mkdir(store, 0o777); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(store, "real.atj")
	create(t, target)
	if err := os.Symlink("store/real.atj", link); err != nil {
		t.Fatal(err)
	}
	appendTo(t, link, "two")
	if got, err := os.Readlink(link); err != nil || got != "store/real.atj" {
		t.Errorf("the link is %q, %v", got, err)
	}
	if _, err := os.Lstat(link + ".d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a data directory beside the link: %v", err)
	}
	if got := readIDs(t, fsx.OS, target); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("the target holds %v", got)
	}
	if _, err := Create(t.Context(), link, WriterOptions{}, new(ids)); !errors.Is(err, ErrExist) {
		t.Errorf("creating at the link: %v", err)
	}
}

func TestNothingIsCreatedInPlaceOfALinkThatLeadsNowhere(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link.atj")
	if err := os.Symlink("nowhere.atj", link); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), link, WriterOptions{}, new(ids)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("creating: %v", err)
	}
	if got, err := os.Readlink(link); err != nil || got != "nowhere.atj" {
		t.Errorf("the link is %q, %v", got, err)
	}
}

func TestHeadKeepsItsMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	create(t, path)
	w, err := OpenWriter(t.Context(), path, WriterOptions{}, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, mode := range []fs.FileMode{0o600, 0o664, 0o666, 0o444} {
		mustPut(t, w, string(rune('a'+i)))
		if err := os.Chmod(path, mode); err != nil { // under the lease
			t.Fatal(err)
		}
		mustPut(t, w, string(rune('A'+i)))
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode is %v, %v; want %v", info.Mode().Perm(), err, mode)
		}
	}
}

func TestNamedPipesAreNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe.atj")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenReader(pipe, ReaderOptions{}); !errors.Is(err, ErrNotJournal) {
		t.Errorf("head: %v", err)
	}
	path := filepath.Join(dir, "s.atj")
	create(t, path)
	l, _ := newLayout(fsx.OS, path)
	names, err := l.dataFiles()
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := errors.Join(os.Remove(l.dataFile(names[0])), syscall.Mkfifo(l.dataFile(names[0]), 0o666)); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := OpenWriter(t.Context(), path, WriterOptions{}, new(ids)); !errors.As(err, &corrupt) {
		t.Errorf("data file: %v", err)
	}
}

// TestGroupWritableRootIsSharedWhateverTheUmask checks the modes that let the
// rest of a group read, append and take over, also of copies.
func TestGroupWritableRootIsSharedWhateverTheUmask(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := errors.Join(os.Mkdir(root, 0o770), os.Chmod(root, 0o770)); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(root, "s.atj")
	create(t, path)
	appendTo(t, path, "two")
	_, copyErr := Copy(t.Context(), path, filepath.Join(root, "copy.atj"), CopyOptions{})
	_, salvageErr := Salvage(t.Context(), path, filepath.Join(root, "saved.atj"), nil, CopyOptions{})
	if err := errors.Join(copyErr, salvageErr); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		info, err := e.Info()
		want := fs.FileMode(0o060)
		if e.IsDir() {
			want = 0o070
		}
		if err == nil && info.Mode()&0o070 != want {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPrivateRootStaysPrivate(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(root, "s.atj")
	create(t, path)
	for _, name := range []string{path, path + ".d"} {
		if info, err := os.Stat(name); err != nil || info.Mode()&0o077 != 0 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
}

// Two users of a group, by number.
const (
	oneUser, otherUser = 60001, 60002
	sharedGroup        = 54321
)

// TestTwoUsersShareAGroupWritableRoot runs writers of two users where the test
// may start such processes, which root alone may, and not in every container.
func TestTwoUsersShareAGroupWritableRoot(t *testing.T) {
	root, err := os.MkdirTemp("", "foldlog-shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	err = errors.Join(os.Chown(root, 0, sharedGroup), os.Chmod(root, 0o770|fs.ModeSetgid))
	if err == nil {
		err = reaches(root, oneUser)
	}
	if err != nil {
		t.Logf("no processes of other users here, the modes are tested by themselves: %v", err)
		return
	}
	binary := filepath.Join(root, "writer")
	copyBinary(t, binary)
	path := filepath.Join(root, "s.atj")
	create(t, path)
	var all []*child
	for i, uid := range []uint32{oneUser, otherUser} {
		all = append(all, startAs(t, binary, uid, sharedGroup, path, string(rune('a'+i))))
	}
	for _, c := range all {
		waitFor(t, func() bool { return c.count() > 20 })
	}
	all[0].kill()
	had := all[1].count()
	waitFor(t, func() bool { return all[1].count() > had+20 })
	all[1].stdin.Close()
	if err := all[1].wait(); err != nil {
		t.Error(err)
	}
	verifySound(t, fsx.OS, path)
}

// reaches tries whether a process of another user can be started, and comes to a directory.
func reaches(dir string, uid uint32) error {
	cmd := exec.Command("/bin/sh", "-c", `cd -- "$1"`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: sharedGroup}}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func copyBinary(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close(), os.Chmod(to, 0o755)); err != nil {
		t.Fatal(err)
	}
}
