package fsx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// kind reduces an error to what callers may rely on.
func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{nil, "ok"}, {fs.ErrNotExist, "not exist"}, {fs.ErrExist, "exist"}, {fs.ErrPermission, "permission"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	if err == nil {
		return "ok"
	}
	return "error"
}

// bench is a file system and a directory in it, and what its calls answered.
type bench struct {
	fs  FS
	dir string
	log []string
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) note(format string, args ...any) {
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

func (b *bench) write(name string, flag int, text string) {
	f, err := b.fs.OpenFile(b.path(name), flag, 0o644)
	b.note("open %s: %s", name, kind(err))
	if err != nil {
		return
	}
	defer f.Close()
	b.note("write %s: %s, sync: %s", name, kind(WriteFull(f, []byte(text), 0)), kind(f.Sync()))
}

func (b *bench) read(name string) {
	text, err := ReadFile(b.fs, b.path(name), 1<<20)
	b.note("read %s: %q %s", name, text, kind(err))
}

func (b *bench) list(name string) {
	entries, err := b.fs.ReadDir(b.path(name))
	b.note("list %s: %s", name, kind(err))
	for _, e := range entries {
		b.note("  %s %v", e.Name(), e.IsDir())
	}
}

func (b *bench) do(what string, err error) { b.note("%s: %s", what, kind(err)) }

const newFile = os.O_CREATE | os.O_EXCL | os.O_WRONLY

// calls are what Mem must answer as OS does.
var calls = []struct {
	name string
	run  func(b *bench)
}{
	{"exclusive creation fails where something is", func(b *bench) {
		b.write("a", newFile, "one")
		b.write("a", newFile, "two")
		b.do("mkdir", b.fs.Mkdir(b.path("d"), 0o777))
		b.write("d", newFile, "three")
		b.do("mkdir", b.fs.Mkdir(b.path("a"), 0o777))
		b.do("mkdir", b.fs.Mkdir(b.path("none/d"), 0o777))
		b.read("a")
	}},
	{"missing files and directories", func(b *bench) {
		b.write("none/a", newFile, "")
		b.write("a", os.O_WRONLY, "")
		b.read("a")
		b.list("none")
		b.do("remove", b.fs.Remove(b.path("a")))
		b.do("rename", b.fs.Rename(b.path("a"), b.path("b")))
		b.do("link", b.fs.Link(b.path("a"), b.path("b")))
		b.do("sync", b.fs.SyncDir(b.path("none")))
		_, err := b.fs.Stat(b.path("a"))
		b.do("stat", err)
		_, err = b.fs.Lstat(b.path("a"))
		b.do("lstat", err)
		_, err = b.fs.EvalSymlinks(b.path("a"))
		b.do("resolve", err)
	}},
	{"a file where a directory should be", func(b *bench) {
		b.write("a", newFile, "x")
		b.write("a/b", newFile, "x")
		b.list("a")
		b.do("mkdir", b.fs.Mkdir(b.path("a/b"), 0o777))
		b.do("mkdir", b.fs.Mkdir(b.path("d"), 0o777))
		b.write("d", os.O_WRONLY, "x")
		b.read("a")
	}},
	{"rename replaces a file and an empty directory only", func(b *bench) {
		b.write("a", newFile, "a")
		b.write("b", newFile, "b")
		b.do("file over file", b.fs.Rename(b.path("a"), b.path("b")))
		b.read("a")
		b.read("b")
		for _, d := range []string{"d", "e", "full"} {
			b.do("mkdir", b.fs.Mkdir(b.path(d), 0o777))
		}
		b.write("full/x", newFile, "x")
		b.do("file over directory", b.fs.Rename(b.path("b"), b.path("d")))
		b.do("directory over file", b.fs.Rename(b.path("d"), b.path("b")))
		b.do("directory over empty directory", b.fs.Rename(b.path("d"), b.path("e")))
		b.do("directory over full directory", b.fs.Rename(b.path("e"), b.path("full")))
		b.do("full directory moves", b.fs.Rename(b.path("full"), b.path("moved")))
		b.read("moved/x")
		b.list("")
	}},
	{"remove takes files and empty directories", func(b *bench) {
		b.do("mkdir", b.fs.Mkdir(b.path("d"), 0o777))
		b.write("d/x", newFile, "x")
		b.do("remove full", b.fs.Remove(b.path("d")))
		b.do("remove file", b.fs.Remove(b.path("d/x")))
		b.do("remove empty", b.fs.Remove(b.path("d")))
		b.list("")
	}},
	{"a link is a second name", func(b *bench) {
		b.write("a", newFile, "one")
		b.do("link", b.fs.Link(b.path("a"), b.path("b")))
		b.do("link again", b.fs.Link(b.path("a"), b.path("b")))
		b.write("a", os.O_WRONLY, "two")
		b.read("b")
		b.write("c", newFile, "new")
		b.do("rename over", b.fs.Rename(b.path("c"), b.path("a")))
		b.read("a")
		b.read("b")
		b.do("rename onto its own link", b.fs.Rename(b.path("b"), b.path("b")))
		b.list("")
	}},
	{"renaming one link onto another does nothing", func(b *bench) {
		b.write("a", newFile, "one")
		b.do("link", b.fs.Link(b.path("a"), b.path("b")))
		b.do("rename", b.fs.Rename(b.path("a"), b.path("b")))
		b.list("")
	}},
	{"an open file lives on without its name", func(b *bench) {
		b.write("a", newFile, "one")
		f, err := b.fs.OpenFile(b.path("a"), os.O_RDONLY, 0)
		b.do("open", err)
		defer f.Close()
		b.do("remove", b.fs.Remove(b.path("a")))
		got := make([]byte, 5)
		n, err := f.ReadAt(got, 0)
		b.note("read %q %v", got[:n], err)
		n, err = f.ReadAt(got, 100)
		b.note("read past the end %d %v", n, err)
		b.list("")
	}},
	{"a write leaves a hole of zeros", func(b *bench) {
		f, err := b.fs.OpenFile(b.path("a"), newFile, 0o644)
		b.do("open", err)
		defer f.Close()
		b.do("write", WriteFull(f, []byte("x"), 3))
		info, err := f.Stat()
		b.note("size %d %v %s", info.Size(), info.IsDir(), kind(err))
		b.read("a")
	}},
	{"truncation", func(b *bench) {
		b.write("a", newFile, "long text")
		b.write("a", os.O_WRONLY|os.O_TRUNC, "x")
		b.read("a")
		b.write("a", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, "y")
		b.read("a")
	}},
	{"modes", func(b *bench) {
		f, err := b.fs.OpenFile(b.path("a"), newFile, 0o600)
		b.do("open", err)
		b.do("chmod", f.Chmod(0o640))
		b.do("close", f.Close())
		info, err := b.fs.Stat(b.path("a"))
		b.note("mode %v %s %s", info.Mode(), info.Name(), kind(err))
		b.do("mkdir", b.fs.Mkdir(b.path("d"), 0o750))
		info, err = b.fs.Stat(b.path("d"))
		b.note("mode %v %s", info.Mode(), kind(err))
	}},
	{"a lock is one file's until it is closed", func(b *bench) {
		b.write("a", newFile, "")
		f, err := b.fs.OpenFile(b.path("a"), os.O_RDONLY, 0)
		b.do("open", err)
		g, err := b.fs.OpenFile(b.path("a"), os.O_RDONLY, 0)
		b.do("open", err)
		try := func(f File) {
			got, err := f.TryLock()
			b.note("lock %v %s", got, kind(err))
		}
		try(f)
		try(f)
		try(g)
		b.do("close", f.Close())
		try(g)
		b.do("close", g.Close())
	}},
	{"a file longer than the limit", func(b *bench) {
		b.write("a", newFile, "12345")
		_, err := ReadFile(b.fs, b.path("a"), 4)
		b.note("too long: %v", errors.Is(err, ErrTooLong))
		text, err := ReadFile(b.fs, b.path("a"), 5)
		b.note("%q %s", text, kind(err))
	}},
	{"a read-only directory keeps its names", func(b *bench) {
		b.do("mkdir", b.fs.Mkdir(b.path("d"), 0o777))
		b.write("d/a", newFile, "x")
		d, err := b.fs.OpenFile(b.path("d"), os.O_RDONLY, 0)
		b.do("open", err)
		b.do("chmod", d.Chmod(0o555))
		b.write("d/b", newFile, "x")
		b.do("mkdir", b.fs.Mkdir(b.path("d/e"), 0o777))
		b.do("remove", b.fs.Remove(b.path("d/a")))
		b.do("rename", b.fs.Rename(b.path("d/a"), b.path("a")))
		b.read("d/a")
		b.do("chmod", d.Chmod(0o755))
		b.do("close", d.Close())
		b.do("remove", b.fs.Remove(b.path("d/a")))
	}},
}

func TestMemAnswersAsTheOperatingSystem(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			real := &bench{fs: OS, dir: t.TempDir()}
			if c.name == "a read-only directory keeps its names" && os.Getuid() == 0 {
				t.Log("root may write everywhere: only the file system in memory is looked at")
				real.fs = NewMem()
				real.dir = "/"
			}
			c.run(real)
			mem := &bench{fs: NewMem(), dir: "/"}
			c.run(mem)
			if diff := cmp.Diff(real.log, mem.log); diff != "" {
				t.Errorf("(-os +mem):\n%s", diff)
			}
		})
	}
}
