package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/foldlog/foldlog/internal/fsx"
)

func TestOldFormatsOpenReadOnlyAsTheyAre(t *testing.T) {
	for format := 1; format <= 5; format++ {
		t.Run(fmt.Sprint(format), func(t *testing.T) {
			m := newMem(t)
			writeLegacy(t, m, memPath, format, "", "one", "two")
			before := listing(m, "/j")
			r, err := OpenReader(memPath, ReaderOptions{FS: m})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got := new(ids)
			if err := r.Refresh(got); err != nil || !slices.Equal(got.all, []string{"one", "two"}) {
				t.Errorf("read %v, %v", got.all, err)
			}
			if r.Header().Format != uint64(format) || r.Head().Ops != 2 {
				t.Errorf("header %+v, head %+v", r.Header(), r.Head())
			}
			if after := listing(m, "/j"); after != before {
				t.Errorf("reading changed something:\n%s", after)
			}
			verifySound(t, m, memPath)
		})
	}
}

func TestTornEndOfAnOldJournalMeansNotYet(t *testing.T) {
	m := newMem(t)
	third := string(appendRecord(nil, 3, 3, 5, idOp("three")))
	writeLegacy(t, m, memPath, 5, third[:20], "one", "two")
	r, err := OpenReader(memPath, ReaderOptions{FS: m})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := new(ids)
	if err := r.Refresh(got); err != nil || len(got.all) != 2 {
		t.Fatalf("read %v, %v", got.all, err)
	}
	grow(t, m, memPath, third[20:])
	if err := r.Refresh(got); err != nil || !slices.Equal(got.all, []string{"one", "two", "three"}) {
		t.Errorf("read %v, %v", got.all, err)
	}
}

// grow appends to a file as an older program does.
func grow(t *testing.T, fsys fsx.FS, path, text string) {
	t.Helper()
	info, err := fsys.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fsys.OpenFile(path, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(fsx.WriteFull(f, []byte(text), info.Size()), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamagedOldJournalNamesLineAndOffset(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tail   string
		offset int // into the tail
		seq    uint64
	}{
		{"blank line", "\n" + string(appendRecord(nil, 3, 3, 5, idOp("x"))), 0, 3},
		{"half record glued to the next", `{"record":"op","se` + string(appendRecord(nil, 3, 3, 5, idOp("x"))), 0, 3},
		{"number left out", string(appendRecord(nil, 4, 3, 5, idOp("x"))), 0, 3},
		{"fault after a sound line", string(appendRecord(nil, 3, 3, 5, idOp("x"))) + "{}\n", len(appendRecord(nil, 3, 3, 5, idOp("x"))), 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMem(t)
			writeLegacy(t, m, memPath, 4, tt.tail, "one", "two")
			info, _ := m.Stat(memPath)
			want := info.Size() - int64(len(tt.tail)) + int64(tt.offset)
			r, err := OpenReader(memPath, ReaderOptions{FS: m})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			got := new(ids)
			var c *CorruptError
			if err := r.Refresh(got); !errors.As(err, &c) || c.Offset != want || c.Seq != tt.seq || c.Path != memPath {
				t.Errorf("%v, want byte %d, operation %d", err, want, tt.seq)
			}
			if len(got.all) != int(tt.seq)-1 {
				t.Errorf("before the fault: %v", got.all)
			}
			before := listing(m, "/j")
			if w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids)); err == nil {
				w.Close()
				t.Error("a writer opened it")
			}
			if after := listing(m, "/j"); after != before {
				t.Errorf("a migration that cannot be changed something:\n%s", after)
			}
			done, err := Salvage(t.Context(), memPath, "/j/saved.atj", nil, CopyOptions{ReaderOptions: ReaderOptions{FS: m}})
			if err != nil || done.Ops != tt.seq-1 || done.Fault == nil {
				t.Errorf("salvage: %+v, %v", done, err)
			}
		})
	}
}

func TestMigrationKeepsEveryByteOfTheHistory(t *testing.T) {
	for _, links := range []bool{true, false} {
		t.Run(fmt.Sprintf("links=%v", links), func(t *testing.T) {
			m := newMem(t)
			m.NoLinks = !links
			writeLegacy(t, m, memPath, 3, `{"record":"op","torn`, "one", "two")
			old, _ := fsx.ReadFile(m, memPath, 1<<20)
			var from uint64
			var kept string
			opts := memOptions(m)
			opts.OnMigrate = func(f uint64, k string) { from, kept = f, k }
			w, err := OpenWriter(t.Context(), memPath, opts, new(ids))
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, w, "three")
			w.Close()
			if from != 3 || kept != KeptPath(memPath, 3) {
				t.Errorf("heard of format %d, kept at %s", from, kept)
			}
			want := strings.Replace(strings.TrimSuffix(string(old), `{"record":"op","torn`), `"format":3`, `"format":6`, 1)
			got := stream(t, memPath, ReaderOptions{FS: m})
			if !strings.HasPrefix(got, want) || !strings.Contains(got, `"site":"lab"`) {
				t.Errorf("stream\n%s\nwant to begin\n%s", got, want)
			}
			if b, err := fsx.ReadFile(m, kept, 1<<20); err != nil || string(b) != string(old) {
				t.Errorf("kept file: %q, %v", b, err)
			}
			again := memOptions(m)
			again.OnMigrate = func(uint64, string) { t.Error("migrated twice") }
			w, err = OpenWriter(t.Context(), memPath, again, new(ids))
			if err != nil {
				t.Fatal(err)
			}
			w.Close()
			verifySound(t, m, memPath)
		})
	}
}

