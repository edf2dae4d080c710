package journal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lines is a machine that keeps every published line.
type lines struct {
	mu      sync.Mutex
	all     []string
	resets  int
	applied uint64
}

func (m *lines) Apply(rec *Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, string(rec.Line))
	m.applied = rec.Seq
	return nil
}

func (m *lines) Reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all, m.applied = nil, 0
	m.resets++
}

func (m *lines) Settle(bool) {}

func (m *lines) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	for _, l := range m.all {
		b.WriteString(l)
	}
	return b.String()
}

// emptyJournal makes a journal without operations.
func emptyJournal(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "parent")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.atj")
	w, err := Create(context.Background(), path, WriterOptions{}, new(ids))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// stream returns the virtual stream of a journal.
func stream(t testing.TB, path string, opts ReaderOptions) string {
	t.Helper()
	r, err := OpenReader(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := new(lines)
	if err := r.Refresh(m); err != nil {
		t.Fatal(err)
	}
	return string(r.HeaderLine()) + m.text()
}

func appendOps(t testing.TB, w *Writer, ops ...string) {
	t.Helper()
	err := w.Do(t.Context(), func(tx *Tx) error {
		for _, op := range ops {
			if err := tx.Append([]byte(op)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGoldenReadsAndIsWrittenByteForByte(t *testing.T) {
	const golden = "testdata/golden/golden.atj"
	dir := t.TempDir()
	path := filepath.Join(dir, "golden.atj")
	var at uint64
	opts := WriterOptions{
		Worker: new(uint64(0)), Program: "0.0.0",
		Clock:    func() time.Time { return time.UnixMilli(int64(at)) },
		DataFile: func(uint64, uint64) string { return "data-0000000000000000-00000000-0000000000000000" },
	}
	at = 1000000
	w, err := Create(t.Context(), path, opts, new(lines))
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(golden, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copyAll := applyFunc(func(rec *Record) error {
		at = rec.AtMillis
		appendOps(t, w, string(rec.Op))
		return nil
	})
	if err := r.Refresh(copyAll); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"golden.atj", "golden.atj.d/data-0000000000000000-00000000-0000000000000000"} {
		want, err := os.ReadFile(filepath.Join("testdata/golden", name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

type applyFunc func(*Record) error

func (f applyFunc) Apply(rec *Record) error { return f(rec) }
func (f applyFunc) Reset()                  {}

func TestConcurrentWritersKeepOneDenseSequence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.atj")
	w, err := Create(t.Context(), path, WriterOptions{}, new(lines))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			w, err := OpenWriter(context.Background(), path, WriterOptions{}, new(lines))
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			for k := range each {
				appendOps(t, w, fmt.Sprintf(`{"kind":"x","writer":%d,"k":%d}`, i, k))
			}
		})
	}
	wg.Wait()
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	m := new(lines)
	if err := r.Refresh(m); err != nil {
		t.Fatal(err)
	}
	if got := r.Head().Ops; got != writers*each || m.applied != got {
		t.Errorf("journal holds %d operations, reader applied %d; want %d", got, m.applied, writers*each)
	}
}
