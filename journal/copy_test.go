package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

func TestCopyIsTheHistoryOfOneMomentWhileWritersAppend(t *testing.T) {
	path := emptyJournal(t)
	fsys := noSync{fsx.OS}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			w, err := OpenWriter(t.Context(), path, WriterOptions{FS: fsys}, new(ids))
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			for k := 0; ctx.Err() == nil; k++ {
				if err := put(t.Context(), w, fmt.Sprintf("%d-%d", i, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var copies []string
	for time.Now().Before(end) || len(copies) < 2 { // two, however slow they are
		to := filepath.Join(t.TempDir(), "copy.atj")
		if _, err := Copy(t.Context(), path, to, CopyOptions{ReaderOptions: ReaderOptions{FS: fsys}}); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	cancel()
	wg.Wait()
	whole := readIDs(t, fsx.OS, path)
	for _, c := range copies {
		got := readIDs(t, fsx.OS, c)
		if len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) {
			t.Errorf("a copy of %d operations is not a beginning", len(got))
		}
		verifySound(t, fsx.OS, c)
	}
}

func TestCopyKeepsEveryByteThatIsPublished(t *testing.T) {
	s := newSpecimen(t)
	s.write(s.data("data-b"), append(s.read(s.data("data-b")), "torn"...))
	s.write(s.data("data-c"), []byte("never published"))
	opts := CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}
	done, err := Copy(t.Context(), memPath, "/j/copy.atj", opts)
	if err != nil || done.Ops != 6 {
		t.Fatal(done, err)
	}
	for _, name := range []string{"", ".d/data-a", ".d/data-b"} {
		want := bytes.TrimSuffix(s.read(memPath+name), []byte("torn"))
		if got := s.read("/j/copy.atj" + name); !bytes.Equal(got, want) {
			t.Errorf("copy%s holds\n%s\nwant\n%s", name, got, want)
		}
	}
	if _, err := s.mem.Stat("/j/copy.atj.d/data-c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that nobody names was copied: %v", err)
	}
	if _, err := Copy(t.Context(), memPath, "/j/copy.atj", opts); !errors.Is(err, fs.ErrExist) {
		t.Errorf("copying onto a journal: %v", err)
	}
}

// TestCopyThatFailsLeavesNothing fails each call of a copy and of a salvage.
func TestCopyThatFailsLeavesNothing(t *testing.T) {
	for name, run := range map[string]func(ctx context.Context, opts CopyOptions) (*CopyStats, error){
		"copy": func(ctx context.Context, opts CopyOptions) (*CopyStats, error) {
			return Copy(ctx, memPath, "/j/copy.atj", opts)
		},
		"salvage": func(ctx context.Context, opts CopyOptions) (*CopyStats, error) {
			return Salvage(ctx, memPath, "/j/copy.atj", nil, opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpecimen(t)
			for n := int64(1); ; n++ {
				mem := s.mem.Clone()
				tr := newTrap(mem, func(k int64, c fsx.Call) fsx.Fate {
					if k == n {
						return fsx.Fate{Err: syscall.ENOSPC}
					}
					return fsx.Fate{}
				})
				tr.armed.Store(true)
				_, err := run(t.Context(), CopyOptions{ReaderOptions: ReaderOptions{FS: tr}})
				if err == nil {
					if n < 8 {
						t.Errorf("only %d calls", n-1)
					}
					break
				}
				if !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("call %d: %v", n, err)
				}
				tr.armed.Store(false)
				_, headErr := mem.Stat("/j/copy.atj")
				if left := listing(mem, "/j"); headErr != nil && strings.Contains(left, "copy") {
					t.Errorf("call %d leaves\n%s", n, left)
				}
				if headErr == nil {
					verifySound(t, mem, "/j/copy.atj")
				}
			}
		})
	}
}

func TestCopyRefusesADamagedLine(t *testing.T) {
	s := newSpecimen(t)
	for _, file := range []string{"data-a", "data-b"} {
		s.write(s.data(file), bytes.ReplaceAll(s.read(s.data(file)), []byte("four"), []byte("FOUR")))
	}
	_, err := Copy(t.Context(), memPath, "/j/copy.atj", CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}})
	var fault *CorruptError
	if !errors.As(err, &fault) || !strings.HasPrefix(fault.Path, s.data("data-")) || fault.Seq != 4 {
		t.Errorf("copy: %v, want a fault of operation 4 in the source", err)
	}
	if left := listing(s.mem, "/j"); strings.Contains(left, "copy") {
		t.Errorf("left:\n%s", left)
	}
}

