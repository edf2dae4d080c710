package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/foldlog/foldlog/journal"
)

// printer is a machine that keeps nothing: it prints what is published.
type printer struct{ name string }

func (p printer) Apply(rec *journal.Record) error {
	fmt.Printf("%s: operation %d %s\n", p.name, rec.Seq, rec.Op)
	return nil
}

func (p printer) Reset()      {}
func (p printer) Settle(bool) {}

// Two operations are appended in one transaction, and read back. What an operation
// means is the machine's business; programs that run studies use package study, which
// has one.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "search.atj")
	w, err := journal.Create(ctx, path, journal.WriterOptions{}, printer{"writer"})
	if err != nil {
		log.Fatal(err)
	}
	err = w.Do(ctx, func(tx *journal.Tx) error {
		for _, op := range []string{`{"kind":"create-study"}`, `{"kind":"create-trial"}`} {
			if err := tx.Append([]byte(op)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil { // nil: both are durable, in one extent
		log.Fatal(err)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	r, err := journal.OpenReader(path, journal.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	if err := r.Refresh(printer{"reader"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// reader: operation 1 {"kind":"create-study"}
	// reader: operation 2 {"kind":"create-trial"}
}

// stopAt ends a following at an operation.
type stopAt struct {
	printer
	seq  uint64
	stop context.CancelFunc
}

func (s stopAt) Apply(rec *journal.Record) error {
	if rec.Seq == s.seq {
		defer s.stop()
	}
	return s.printer.Apply(rec)
}

// A reader follows the journal while others write to it.
func ExampleReader_Follow() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "search.atj")
	w, err := journal.Create(ctx, path, journal.WriterOptions{}, printer{"writer"})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	r, err := journal.OpenReader(path, journal.ReaderOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	go func() {
		for n := range 3 {
			op := fmt.Appendf(nil, `{"kind":"report","step":%d}`, n)
			if err := w.Do(ctx, func(tx *journal.Tx) error { return tx.Append(op) }); err != nil {
				log.Fatal(err)
			}
		}
	}()
	follow, stop := context.WithCancel(ctx)
	defer stop()
	if err := r.Follow(follow, time.Millisecond, stopAt{printer{"follower"}, 3, stop}, nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// follower: operation 1 {"kind":"report","step":0}
	// follower: operation 2 {"kind":"report","step":1}
	// follower: operation 3 {"kind":"report","step":2}
}

// Verify goes on after a fault and tells of each; here there is none.
func ExampleVerify() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, path := context.Background(), filepath.Join(dir, "search.atj")
	err = journal.Build(ctx, path, journal.WriterOptions{}, func(b *journal.Builder) error {
		return b.Append(1, 1_700_000_000_000, []byte(`{"kind":"create-study"}`))
	})
	if err != nil {
		log.Fatal(err)
	}
	sum, err := journal.Verify(ctx, path, journal.VerifyOptions{}, func(f journal.Finding) {
		fmt.Printf("%s: %s, byte %d: %v\n", f.Severity, filepath.Base(f.Path), f.Offset, f.Err)
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("format %d, %d operations in %d extents, %d faults\n", sum.Format, sum.Ops, sum.Extents, sum.Faults)
	// Output: format 6, 1 operations in 1 extents, 0 faults
}
