package memwal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/pins"
	"github.com/foldlog/foldlog/objstore"
)

// Adopt takes over the shard of a writer that died: it claims it, which fences the
// writer should it still live, replays its log, seals it, and merges its generations
// into the table. Doing it again, or after a crash within, goes on where it stood.
// A shard that a sharding spec names is claimed and merged but not sealed, for its
// writers come back. Whether a writer is dead is for the caller to know.
func (t *Table) Adopt(ctx context.Context, id ID, opts MergeOptions) (lance.MergeStats, error) {
	s, err := t.seal(ctx, id)
	if err != nil {
		return lance.MergeStats{}, fmt.Errorf("adopt shard %s: %w", id, err)
	}
	stats, _, err := t.merge(ctx, s, opts)
	if err != nil {
		return stats, fmt.Errorf("adopt shard %s: %w", id, err)
	}
	return stats, nil
}

// seal claims and seals a shard, unless it is sealed, and returns its last state.
func (t *Table) seal(ctx context.Context, id ID) (*state, error) {
	s, err := latestState(ctx, t.store, id)
	if err != nil || s.status == statusSealed {
		return s, err
	}
	d, err := t.install(ctx)
	if err != nil {
		return nil, err
	}
	sh, err := claim(ctx, d, id, true)
	if errors.Is(err, ErrSealed) { // by another meanwhile
		return latestState(ctx, t.store, id)
	}
	if err != nil {
		return nil, err
	}
	if sh.state.specID == 0 {
		err = sh.update(ctx, func(next *state) { next.status = statusSealed })
	}
	return sh.state, err
}

// DefaultGrace is how long files that no reader will look for again are kept, for
// those that began before.
const DefaultGrace = time.Hour

// CollectOptions says what [Table.Collect] may remove. The zero value is the default.
type CollectOptions struct {
	// Grace is since when a shard must not name something any more; zero is
	// DefaultGrace. It should be longer than most reads, so that they need not start
	// again; those that take longer hold a [Pin]. Less than ten minutes is refused: a
	// writer that slept so long could not tell that it is fenced.
	Grace time.Duration
	// AnyAge allows any Grace, zero too: right only when nothing else uses the table.
	AnyAge bool
	// Pause is slept between removals, to pace the work.
	Pause time.Duration
	// Now is the store's time; zero asks the store, see objstore.Now, or, with
	// AnyAge, is this machine's.
	Now time.Time
}

// CollectStats counts what was removed.
type CollectStats struct {
	Generations, Shards, Files int
	// Pinned counts generations that were left because a reader holds them.
	Pinned int
}

// keepStates is how many versions of a shard's manifest are always kept.
const keepStates = 8

// orphanAge is how old a directory must be that no manifest ever named: it may be of a
// flush under way.
const orphanAge = lance.DefaultSafetyAge

// Collect removes what merging has left: the files of merged generations and of failed
// flushes, replayed log entries, old versions of shard manifests, and shards that are
// sealed and wholly merged. Pins of readers are waited for as lance.Dataset.CleanUp does.
func (t *Table) Collect(ctx context.Context, opts CollectOptions) (CollectStats, error) {
	if opts.Grace == 0 && !opts.AnyAge {
		opts.Grace = DefaultGrace
	}
	if opts.Grace < minGrace && !opts.AnyAge {
		return CollectStats{}, fmt.Errorf("collect: a grace of %v is less than %v", opts.Grace, minGrace)
	}
	c := &collector{t: t, opts: opts, fresh: time.Now()}
	var err error
	if opts.Now.IsZero() && opts.AnyAge {
		c.opts.Now = time.Now() // its ticks are finer than those of stores
	}
	if c.opts.Now.IsZero() {
		c.opts.Now, err = objstore.Now(ctx, t.store, pins.Root)
	}
	var states []*state
	if err == nil {
		states, err = t.states(ctx)
	}
	if err == nil {
		t.forget(states)
		err = c.run(ctx, states)
	}
	if err != nil {
		return c.stats, fmt.Errorf("collect: %w", err)
	}
	return c.stats, nil
}