func TestVerifyWarnsOfAnOlderWriterThatWasNotStopped(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Severity
	}{
		{"whole line", string(appendRecord(nil, 3, 3, 5, idOp("late"))), Warning},
		{"torn line", `{"record":"op"`, Note},
		{"very long line", `{"record":"op","x":"` + strings.Repeat("x", 200<<10) + "\"}\n", Warning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMem(t)
			writeLegacy(t, m, memPath, 5, "", "one", "two")
			late, err := m.OpenFile(memPath, os.O_WRONLY, 0) // an older writer's handle
			if err != nil {
				t.Fatal(err)
			}
			at, _ := late.Stat()
			w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
			if err != nil {
				t.Fatal(err)
			}
			mustPut(t, w, "three")
			w.Close()
			if err := fsx.WriteFull(late, []byte(tt.text), at.Size()); err != nil {
				t.Fatal(err)
			}
			var found []Finding
			if _, err := Verify(t.Context(), memPath, VerifyOptions{ReaderOptions: ReaderOptions{FS: m}}, func(f Finding) { found = append(found, f) }); err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 || found[0].Severity != tt.want || found[0].Path != KeptPath(memPath, 5) || found[0].Offset != at.Size() {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestSeveralWritersMigrateOnce(t *testing.T) {
	m := newMem(t)
	writeLegacy(t, m, memPath, 5, "", "one", "two")
	errs := make(chan error)
	for i := range 6 {
		go func() {
			w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
			if err == nil {
				err = errors.Join(put(t.Context(), w, fmt.Sprint("w", i)), w.Close())
			}
			errs <- err
		}()
	}
	for range 6 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	got := readIDs(t, m, memPath)
	slices.Sort(got)
	if want := []string{"one", "two", "w0", "w1", "w2", "w3", "w4", "w5"}; !slices.Equal(got, want) {
		t.Errorf("journal holds %v", got)
	}
	verifySound(t, m, memPath)
}

func TestMigrationRefusesToReplaceWhatItDidNotKeep(t *testing.T) {
	m := newMem(t)
	writeLegacy(t, m, memPath, 5, "", "one")
	writeLegacy(t, m, KeptPath(memPath, 5), 5, "", "something else")
	if _, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids)); err == nil || !strings.Contains(err.Error(), "holds something else") {
		t.Errorf("opened: %v", err)
	}
	if got := readIDs(t, m, memPath); !slices.Equal(got, []string{"one"}) {
		t.Errorf("journal holds %v", got)
	}
}

func TestFollowerGoesOnAcrossAMigration(t *testing.T) {
	m := newMem(t)
	writeLegacy(t, m, memPath, 5, "", "one", "two")
	r, err := OpenReader(memPath, ReaderOptions{FS: m})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := new(ids)
	if err := r.Refresh(got); err != nil {
		t.Fatal(err)
	}
	w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	mustPut(t, w, "three")
	if err := r.Refresh(got); err != nil || !slices.Equal(got.all, []string{"one", "two", "three"}) {
		t.Errorf("read %v, %v", got.all, err)
	}
}

// TestRefreshAmidAMigration migrates between a reader's look at the header and its
// reading of the lines.
func TestRefreshAmidAMigration(t *testing.T) {
	m := newMem(t)
	writeLegacy(t, m, memPath, 5, "", "one", "two")
	opened := 0
	faulty := fsx.NewFault(m, func(c fsx.Call) fsx.Fate {
		if c.Op != "open" || c.Path != memPath {
			return fsx.Fate{}
		}
		if opened++; opened != 3 { // OpenReader's, and the first of Refresh
			return fsx.Fate{}
		}
		w, err := OpenWriter(t.Context(), memPath, memOptions(m), new(ids))
		if err != nil {
			t.Error(err)
			return fsx.Fate{}
		}
		mustPut(t, w, "three")
		w.Close()
		return fsx.Fate{}
	})
	r, err := OpenReader(memPath, ReaderOptions{FS: faulty})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := new(ids)
	if err := r.Refresh(got); err != nil || !slices.Equal(got.all, []string{"one", "two", "three"}) {
		t.Errorf("read %v, %v", got.all, err)
	}
}
