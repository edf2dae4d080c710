package fsx

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// run makes one call of each kind and returns what each answered.
func runAll(f FS) (answers []string) {
	note := func(err error) { answers = append(answers, kind(err)) }
	note(f.Mkdir("/d", 0o777))
	file, err := f.OpenFile("/d/a", os.O_CREATE|os.O_RDWR, 0o644)
	note(err)
	if err == nil {
		defer file.Close()
		note(WriteFull(file, []byte("text"), 0))
		note(file.Sync())
		note(file.Chmod(0o600))
	}
	note(f.Rename("/d/a", "/d/b"))
	note(f.Link("/d/b", "/d/c"))
	note(f.Remove("/d/b"))
	note(f.SyncDir("/d"))
	return answers
}

func TestFaultNumbersTheCallsThatChange(t *testing.T) {
	var got []string
	f := NewFault(NewMem(), func(c Call) Fate {
		if c.Mutates() {
			got = append(got, c.Op+" "+c.Path)
			if c.N != len(got) {
				t.Errorf("%s is numbered %d, want %d", c.Op, c.N, len(got))
			}
		}
		return Fate{}
	})
	runAll(f)
	want := []string{
		"mkdir /d", "create /d/a", "write /d/a", "sync /d/a", "chmod /d/a",
		"rename /d/b", "link /d/c", "remove /d/b", "syncdir /d",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.Changes() != len(want) {
		t.Errorf("%d changes, want %d", f.Changes(), len(want))
	}
}

func TestFaultFailsTheCallItIsToldTo(t *testing.T) {
	for n := 1; n <= 9; n++ {
		mem := NewMem()
		f := NewFault(mem, func(c Call) Fate {
			if c.N == n && c.Mutates() {
				return Fate{Err: syscall.EIO}
			}
			return Fate{}
		})
		answers := runAll(f)
		failed := 0
		for _, a := range answers {
			if a == "error" {
				failed++
			}
		}
		if failed != 1 {
			t.Errorf("call %d: answers %q", n, answers)
		}
	}
}

func TestFaultAfterTheEffect(t *testing.T) {
	mem := NewMem()
	f := NewFault(mem, func(c Call) Fate { return Fate{Err: syscall.EIO, Done: true} })
	if err := f.Mkdir("/d", 0o777); !errors.Is(err, syscall.EIO) {
		t.Errorf("mkdir: %v", err)
	}
	if _, err := f.OpenFile("/d/a", os.O_CREATE|os.O_RDWR, 0o644); !errors.Is(err, syscall.EIO) {
		t.Errorf("create: %v", err)
	}
	if got := content(mem, "/d/a"); got != "" {
		t.Errorf("the created file: %q", got)
	}
	if err := f.Mkdir("/d", 0o777); kind(err) != "exist" {
		t.Errorf("a call that fails by itself: %v", err)
	}
}

func TestFaultShortensWrites(t *testing.T) {
	mem := NewMem()
	f := NewFault(mem, func(c Call) Fate {
		if c.Op == "write" {
			return Fate{Err: syscall.ENOSPC, Short: 3}
		}
		return Fate{}
	})
	file, err := f.OpenFile("/a", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	n, err := file.WriteAt([]byte("text"), 0)
	if n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if got := content(mem, "/a"); got != "tex" {
		t.Errorf("the file holds %q", got)
	}
}

func TestNothingHappensAfterACrash(t *testing.T) {
	mem := NewMem()
	f := NewFault(mem, func(c Call) Fate { return Fate{Crash: c.Op == "sync"} })
	runAll(f)
	if err := f.Mkdir("/later", 0o777); !errors.Is(err, ErrCrashed) {
		t.Errorf("mkdir after the crash: %v", err)
	}
	if _, err := f.Stat("/d"); !errors.Is(err, ErrCrashed) {
		t.Errorf("stat after the crash: %v", err)
	}
	if got := content(mem, "/d/a"); got != "text" {
		t.Errorf("before the crash: %q", got)
	}
	if _, err := mem.Stat("/later"); kind(err) != "not exist" {
		t.Errorf("the directory was made: %v", err)
	}
}

func TestFileSystemsWithoutLinksAndLocksSaySo(t *testing.T) {
	m := NewMem()
	m.NoLinks, m.NoLocks = true, true
	f := store(t, m, "/a", "x", true)
	if err := m.Link("/a", "/b"); !IsUnsupported(err) {
		t.Errorf("link: %v", err)
	}
	if _, err := f.TryLock(); !IsUnsupported(err) {
		t.Errorf("lock: %v", err)
	}
}
