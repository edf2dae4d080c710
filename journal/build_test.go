package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestBuiltJournalIsReadAndVerified(t *testing.T) {
	path := filepath.Join(t.TempDir(), "built.atj")
	const n = 5000
	err := Build(context.Background(), path, WriterOptions{Program: "test", Worker: new(uint64(3))}, func(b *Builder) error {
		for i := range uint64(n) {
			if err := b.Append(i%7, 1000-i%10, fmt.Appendf(nil, `{"kind":"x","n":%d,"pad":"%0100d"}`, i, i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := Verify(context.Background(), path, VerifyOptions{}, func(f Finding) { t.Errorf("found %+v", f) })
	if err != nil || sum.Ops != n || sum.Extents < 2 {
		t.Fatalf("verify: %+v, %v", sum, err)
	}
	r, err := OpenReader(path, ReaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	seen := uint64(0)
	if err := r.Refresh(applyFunc(func(rec *Record) error {
		if rec.Worker != seen%7 || rec.AtMillis != 1000-seen%10 {
			t.Errorf("record %d: worker %d at %d", rec.Seq, rec.Worker, rec.AtMillis)
		}
		seen++
		return nil
	})); err != nil || seen != n {
		t.Fatalf("%d records, %v", seen, err)
	}
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	stop := errors.New("stop")
	for name, op := range map[string]string{"the filler fails": "", "broken JSON": "{", "two lines": "{\n}"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := Build(context.Background(), filepath.Join(dir, "a.atj"), WriterOptions{}, func(b *Builder) error {
				if op == "" {
					return stop
				}
				return b.Append(1, 1, []byte(op))
			})
			if err == nil || op == "" && !errors.Is(err, stop) {
				t.Errorf("got %v", err)
			}
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestBuildNeverReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.atj")
	if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	err := Build(context.Background(), path, WriterOptions{}, func(*Builder) error { return nil })
	if !errors.Is(err, ErrExist) || !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
}
