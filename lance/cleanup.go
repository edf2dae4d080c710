package lance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// Defaults of [CleanUpOptions].
const (
	DefaultKeepVersions = 10
	DefaultKeepAge      = time.Hour
	// DefaultSafetyAge is how old what no version ever named must be before it is
	// removed; it is longer than any commit may take.
	DefaultSafetyAge = 24 * time.Hour
)

// CleanUpOptions says what is kept. The zero value is the default.
type CleanUpOptions struct {
	// KeepVersions is how many of the latest versions are kept whatever their age;
	// zero is DefaultKeepVersions.
	KeepVersions int
	// KeepAge keeps every version that was the latest within this time by the store's
	// clock, so that readers of it can finish; zero is DefaultKeepAge. Readers that take
	// longer hold a [Pin]. Less than ten minutes is refused unless AnyAge is set: a
	// committer that slept so long could take the number of a version that is gone.
	KeepAge time.Duration
	// SafetyAge keeps files that neither a kept nor a removed version names, which
	// may belong to a commit under way, until they are this old; zero is
	// DefaultSafetyAge. Less than MaxCommitAge is refused unless AnyAge is set.
	SafetyAge time.Duration
	// AnyAge allows any KeepAge and SafetyAge: right only when nothing else uses the table.
	AnyAge bool
	// Pause is slept between removals, to pace the work.
	Pause time.Duration
	// Now is the store's time, to compare ages with; zero asks the store, see
	// objstore.Now, or, with AnyAge, is this machine's.
	Now time.Time
}

// CleanUpStats counts what was removed.
type CleanUpStats struct {
	Versions, Files int
	// Bytes is the size of the files that were removed.
	Bytes int64
	// Temporary counts what writers left that died.
	Temporary int
	// Pinned counts files that were left because a reader holds them.
	Pinned int
}

func (o CleanUpOptions) withDefaults() (CleanUpOptions, error) {
	if o.KeepVersions == 0 {
		o.KeepVersions = DefaultKeepVersions
	}
	if o.KeepAge == 0 && !o.AnyAge {
		o.KeepAge = DefaultKeepAge
	}
	if o.SafetyAge == 0 && !o.AnyAge {
		o.SafetyAge = DefaultSafetyAge
	}
	if o.SafetyAge < MaxCommitAge && !o.AnyAge {
		return o, fmt.Errorf("a safety age of %v is less than a commit may take (%v)", o.SafetyAge, MaxCommitAge)
	}
	if o.KeepAge < minKeepAge && !o.AnyAge {
		return o, fmt.Errorf("a keep age of %v is less than %v", o.KeepAge, minKeepAge)
	}
	return o, nil
}

// CleanUp removes old versions, but none with a tag and never the latest, and then the
// files that no version names any more and no pin holds. Where there are pins it waits
// some seconds to see whether they are renewed, up to a minute for those that are not.
// What MemWAL shards hold is not touched.
func (d *Dataset) CleanUp(ctx context.Context, opts CleanUpOptions) (CleanUpStats, error) {
	var c cleaner
	opts, err := opts.withDefaults()
	if err == nil {
		c = cleaner{d: d, opts: opts}
		err = c.run(ctx)
	}
	if err != nil {
		return c.stats, fmt.Errorf("clean up: %w", err)
	}
	return c.stats, nil
}

type cleaner struct {
	d     *Dataset
	opts  CleanUpOptions
	stats CleanUpStats
}

// run reads what every version names before anything is removed. A version that is
// committed meanwhile names files that are not new only if the latest one does. Pins are
// looked for before, to know which are dead, and again once the versions are removed: a
// reader that pins later finds its version gone.
func (c *cleaner) run(ctx context.Context) (err error) {
	if c.opts.Now.IsZero() && c.opts.AnyAge {
		c.opts.Now = time.Now() // its ticks are finer than those of stores
	}
	if c.opts.Now.IsZero() {
		if c.opts.Now, err = objstore.Now(ctx, c.d.store, pins.Root); err != nil {
			return err
		}
	}
	if _, err := c.d.cache.pins.Settle(ctx, c.d.store); err != nil {
		return err
	}
	candidates, err := c.candidates(ctx)
	if err != nil {
		return err
	}
	old, named, dropped, err := c.plan(ctx)
	if err != nil {
		return err
	}
	for _, v := range old {
		if err := c.remove(ctx, manifestKey(v)); err != nil {
			return err
		}
		c.stats.Versions++
	}
	held, _, err := c.d.cache.pins.Look(ctx, c.d.store)
	if err != nil {
		return err
	}
	for _, info := range candidates {
		switch {
		case is(named, info.Key):
			continue
		case held.Has(info.Key):
			c.stats.Pinned++
			continue
		case !is(dropped, info.Key) && c.opts.Now.Sub(info.Modified) < c.opts.SafetyAge:
			continue
		}
		if err := c.remove(ctx, info.Key); err != nil {
			return err
		}
		c.stats.Files++
		c.stats.Bytes += info.Size
	}
	return c.sweep(ctx)
}

