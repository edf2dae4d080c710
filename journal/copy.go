package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/foldlog/foldlog/internal/fsx"
)

// CopyOptions configure [Copy] and [Salvage]. The zero value is ready for use.
type CopyOptions struct {
	ReaderOptions
	// To is the file system of the copy, that of the source if nil.
	To fsx.FS
	// Progress hears of the bytes copied, of how many.
	Progress func(done, total int64)
}

// CopyStats tells what [Copy] or [Salvage] wrote.
type CopyStats struct {
	// Ops is how many operations the copy holds, Lost how many the damaged
	// source had published beyond them; -1 where nobody can tell.
	Ops  uint64
	Lost int64
	// Bytes is the copy's size.
	Bytes int64
	// Fault is what ended a salvage, nil if nothing was lost.
	Fault error
	// Guessed tells that the source's head, or a link of its chain, is unusable,
	// so that the last operations may never have been published.
	Guessed bool
}

// Copy makes a copy of a journal that may be written to meanwhile: the history
// of one moment, with the same data files, durable when it returns. The source
// is checked as far as its lines, and refused with a [*CorruptError] if it is damaged.
// Where the destination exists it fails with [fs.ErrExist]; on an error
// nothing stays there.
func Copy(ctx context.Context, from, to string, opts CopyOptions) (*CopyStats, error) {
	c, err := newCopier(from, to, opts)
	if err != nil {
		return nil, err
	}
	r, err := newReader(c.from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.snap.legacy() {
		if err := r.Refresh(until{ctx, discard{}}); err != nil {
			return nil, err
		}
	}
	if r.snap.legacy() { // and was not migrated meanwhile
		done, err := c.finish(&CopyStats{Ops: r.applied, Bytes: r.snap.size}, func() error {
			return copyFile(ctx, c.from.fs, c.from.head, c.fs, c.temporary(), r.snap.size)
		})
		c.fs.Remove(c.to.data) // a single file has no data directory
		return done, err
	}
	refs, _, err := r.pool.walk(r.snap, position{Head: r.snap.start()})
	if err != nil {
		return nil, err
	}
	infos, err := r.pool.fileInfos(refs)
	if err != nil {
		return nil, err
	}
	done := &CopyStats{Ops: r.snap.head.Ops}
	return c.finish(done, func() error {
		if err := c.copyData(ctx, infos, done); err != nil {
			return err
		}
		if err := c.writeHead(r.snap); err != nil {
			return err
		}
		return c.verify(ctx)
	})
}

// verify reads what was copied, before it is published: a fault is one of the source.
func (c *copier) verify(ctx context.Context) error {
	made := c.to
	made.fs, made.head = c.fs, c.temporary()
	r, err := newReader(made)
	if err != nil {
		return err
	}
	defer r.Close()
	err = r.Refresh(until{ctx, discard{}})
	if fault := (*CorruptError)(nil); errors.As(err, &fault) && filepath.Dir(fault.Path) == c.to.data {
		at := *fault
		at.Path = c.from.dataFile(filepath.Base(fault.Path))
		return &at
	}
	return err
}

// Salvage writes the longest sound beginning of a damaged journal to a new
// journal of the current format, every operation line verbatim. Check, if not
// nil, takes the records before they are written, and its refusal ends the
// salvage as a damaged byte would.
func Salvage(ctx context.Context, from, to string, check Applier, opts CopyOptions) (*CopyStats, error) {
	c, err := newCopier(from, to, opts)
	if err != nil {
		return nil, err
	}
	done := new(CopyStats)
	return c.finish(done, func() error { return c.salvage(ctx, check, done) })
}

type copier struct {
	fs       fsx.FS // of the copy
	from, to layout
	opts     CopyOptions
	made     []string // files made so far
	// published tells that a head may be in place.
	published bool
}

func newCopier(from, to string, opts CopyOptions) (*copier, error) {
	c := &copier{opts: opts}
	var err error
	if c.from, err = newLayout(orOS(c.opts.FS), from); err != nil {
		return nil, err
	}
	if c.fs = c.opts.To; c.fs == nil {
		c.fs = c.from.fs
	}
	if c.to, err = newLayout(c.fs, to); err != nil {
		return nil, err
	}
	return c, c.vacant()
}

// vacant checks that nothing is where the destination will be.
func (c *copier) vacant() error {
	for _, path := range []string{c.to.head, c.to.data} {
		if _, err := c.fs.Lstat(path); err == nil {
			return fmt.Errorf("%s: %w", path, fs.ErrExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (c *copier) temporary() string { return c.to.dataFile("head.new") }

// finish makes the destination: its directory, what fill writes there, and the
// head last.
func (c *copier) finish(done *CopyStats, fill func() error) (*CopyStats, error) {
	if err := c.to.mkdir(c.to.data); err != nil {
		return nil, err
	}
	err := fill()
	if err == nil {
		err = c.publish()
	}
	if err != nil {
		c.undo()
		return nil, err
	}
	return done, nil
}

func (c *copier) publish() error {
	if err := c.to.syncDirs(); err != nil {
		return err
	}
	c.published = true // whatever the rename answers
	if err := c.fs.Rename(c.temporary(), c.to.head); err != nil {
		return err
	}
	return c.to.syncParent()
}

func (c *copier) undo() {
	if c.published {
		c.fs.Remove(c.to.head) // first: a head never stands without its data
	}
	for _, path := range append(c.made, c.temporary(), c.to.data) {
		c.fs.Remove(path)
	}
}

// copyData copies the published part of every data file.
func (c *copier) copyData(ctx context.Context, infos []FileInfo, done *CopyStats) error {
	total := int64(0)
	for _, f := range infos {
		total += f.Published
	}
	for _, f := range infos {
		if f.Published == 0 {
			continue
		}
		to := c.to.dataFile(f.Name)
		c.made = append(c.made, to)
		if err := copyFile(ctx, c.from.fs, c.from.dataFile(f.Name), c.fs, to, f.Published); err != nil {
			return err
		}
		done.Bytes += f.Published
		if c.opts.Progress != nil {
			c.opts.Progress(done.Bytes, total)
		}
	}
	return nil
}

func (c *copier) writeHead(snap *snapshot) error {
	f, err := createShared(c.fs, c.temporary(), os.O_WRONLY)
	if err != nil {
		return err
	}
	err = fillTicket(f, &snapshot{headerLine: snap.headerLine}, snap.head)
	return errors.Join(err, f.Close())
}

// salvage writes what can be read of the source.
func (c *copier) salvage(ctx context.Context, check Applier, done *CopyStats) error {
	pool := newFilePool(c.from)
	defer pool.Close()
	src, err := c.openDamaged(pool, done)
	if err != nil {
		return err
	}
	next := *src.snap
	if next.legacy() {
		migrated, err := migratedHeader(src.snap)
		if err != nil {
			return err
		}
		next = *migrated
	}
	name := fmt.Sprintf("%s%016x-%08x-%016x", dataPrefix, 0, 0, random64())
	out, err := newBulk(c.to, name, next.start())
	if err != nil {
		return err
	}
	c.made = append(c.made, c.to.dataFile(name))
	done.Fault = src.replay(until{ctx, salvager{check, out}})
	head, err := out.finish()
	if err = errors.Join(ctx.Err(), out.failed, err); err != nil {
		return err
	}
	done.Ops, done.Bytes = head.Ops, out.end
	if done.Lost >= 0 {
		done.Lost = int64(src.published - min(head.Ops, src.published))
	}
	next.head = head
	return c.writeHead(&next)
}

// salvager passes records on as long as the check admits them.
type salvager struct {
	check Applier
	out   *bulk
}

func (s salvager) Apply(rec *Record) error {
	if s.check != nil {
		if err := s.check.Apply(rec); err != nil {
			return err
		}
	}
	return s.out.Apply(rec)
}

func (s salvager) Reset() { s.out.Reset() }

// damaged is a source to salvage from.
type damaged struct {
	snap      *snapshot
	published uint64
	replay    func(Applier) error
}

// openDamaged finds the longest history that the source holds: the published
// one; or where a link of it is broken, what the data files hold before; or
// where there is no head, what they hold at all.
func (c *copier) openDamaged(pool *filePool, done *CopyStats) (*damaged, error) {
	snap, err := c.from.readHead()
	switch {
	case err == nil && snap.legacy():
		r, err := newReader(c.from)
		if err != nil {
			return nil, err
		}
		done.Lost = -1
		return &damaged{snap, 0, func(m Applier) error { defer r.Close(); return r.Refresh(m) }}, nil
	case err == nil:
		refs, _, walkErr := pool.walk(snap, position{Head: snap.start()})
		if walkErr != nil && isEnvironment(walkErr) {
			return nil, walkErr
		}
		upTo := snap.head.Ops
		if walkErr != nil {
			done.Guessed = true
			refs, err = c.brokenChain(pool, snap)
		}
		return &damaged{snap, upTo, func(m Applier) error {
			return errors.Join(pool.replay(refs, 1, m.Apply), walkErr)
		}}, err
	}
	return c.openHeadless(pool, done, err)
}

// brokenChain is what can be read from the beginning of a history of which a
// link is broken.
func (c *copier) brokenChain(pool *filePool, snap *snapshot) ([]extentRef, error) {
	_, before := pool.readableTail(snap)
	all, err := c.from.everySound()
	return pool.longestBefore(all, uint64(len(snap.headerLine)), before), err
}

// openHeadless salvages data files whose head is lost or unreadable.
func (c *copier) openHeadless(pool *filePool, done *CopyStats, cause error) (*damaged, error) {
	var corrupt *CorruptError
	if !errors.Is(cause, ErrHeadMissing) && !errors.As(cause, &corrupt) {
		return nil, cause
	}
	all, err := c.from.everySound()
	first := slices.IndexFunc(all, func(e foundExtent) bool { return e.first == 1 && e.previous == nil })
	if err != nil || first < 0 {
		return nil, errors.Join(cause, err)
	}
	refs := pool.longestBefore(all, all[first].start, math.MaxUint64)
	done.Guessed, done.Lost = true, -1
	return &damaged{snap: c.headerOf(), replay: func(m Applier) error {
		return errors.Join(pool.replay(refs, 1, m.Apply), cause)
	}}, nil
}

// headerOf returns the header of a source whose head line is damaged, or, where
// the header is lost too, one that says so.
func (c *copier) headerOf() *snapshot {
	b, err := fsx.ReadFile(c.from.fs, c.from.head, 2*maxMetaLine)
	line, _, ok := bytes.Cut(b, []byte("\n"))
	if err == nil && ok {
		snap, err := parseHeader(line)
		if err == nil && snap.header.Format == FormatVersion {
			return snap
		}
	}
	h := Header{Format: FormatVersion, Program: "salvaged"}
	return &snapshot{header: h, headerLine: appendHeader(nil, h)}
}
