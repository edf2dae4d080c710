package datagen

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldlog/foldlog/internal/sleep"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// Defaults of [MaintainOptions].
const (
	DefaultMaintainEvery = 30 * time.Second
	DefaultMaintainRate  = 64 << 20
)

// MaintainOptions configures maintenance. The zero value is the default.
type MaintainOptions struct {
	// Every is the pause between two passes; zero is DefaultMaintainEvery.
	Every time.Duration
	// Rate paces reading and writing, in bytes a second; zero is DefaultMaintainRate,
	// negative is no bound.
	Rate int64
	// Grace is how old files that nobody looks for again must be before they are
	// removed; zero is memwal.DefaultGrace. AnyAge allows any, zero too: right only when
	// nothing else uses the log.
	Grace  time.Duration
	AnyAge bool
	// All compacts and refreshes indexes however little there is to gain.
	All bool
	// Now is the store's time; zero asks the store, see objstore.Now, or, with
	// AnyAge, is this machine's.
	Now time.Time
	// Report, if not nil, gets the outcome of every pass of Maintain.
	Report func(MaintainStats, error)
}

func (o MaintainOptions) withDefaults() MaintainOptions {
	if o.Every == 0 {
		o.Every = DefaultMaintainEvery
	}
	if o.Rate == 0 {
		o.Rate = DefaultMaintainRate
	}
	if o.Grace == 0 && !o.AnyAge {
		o.Grace = memwal.DefaultGrace
	}
	return o
}

// MaintainStats says what maintenance did.
type MaintainStats struct {
	// Adopted counts shards of dead writers that were merged, Merged the rows that came
	// into the table.
	Adopted int
	Merged  int64
	// Compacted is what the compactions did, Indexed says that indexes were refreshed.
	Compacted lance.CompactStats
	Indexed   bool
	// Collected and Cleaned count what was removed; Claims counts files of claims and
	// leases.
	Collected memwal.CollectStats
	Cleaned   lance.CleanUpStats
	Claims    int
}

// Maintain maintains the log whenever this process is the one elected among those that
// call it, until the context ends; then it returns nil. Safety does not rest on the
// election: every step is a commit of its own that others may meet.
func (l *Log) Maintain(ctx context.Context, opts MaintainOptions) error {
	opts = opts.withDefaults()
	h := self()
	election, err := objstore.NewElection(l.coord, maintenanceDir, objstore.LeaseOptions{Holder: h.text(), Term: l.opts.LeaseTerm})
	if err != nil {
		return fmt.Errorf("maintain: %w", err)
	}
	for ctx.Err() == nil {
		lease, err := election.Wait(ctx)
		if err != nil {
			if ctx.Err() == nil && opts.Report != nil {
				opts.Report(MaintainStats{}, err)
			}
			_ = sleep.For(ctx, l.opts.LeaseTerm)
			continue
		}
		l.reign(ctx, lease, opts)
	}
	return nil
}

// reign makes passes for as long as the lease is held.
func (l *Log) reign(ctx context.Context, lease *objstore.Lease, opts MaintainOptions) {
	ctx, cancel := context.WithCancel(ctx)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		defer cancel()
		_ = lease.Keep(ctx)
	}()
	for ctx.Err() == nil {
		stats, err := l.MaintainOnce(ctx, opts)
		if opts.Report != nil && ctx.Err() == nil {
			opts.Report(stats, err)
		}
		_ = sleep.For(ctx, opts.Every)
	}
	<-kept
	cancel()
}

// Merge merges what dead writers left, and indexes it. Writers that live merge their own.
func (l *Log) Merge(ctx context.Context, opts MaintainOptions) (MaintainStats, error) {
	return l.part(ctx, "merge", opts, func(m *maintainer) []work { return []work{m.merge, m.index} })
}

// Compact puts small fragments together, however few, brings the indexes up to date and
// removes what nobody looks for any more.
func (l *Log) Compact(ctx context.Context, opts MaintainOptions) (MaintainStats, error) {
	opts.All = true
	return l.part(ctx, "compact", opts, func(m *maintainer) []work { return []work{m.compact, m.index, m.tidy} })
}

// MaintainOnce is one pass: it merges what dead writers left, compacts, refreshes the
// indexes, and removes what nobody looks for any more.
func (l *Log) MaintainOnce(ctx context.Context, opts MaintainOptions) (MaintainStats, error) {
	return l.part(ctx, "maintain", opts, func(m *maintainer) []work { return []work{m.merge, m.compact, m.index, m.tidy} })
}

type work func(context.Context) error

func (l *Log) part(ctx context.Context, what string, opts MaintainOptions, works func(*maintainer) []work) (MaintainStats, error) {
	m, err := l.maintainer(ctx, opts.withDefaults())
	if err != nil {
		return MaintainStats{}, fmt.Errorf("%s: %w", what, err)
	}
	for _, do := range works(m) {
		if err := do(ctx); err != nil {
			return m.stats, fmt.Errorf("%s: %w", what, err)
		}
	}
	return m.stats, nil
}

// maintainer is one pass under way. Its table is read and written at a bounded rate.
type maintainer struct {
	log   *Log
	opts  MaintainOptions
	table *memwal.Table
	stats MaintainStats
}

func (l *Log) maintainer(ctx context.Context, opts MaintainOptions) (*maintainer, error) {
	store := l.data
	if opts.Rate > 0 {
		store = newPaced(store, opts.Rate)
	}
	t, err := memwal.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	return &maintainer{log: l, opts: opts, table: t}, nil
}