// plan returns the versions that go, the oldest first, so that what is left is always the
// newest, and what those that stay and those that go name.
func (c *cleaner) plan(ctx context.Context) (old []uint64, named, dropped map[string]bool, err error) {
	versions, err := c.d.Versions(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	tagged, err := c.tags(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	named, dropped = map[string]bool{}, map[string]bool{}
	for i, v := range versions {
		m, err := readManifest(ctx, c.d.store, v.Version)
		if errors.Is(err, ErrNotFound) && i > 0 {
			continue // another clean-up was faster
		}
		if err != nil {
			return nil, nil, nil, err
		}
		// The one after it ended its time as the latest.
		young := i > 0 && c.opts.Now.Sub(versions[i-1].Stored) < c.opts.KeepAge
		if i > 0 && i >= c.opts.KeepVersions && !young && !tagged[v.Version] {
			old = append(old, v.Version)
			nameFiles(m, dropped)
			continue
		}
		nameFiles(m, named)
	}
	slices.Sort(old)
	return old, named, dropped, nil
}

// candidates lists the files that versions name.
func (c *cleaner) candidates(ctx context.Context) ([]objstore.Info, error) {
	var out []objstore.Info
	for _, dir := range []string{dataDir, transactionsDir, deletionsDir, indicesDir} {
		for info, err := range c.d.store.List(ctx, objstore.ListOptions{Prefix: dir}) {
			if err != nil {
				return nil, err
			}
			out = append(out, info)
		}
	}
	return out, nil
}

// dirOf is the directory of an index file, "" for other files.
func dirOf(key string) string {
	if !strings.HasPrefix(key, indicesDir) {
		return ""
	}
	return key[:strings.LastIndexByte(key, '/')+1]
}

// is reports whether a file or the index directory that it is in is marked.
func is(marked map[string]bool, key string) bool { return marked[key] || marked[dirOf(key)] }

// nameFiles marks what a version needs.
func nameFiles(m *format.Manifest, named map[string]bool) {
	for _, f := range m.Fragments {
		for _, df := range f.Files {
			named[dataDir+df.Path] = true
		}
		if f.Deletion != nil {
			named[f.Deletion.Path(f.ID)] = true
		}
	}
	for _, x := range m.Indexes {
		named[indexDir(x.UUID)] = true
	}
	if m.TransactionFile != "" {
		named[transactionsDir+m.TransactionFile] = true
	}
}

// tags returns the versions that have a tag.
func (c *cleaner) tags(ctx context.Context) (map[uint64]bool, error) {
	tagged := map[uint64]bool{}
	for info, err := range c.d.store.List(ctx, objstore.ListOptions{Prefix: "_refs/"}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(info.Key, "_refs/tags/") {
			return nil, &UnsupportedError{What: "clean-up of a dataset with branches"}
		}
		b, err := c.d.store.Get(ctx, info.Key, 1<<20)
		if err != nil {
			return nil, err
		}
		var tag struct {
			Version uint64 `json:"version"`
		}
		if err := json.Unmarshal(b, &tag); err != nil {
			return nil, in(info.Key, fmt.Errorf("%w: %w", ErrCorrupt, err))
		}
		tagged[tag.Version] = true
	}
	return tagged, nil
}

func (c *cleaner) remove(ctx context.Context, key string) error {
	if c.opts.Pause > 0 {
		if err := sleep.For(ctx, c.opts.Pause); err != nil {
			return err
		}
	}
	return c.d.store.Delete(ctx, key)
}

func (c *cleaner) sweep(ctx context.Context) error {
	s, ok := c.d.store.(objstore.Sweeper)
	if !ok {
		return nil
	}
	age := c.opts.SafetyAge + max(0, time.Since(c.opts.Now)) // it goes by this machine's clock
	for _, dir := range []string{dataDir, versionsDir, transactionsDir, deletionsDir, indicesDir, pins.Root} {
		n, err := s.Sweep(ctx, dir, age)
		if c.stats.Temporary += n; err != nil {
			return err
		}
	}
	return nil
}