type collector struct {
	t     *Table
	opts  CollectOptions
	stats CollectStats
	// fresh is when the states of the shards were read.
	fresh time.Time
}

// doomed is a directory of a generation that is to be removed.
type doomed struct {
	dir  string
	keys []string
}

// run removes the versions of generations first, then looks for pins, and removes the
// rest of those that none holds: a reader that pins later finds the version gone.
func (c *collector) run(ctx context.Context, states []*state) error {
	if _, err := c.t.pins.Settle(ctx, c.t.store); err != nil {
		return err
	}
	base, err := c.t.Base(ctx)
	if err != nil {
		return err
	}
	merged, _, err := base.MergeProgress()
	if err != nil {
		return err
	}
	for _, s := range states {
		unmerged := slices.ContainsFunc(s.generations, func(g generation) bool { return g.number > merged[s.id] })
		if s.status == statusSealed && s.specID == 0 && !unmerged {
			err = c.shard(ctx, s)
		} else {
			err = c.leftovers(ctx, s, merged[s.id])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// generations removes directories of generations, and reports whether all of them went.
func (c *collector) generations(ctx context.Context, going []doomed) (all bool, err error) {
	if len(going) == 0 {
		return true, nil
	}
	for _, g := range going {
		version := slices.IndexFunc(g.keys, func(k string) bool { return strings.HasSuffix(k, "/"+format.ManifestKey(1)) })
		if version >= 0 {
			if err := c.remove(ctx, g.keys[version:version+1]); err != nil {
				return false, err
			}
		}
	}
	held, _, err := c.t.pins.Look(ctx, c.t.store)
	if err != nil {
		return false, err
	}
	all = true
	for _, g := range going {
		if held.Has(g.dir + "/") {
			c.stats.Pinned++
			all = false
			continue
		}
		if err := c.remove(ctx, g.keys); err != nil {
			return false, err
		}
		c.stats.Generations++
	}
	return all, nil
}

// dirs lists the files of a shard by the directory that they are in, and the age of
// the youngest of each.
func (c *collector) dirs(ctx context.Context, id ID) (files map[string][]string, age map[string]time.Duration, err error) {
	files, age = map[string][]string{}, map[string]time.Duration{}
	prefix := shardDir(id)
	for info, err := range c.t.store.List(ctx, objstore.ListOptions{Prefix: prefix}) {
		if err != nil {
			return nil, nil, err
		}
		dir, _, _ := strings.Cut(strings.TrimPrefix(info.Key, prefix), "/")
		old := c.opts.Now.Sub(info.Modified)
		if a, ok := age[dir]; !ok || old < a {
			age[dir] = old
		}
		files[dir] = append(files[dir], info.Key)
	}
	return files, age, nil
}

// shard removes a sealed shard, its manifests last: until then it reads as empty. What
// it still names is dropped first, which begins the grace.
func (c *collector) shard(ctx context.Context, s *state) error {
	sh := &shard{store: c.t.store, state: s, fresh: c.fresh}
	err := sh.trim(ctx, math.MaxUint64)
	if errors.Is(err, ErrFenced) {
		return nil // another collects
	}
	if err != nil {
		return err
	}
	files, age, err := c.dirs(ctx, s.id)
	if err != nil {
		return err
	}
	for _, a := range age {
		if a < c.opts.Grace {
			return nil
		}
	}
	manifests := files["manifest"]
	delete(files, "manifest")
	var going []doomed
	for dir, keys := range files {
		if _, ok := generationNumber(dir); ok {
			going = append(going, doomed{shardDir(s.id) + dir, keys})
			delete(files, dir)
		}
	}
	if all, err := c.generations(ctx, going); !all {
		return err
	}
	for _, keys := range files {
		if err := c.remove(ctx, keys); err != nil {
			return err
		}
	}
	slices.SortFunc(manifests, func(a, b string) int { return cmp.Compare(numberOf(a, manifestExt), numberOf(b, manifestExt)) })
	if err := c.remove(ctx, manifests); err != nil {
		return err
	}
	c.stats.Shards++
	return nil
}

// numberOf is the number in the name of a manifest or a log entry, 0 for other keys.
func numberOf(key, ext string) uint64 {
	n, _ := parseReversed(key[strings.LastIndexByte(key, '/')+1:], ext)
	return n
}

// leftovers removes what a living shard does not need any more.
func (c *collector) leftovers(ctx context.Context, s *state, merged uint64) error {
	files, age, err := c.dirs(ctx, s.id)
	if err != nil {
		return err
	}
	before, err := c.stateBefore(ctx, s)
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for _, g := range slices.Concat(s.generations, before.generations) {
		named[g.dir] = true
	}
	var going []doomed
	for dir, keys := range files {
		number, ok := generationNumber(dir)
		if !ok || named[dir] {
			continue
		}
		grace := c.opts.Grace
		if number > merged && !c.opts.AnyAge { // never named, as far as this tells
			grace = max(grace, orphanAge)
		}
		if age[dir] >= grace {
			going = append(going, doomed{shardDir(s.id) + dir, keys})
		}
	}
	if _, err := c.generations(ctx, going); err != nil {
		return err
	}
	if err := c.log(ctx, before, files["wal"]); err != nil {
		return err
	}
	return c.manifests(ctx, s, before.version, files["manifest"])
}

// stateBefore is the manifest that was the latest when the grace began: what it names
// has been dropped since. A shard that is younger was empty then.
func (c *collector) stateBefore(ctx context.Context, s *state) (*state, error) {
	cut := uint64(0)
	dir := shardDir(s.id) + "manifest/"
	for info, err := range c.t.store.List(ctx, objstore.ListOptions{Prefix: dir}) {
		if err != nil {
			return nil, err
		}
		v, ok := parseReversed(strings.TrimPrefix(info.Key, dir), manifestExt)
		if ok && c.opts.Now.Sub(info.Modified) >= c.opts.Grace {
			cut = max(cut, v)
		}
	}
	switch {
	case cut == 0:
		return &state{}, nil
	case cut >= s.version:
		return s, nil
	}
	return readState(ctx, c.t.store, s.id, cut)
}

// generationNumber reads <8 hex>_gen_<number>.
func generationNumber(dir string) (uint64, bool) {
	token, digits, ok := strings.Cut(dir, "_gen_")
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil && len(token) == 8
}

// log removes entries that were in generations when the grace began: who read the manifest
// of a moment before finds them still.
func (c *collector) log(ctx context.Context, before *state, keys []string) error {
	var old []uint64
	for _, key := range keys {
		if at := numberOf(key, walExt); at > 0 && at < before.replayAfter { // the last one stays, as the log's end
			old = append(old, at)
		}
	}
	return c.removeOld(ctx, old, func(at uint64) string { return walKey(before.id, at) })
}

// manifests removes old versions once the hint names a newer one, the oldest first. The
// one that was the latest when the grace began stays: it tells what was dropped since.
func (c *collector) manifests(ctx context.Context, s *state, before uint64, keys []string) error {
	var old []uint64
	for _, key := range keys {
		if v := numberOf(key, manifestExt); v > 0 && v < before && v+keepStates < s.version {
			old = append(old, v)
		}
	}
	if len(old) == 0 {
		return nil
	}
	if err := putHint(ctx, c.t.store, s.id, s.version); err != nil {
		return err
	}
	return c.removeOld(ctx, old, func(v uint64) string { return manifestKey(s.id, v) })
}

// removeOld removes, from the lowest number on, files that are older than the grace.
func (c *collector) removeOld(ctx context.Context, numbers []uint64, keyOf func(uint64) string) error {
	slices.Sort(numbers)
	for _, n := range numbers {
		key := keyOf(n)
		info, err := c.t.store.Stat(ctx, key)
		if errors.Is(err, objstore.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		if c.opts.Now.Sub(info.Modified) < c.opts.Grace {
			return nil // those after it are younger
		}
		if err := c.remove(ctx, []string{key}); err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if c.opts.Pause > 0 {
			if err := sleep.For(ctx, c.opts.Pause); err != nil {
				return err
			}
		}
		if err := c.t.store.Delete(ctx, key); err != nil {
			return err
		}
		c.stats.Files++
	}
	return nil
}