// merge adopts the shards of writers that are dead.
func (m *maintainer) merge(ctx context.Context) error {
	shards, err := m.table.Shards(ctx)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if s.Sealed && s.Unmerged == 0 {
			continue
		}
		w := m.log.watches.of(s.ID)
		err := w.inherit(ctx, "maintenance")
		if errors.Is(err, ErrHeld) {
			continue
		}
		if err != nil {
			return err
		}
		stats, err := m.table.Adopt(ctx, s.ID, m.log.merging)
		if errors.Is(err, objstore.ErrNotFound) {
			continue // another pass was faster
		}
		if err != nil {
			return err
		}
		m.stats.Adopted++
		m.stats.Merged += stats.Inserted
	}
	return nil
}

// tiers are the sizes, in rows, that fragments are put together to, one after the
// other: so a row is written anew once a tier, not once a pass.
var tiers = []int64{1 << 15, lance.DefaultTargetRows}

// worthwhile is how many small fragments make a compaction worth its while.
const worthwhile = 16

func (m *maintainer) compact(ctx context.Context) error {
	for _, rows := range tiers {
		d, err := m.table.Base(ctx)
		if err != nil {
			return err
		}
		if !m.opts.All && small(d, rows) < worthwhile {
			continue
		}
		_, stats, err := d.Compact(ctx, lance.CompactOptions{TargetRows: rows})
		if errors.Is(err, lance.ErrConflict) {
			continue // the next pass finds what is left
		}
		if err != nil {
			return err
		}
		m.stats.Compacted.Removed += stats.Removed
		m.stats.Compacted.Added += stats.Added
		m.stats.Compacted.Rows += stats.Rows
		m.stats.Compacted.Skipped += stats.Skipped
	}
	return nil
}

// small counts the fragments that could be put together.
func small(d *lance.Dataset, rows int64) int {
	n := 0
	for _, f := range d.Fragments() {
		if f.Rows < rows && f.Bytes < lance.DefaultTargetBytes {
			n++
		}
	}
	return n
}

// indexed are the columns that items, trees and blobs are looked up by.
var indexed = []string{"event_id", "item_id", "root_item_id"}

// staleRows is how many rows, or which part of all, may be missing in an index before
// it is refreshed: reading them is cheaper than writing it anew.
const (
	staleRows = 4096
	stalePart = 64
)

func (m *maintainer) index(ctx context.Context) error {
	d, err := m.table.Base(ctx)
	if err != nil || d.Rows() == 0 {
		return err
	}
	for _, column := range indexed {
		missing := m.unindexed(d, column)
		if missing == 0 || !m.opts.All && missing < max(staleRows, d.Rows()/stalePart) && missing < d.Rows() {
			continue
		}
		if d, err = d.CreateIndex(ctx, column); errors.Is(err, lance.ErrConflict) {
			if d, err = m.table.Base(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		m.stats.Indexed = true
	}
	return nil
}

// unindexed is about how many rows the index of a column does not have.
func (m *maintainer) unindexed(d *lance.Dataset, column string) int64 {
	frags := d.Fragments()
	for _, x := range d.Indexes() {
		if x.Kind != "btree" || len(x.Columns) != 1 || x.Columns[0] != column {
			continue
		}
		rows := int64(0)
		for _, f := range frags[len(frags)-min(x.Unindexed, len(frags)):] { // those that came last
			rows += f.Rows
		}
		return rows
	}
	return d.Rows()
}

// tidy removes what nobody looks for any more.
func (m *maintainer) tidy(ctx context.Context) (err error) {
	m.stats.Collected, err = m.table.Collect(ctx, memwal.CollectOptions{Grace: m.opts.Grace, AnyAge: m.opts.AnyAge, Now: m.opts.Now})
	if err != nil {
		return err
	}
	d, err := m.table.Base(ctx)
	if err != nil {
		return err
	}
	up := lance.CleanUpOptions{KeepAge: m.opts.Grace, AnyAge: m.opts.AnyAge, Now: m.opts.Now}
	if m.opts.AnyAge {
		up.KeepVersions, up.SafetyAge = 1, max(m.opts.Grace, 1)
	}
	if m.stats.Cleaned, err = d.CleanUp(ctx, up); err != nil {
		return err
	}
	if err := m.claims(ctx); err != nil {
		return err
	}
	return m.leases(ctx)
}

// claims removes claim files that the log is past.
func (m *maintainer) claims(ctx context.Context) error {
	v, err := m.log.View(ctx)
	if err != nil {
		return err
	}
	for info, err := range m.log.coord.List(ctx, objstore.ListOptions{Prefix: claimsDir}) {
		if err != nil {
			return err
		}
		d, err := m.log.readClaim(ctx, info.Key)
		if err != nil && !errors.Is(err, objstore.ErrNotFound) {
			return err
		}
		if d.Item == "" { // it went meanwhile, or makes no sense
			continue
		}
		f, err := v.find(ctx, d.Item)
		if err != nil {
			return err
		}
		if last := f.last(); len(last) == 0 || f.events[last[0]].Seq < d.Seq {
			continue
		}
		if err := m.log.coord.Delete(ctx, info.Key); err != nil {
			return err
		}
		m.stats.Claims++
	}
	return nil
}

// leases removes the leases of writers whose shards are gone.
func (m *maintainer) leases(ctx context.Context) error {
	gone := map[memwal.ID]bool{}
	for info, err := range m.log.coord.List(ctx, objstore.ListOptions{Prefix: writersDir}) {
		if err != nil {
			return err
		}
		id, ok := leaseShard(info.Key)
		if !ok {
			continue
		}
		over, err := m.log.watches.of(id).over(ctx)
		if err != nil {
			return err
		}
		if !over {
			continue
		}
		if err := m.log.coord.Delete(ctx, info.Key); err != nil {
			return err
		}
		gone[id] = true
		m.stats.Claims++
	}
	m.log.watches.forget(gone)
	return nil
}
