package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
)

const (
	// DefaultMaxRecordBytes caps one operation line.
	DefaultMaxRecordBytes = 16 << 20
	// DefaultMaxExtentBytes caps the payload of one extent, and so what one
	// transaction may write.
	DefaultMaxExtentBytes = 64 << 20
)

// WriterOptions configure a [Writer]. The zero value is ready for use.
type WriterOptions struct {
	// FS is the file system, the operating system's if nil.
	FS fsx.FS
	// Worker is the id that every operation carries, below 2^53 so that JSON
	// readers keep it; nil draws one at random.
	Worker *uint64
	// Clock tells the wall time for at_millis and the header, time.Now if nil.
	Clock func() time.Time
	// Program goes into the header of a journal that is created, "foldlog" if "".
	Program string
	// Term is how long the lease lasts unless renewed, [DefaultTerm] if 0.
	Term time.Duration
	// MaxRecordBytes, MaxExtentBytes and MaxJournalBytes are the caps of an
	// operation line, an extent's payload and the virtual stream. 0 means
	// [DefaultMaxRecordBytes], [DefaultMaxExtentBytes] and no cap.
	MaxRecordBytes, MaxExtentBytes, MaxJournalBytes int64
	// DataFile names the n-th data file of this handle, from 0. A name begins with
	// data- and was never used before; the default is data-WORKER-N-RANDOM in
	// hexadecimal.
	DataFile func(worker, n uint64) string
	// OnTakeover hears who held a lease that was taken over because its holder
	// had stopped. It is called while the lease is acquired and must be quick.
	OnTakeover func(Owner)
	// OnMigrate hears that a journal of an older format is about to be
	// migrated, and where its old file stays.
	OnMigrate func(from uint64, kept string)

	// together runs two functions that do not depend on each other; nil does so
	// at the same time.
	together func(a, b func())
}

func (c WriterOptions) withDefaults() (WriterOptions, error) {
	c.FS = orOS(c.FS)
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Worker == nil {
		c.Worker = new(1 + rand.Uint64N(1<<53-1))
	}
	if c.Program == "" {
		c.Program = "foldlog"
	}
	if c.Term == 0 {
		c.Term = DefaultTerm
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = DefaultMaxRecordBytes
	}
	if c.MaxExtentBytes == 0 {
		c.MaxExtentBytes = DefaultMaxExtentBytes
	}
	if c.DataFile == nil {
		c.DataFile = func(worker, n uint64) string {
			return fmt.Sprintf("%s%016x-%08x-%016x", dataPrefix, worker, n, random64())
		}
	}
	if c.together == nil {
		c.together = atOnce
	}
	return c, c.check()
}

func (c *WriterOptions) check() error {
	switch {
	case *c.Worker >= 1<<53:
		return fmt.Errorf("worker id %d is not below 2^53", *c.Worker)
	case c.Term < MinTerm || c.Term > MaxTerm:
		return fmt.Errorf("lease term %v is not between %v and %v", c.Term, MinTerm, MaxTerm)
	case c.MaxRecordBytes < 0 || c.MaxExtentBytes < 0 || c.MaxJournalBytes < 0:
		return errors.New("a cap is negative")
	case c.MaxExtentBytes > HardLimit || c.MaxRecordBytes > HardLimit:
		return fmt.Errorf("a cap is over the %d bytes that readers admit", HardLimit)
	}
	return nil
}