func TestSalvageEndsWhereTheCheckRefuses(t *testing.T) {
	s := newSpecimen(t)
	refusal := errors.New("this one is wrong")
	check := applyFunc(func(rec *Record) error {
		if opID(rec) == "four" {
			return refusal
		}
		return nil
	})
	done, err := Salvage(t.Context(), memPath, "/j/saved.atj", check, CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}})
	if err != nil || done.Ops != 3 || done.Lost != 3 || !errors.Is(done.Fault, refusal) {
		t.Errorf("%+v, %v", done, err)
	}
	if got := readIDs(t, s.mem, "/j/saved.atj"); !slices.Equal(got, specimenIDs[:3]) {
		t.Errorf("saved %v", got)
	}
}

func TestSalvageOfASoundJournalLosesNothing(t *testing.T) {
	s := newSpecimen(t)
	opts := CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}
	done, err := Salvage(t.Context(), memPath, "/j/saved.atj", nil, opts)
	if err != nil || done.Ops != 6 || done.Lost != 0 || done.Fault != nil || done.Guessed {
		t.Errorf("%+v, %v", done, err)
	}
	want := stream(t, memPath, opts.ReaderOptions)
	if got := stream(t, "/j/saved.atj", opts.ReaderOptions); got != want {
		t.Errorf("saved\n%s\nwant\n%s", got, want)
	}
}

func TestCancelledCopiesAndChecksStop(t *testing.T) {
	s := newSpecimen(t)
	const old = "/j/old.atj"
	writeLegacy(t, s.mem, old, 5, "", "one")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	opts := CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}
	if _, err := Copy(ctx, memPath, "/j/copy.atj", opts); !errors.Is(err, context.Canceled) {
		t.Errorf("copy: %v", err)
	}
	if _, err := Salvage(ctx, memPath, "/j/saved.atj", nil, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("salvage: %v", err)
	}
	for _, path := range []string{memPath, old} {
		check := VerifyOptions{ReaderOptions: opts.ReaderOptions}
		_, err := Verify(ctx, path, check, func(f Finding) { t.Errorf("verify %s: %+v", path, f) })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("verify %s: %v", path, err)
		}
	}
}

func TestCopyOfAnOldJournalCountsItsOperations(t *testing.T) {
	m := newMem(t)
	writeLegacy(t, m, memPath, 5, `{"record":`, "one", "two")
	done, err := Copy(t.Context(), memPath, "/j/copy.atj", CopyOptions{ReaderOptions: ReaderOptions{FS: m}})
	if err != nil || done.Ops != 2 {
		t.Fatal(done, err)
	}
	if got := readIDs(t, m, "/j/copy.atj"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("copy holds %v", got)
	}
}

// TestCopyTakesDataFilesOfAnyName copies a journal of a writer that names its files
// in its own way, as the format admits.
func TestCopyTakesDataFilesOfAnyName(t *testing.T) {
	s := newSpecimen(t)
	for _, file := range []string{"data-a", "data-b"} {
		s.write(s.data("part-"+file[5:]), bytes.ReplaceAll(s.read(s.data(file)), []byte(`"data-`), []byte(`"part-`)))
		if err := s.mem.Remove(s.data(file)); err != nil {
			t.Fatal(err)
		}
	}
	s.write(memPath, bytes.ReplaceAll(s.read(memPath), []byte(`"data-`), []byte(`"part-`)))
	want := readIDs(t, s.mem, memPath)
	if _, err := Copy(t.Context(), memPath, "/j/copy.atj", CopyOptions{ReaderOptions: ReaderOptions{FS: s.mem}}); err != nil {
		t.Fatal(err)
	}
	if got := readIDs(t, s.mem, "/j/copy.atj"); len(want) != 6 || !slices.Equal(got, want) {
		t.Errorf("copy holds %v, want %v", got, want)
	}
}
