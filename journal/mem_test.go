package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/internal/serde"
)

const memPath = "/j/s.atj"

// newMem is a file system in memory with a durable, empty directory /j.
func newMem(t testing.TB) *fsx.Mem {
	t.Helper()
	m := fsx.NewMem()
	if err := errors.Join(m.Mkdir("/j", 0o755), m.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return m
}

// memOptions suit tests in memory: whoever died is overtaken soon.
func memOptions(fsys fsx.FS) WriterOptions {
	o := WriterOptions{
		FS: fsys, Worker: new(uint64(7)), Program: "test", Term: MinTerm,
		Clock: func() time.Time { return time.UnixMilli(1000) },
	}
	if tr, ok := fsys.(*trap); ok {
		o.together = tr.together
	}
	return o
}

// idOp is an operation that can be told apart.
func idOp(id string) []byte { return fmt.Appendf(nil, `{"kind":"test","id":%q}`, id) }

// opID returns what [idOp] put in.
func opID(rec *Record) string {
	s := serde.NewScanner(rec.Op)
	id := ""
	for s.Object(); s.NextKey(); {
		if string(s.Key()) == "id" {
			id = s.String()
		} else {
			s.Skip()
		}
	}
	return id
}

// ids is a machine that keeps the ids in order, its own operations included.
type ids struct {
	all    []string
	queued []string // of transactions not yet settled
}

func (m *ids) Apply(rec *Record) error {
	if rec.Seq != uint64(len(m.all))+1 {
		return fmt.Errorf("operation %d comes after %d", rec.Seq, len(m.all))
	}
	m.all = append(m.all, opID(rec))
	return nil
}

func (m *ids) Reset() { m.all = nil }

func (m *ids) Settle(published bool) {
	if published {
		m.all = append(m.all, m.queued...)
	}
	m.queued = nil
}

// put appends operations in one transaction of a writer whose machine is an ids.
func put(ctx context.Context, w *Writer, names ...string) error {
	m := w.m.(*ids)
	return w.Do(ctx, func(tx *Tx) error {
		for _, name := range names {
			if err := tx.Append(idOp(name)); err != nil {
				return err
			}
		}
		if want := uint64(len(m.all) + len(m.queued) + len(names) + 1); tx.NextSeq() != want {
			return fmt.Errorf("next operation is %d and the machine is at %d", tx.NextSeq(), want)
		}
		m.queued = append(m.queued, names...)
		return nil
	})
}

func mustPut(t testing.TB, w *Writer, names ...string) {
	t.Helper()
	if err := put(t.Context(), w, names...); err != nil {
		t.Fatal(err)
	}
}

// putFromMany lets several writers, each with a handle and options of its own,
// append at once, an operation at a time.
func putFromMany(t testing.TB, path string, options func(writer int) WriterOptions, writers, each int) {
	t.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	for i := range writers {
		wg.Go(func() {
			w, err := OpenWriter(t.Context(), path, options(i), new(ids))
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			for k := range each {
				if err := put(t.Context(), w, fmt.Sprintf("%d-%d", i, k)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// readIDs reads a journal anew.
func readIDs(t testing.TB, fsys fsx.FS, path string) []string {
	t.Helper()
	r, err := OpenReader(path, ReaderOptions{FS: fsys})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := new(ids)
	if err := r.Refresh(m); err != nil {
		t.Fatal(err)
	}
	return m.all
}

// verifySound fails the test for every fault that Verify finds.
func verifySound(t testing.TB, fsys fsx.FS, path string) {
	t.Helper()
	_, err := Verify(t.Context(), path, VerifyOptions{ReaderOptions: ReaderOptions{FS: fsys}}, func(f Finding) {
		if f.Severity == Fault {
			t.Errorf("verify: %s at %d, operation %d: %v", f.Path, f.Offset, f.Seq, f.Err)
		}
	})
	if err != nil {
		t.Errorf("verify: %v", err)
	}
}

// outcome is what the callers of a run were told.
type outcome struct {
	created bool       // the journal was there or its creation acknowledged
	acked   [][]string // transactions
	unknown [][]string // begun and neither acknowledged nor refused for certain
}

// tell notes what a caller was told.
func (o *outcome) tell(err error, crashed bool, names ...string) {
	var uncertain *UncertainError
	switch {
	case err == nil:
		o.acked = append(o.acked, names)
	case crashed || errors.As(err, &uncertain):
		o.unknown = append(o.unknown, names)
	}
}

// check holds what a journal says against the outcome: what was acknowledged is
// there once, what is unknown there whole or not at all, nothing else is.
func (o *outcome) check(t testing.TB, got []string) {
	t.Helper()
	count := map[string]int{}
	for _, id := range got {
		count[id]++
	}
	for _, tx := range o.acked {
		for _, id := range tx {
			if count[id] != 1 {
				t.Errorf("acknowledged operation %s is there %d times in %v", id, count[id], got)
			}
			delete(count, id)
		}
	}
	for _, tx := range o.unknown {
		n := count[tx[0]]
		for _, id := range tx {
			if count[id] != n || n > 1 {
				t.Errorf("unacknowledged transaction %v is half there in %v", tx, got)
			}
			delete(count, id)
		}
	}
	for id := range count {
		t.Errorf("operation %q is there and nobody was left in doubt about it: %v", id, got)
	}
}

// reopen is what the next process does after a fault that is over: it opens or
// creates the journal, finds what it must and appends.
func (o *outcome) reopen(t testing.TB, fsys fsx.FS) {
	t.Helper()
	m := new(ids)
	w, err := OpenWriter(t.Context(), memPath, memOptions(fsys), m)
	if errors.Is(err, fs.ErrNotExist) && !o.created {
		w, err = Create(t.Context(), memPath, memOptions(fsys), m)
	}
	if err != nil {
		t.Errorf("reopen: %v\n%s", err, listing(fsys, "/j"))
		return
	}
	o.check(t, m.all)
	if err := put(t.Context(), w, "after-1", "after-2"); err != nil {
		t.Errorf("next append: %v\n%s", err, listing(fsys, "/j"))
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	got := readIDs(t, fsys, memPath)
	if n := len(got); n < 2 || !slices.Equal(got[n-2:], []string{"after-1", "after-2"}) {
		t.Errorf("the next append is not at the end of %v", got)
	}
	verifySound(t, fsys, memPath)
}

// listing shows a directory tree.
func listing(fsys fsx.FS, dir string) string {
	var b strings.Builder
	entries, _ := fsys.ReadDir(dir)
	for _, e := range entries {
		path := dir + "/" + e.Name()
		if e.IsDir() {
			b.WriteString(path + "/\n" + listing(fsys, path))
			continue
		}
		content, _ := fsx.ReadFile(fsys, path, 4096)
		fmt.Fprintf(&b, "%s: %d bytes\n", path, len(content))
	}
	return b.String()
}
