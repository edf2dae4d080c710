package lance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/objstore"
)

const (
	versionsDir     = format.VersionsDir
	transactionsDir = "_transactions/"
	dataDir         = "data/"
	indicesDir      = "_indices/"
	deletionsDir    = "_deletions/"
	manifestExt     = format.ManifestExt
	maxManifest     = 1 << 30
)

// Dataset is one version of a table. It is immutable and safe for concurrent use.
type Dataset struct {
	store  objstore.Store
	m      *format.Manifest
	schema *arrow.Schema
	cache  *cache
	// fresh is when the version was last seen to be the latest.
	fresh *freshness
	// guarded says that somebody else keeps the files.
	guarded bool
}

// OpenOptions selects what [Open] opens. The zero value is the latest version.
type OpenOptions struct {
	// Version is the version to open; zero is the latest.
	Version uint64
	// NoPin lets long scans go without a [Pin]: for tables that nobody cleans up, or
	// that somebody else guards.
	NoPin bool
}

// Open opens the table at the root of a store (see objstore.Prefix). It is
// ErrNotFound if there is no table or no such version.
func Open(ctx context.Context, store objstore.Store, opts OpenOptions) (*Dataset, error) {
	d, err := open(ctx, store, opts.Version, newCache())
	if err == nil {
		d.guarded = opts.NoPin
	}
	return d, err
}

func open(ctx context.Context, store objstore.Store, version uint64, c *cache) (*Dataset, error) {
	var err error
	var fresh time.Time // never, for a version by its number
	if version == 0 {
		fresh = time.Now()
		if version, err = latestVersion(ctx, store); err != nil {
			return nil, fmt.Errorf("open dataset: %w", err)
		}
	}
	m, err := readManifest(ctx, store, version)
	if err != nil {
		return nil, fmt.Errorf("open dataset: %w", err)
	}
	d, err := newDataset(store, m, c)
	if err == nil {
		d.fresh.set(fresh)
	}
	return d, err
}

func newDataset(store objstore.Store, m *format.Manifest, c *cache) (*Dataset, error) {
	schema, err := format.SchemaOf(m.Fields)
	if err != nil {
		return nil, fmt.Errorf("open dataset: version %d: %w", m.Version, err)
	}
	return &Dataset{store: store, m: m, schema: schema, cache: c, fresh: &freshness{at: time.Now()}}, nil
}

func manifestKey(version uint64) string { return format.ManifestKey(version) }

// parseManifestKey returns the version, or false for what is not a manifest.
func parseManifestKey(key string) (uint64, bool, error) {
	digits, ok := strings.CutSuffix(strings.TrimPrefix(key, versionsDir), manifestExt)
	if !ok || strings.HasPrefix(digits, "d") {
		return 0, false, nil
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, false, nil
	}
	if len(digits) != 20 {
		return 0, false, &UnsupportedError{What: fmt.Sprintf("manifest naming of %s", key)}
	}
	return math.MaxUint64 - n, true, nil
}

func latestVersion(ctx context.Context, store objstore.Store) (uint64, error) {
	for v, err := range listVersions(ctx, store) {
		return v.Version, err
	}
	return 0, ErrNotFound
}

// readManifest reads one version.
func readManifest(ctx context.Context, store objstore.Store, version uint64) (*format.Manifest, error) {
	key := manifestKey(version)
	b, err := store.Get(ctx, key, maxManifest)
	if errors.Is(err, objstore.ErrNotFound) {
		return nil, fmt.Errorf("version %d: %w", version, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	m, err := format.ParseManifest(b)
	if err == nil && m.Version != version {
		err = fmt.Errorf("%w: it says that it is version %d", ErrCorrupt, m.Version)
	}
	if err != nil {
		return nil, in(key, err)
	}
	return m, nil
}

// Latest returns the latest version, which is the receiver if nothing came after.
func (d *Dataset) Latest(ctx context.Context) (*Dataset, error) {
	start := time.Now()
	version, err := latestVersion(ctx, d.store)
	if err != nil {
		return nil, fmt.Errorf("open dataset: %w", err)
	}
	if version == d.m.Version {
		d.fresh.set(start)
		return d, nil
	}
	next, err := d.other(open(ctx, d.store, version, d.cache))
	if err == nil {
		next.fresh.set(start)
	}
	return next, err
}

// At returns another version.
func (d *Dataset) At(ctx context.Context, version uint64) (*Dataset, error) {
	if version == 0 {
		return d.Latest(ctx)
	}
	return d.other(open(ctx, d.store, version, d.cache))
}

// other makes a version that comes from this one guarded as it is.
func (d *Dataset) other(next *Dataset, err error) (*Dataset, error) {
	if err == nil {
		next.guarded = d.guarded
	}
	return next, err
}

// Store returns the store that the table is in.
func (d *Dataset) Store() objstore.Store { return d.store }

// Version is the version's number; the first is 1.
func (d *Dataset) Version() uint64 { return d.m.Version }

// Time is when the version was committed, by the committer's clock.
func (d *Dataset) Time() time.Time { return d.m.Time }

// Writer names the library that committed the version.
func (d *Dataset) Writer() string { return strings.TrimSpace(d.m.Writer) }

// FileVersion is the data file format, such as "2.0".
func (d *Dataset) FileVersion() string { return d.m.FileVersion }

// Schema returns the table's columns.
func (d *Dataset) Schema() *arrow.Schema { return d.schema }

// PrimaryKey returns the name of the unenforced primary key, or "" if there is none
// or it has several columns.
func (d *Dataset) PrimaryKey() string {
	name := ""
	for _, f := range d.m.Fields {
		if f.PrimaryKey && name != "" {
			return ""
		}
		if f.PrimaryKey {
			name = f.Name
		}
	}
	return name
}

// Rows counts the rows that are not deleted.
func (d *Dataset) Rows() int64 {
	n := int64(0)
	for _, f := range d.m.Fragments {
		n += f.Live()
	}
	return n
}

// FragmentInfo describes a fragment, a run of rows that were written together.
type FragmentInfo struct {
	// ID is the upper half of its rows' addresses.
	ID uint64
	// Rows counts its rows, Deleted how many of them are deleted.
	Rows, Deleted int64
	// Files are its data files, relative to data/; Bytes is their size together,
	// zero where it is not known.
	Files []string
	Bytes int64
	// FileVersion is the format of its first file.
	FileVersion string
}

// Fragments describes the fragments in the order of their rows.
func (d *Dataset) Fragments() []FragmentInfo {
	var out []FragmentInfo
	for _, f := range d.m.Fragments {
		info := FragmentInfo{ID: f.ID, Rows: f.Rows, Deleted: f.Rows - f.Live()}
		for i, file := range f.Files {
			info.Files = append(info.Files, file.Path)
			info.Bytes += file.Size
			if i == 0 {
				info.FileVersion = fmt.Sprintf("%d.%d", file.Major, file.Minor)
			}
		}
		out = append(out, info)
	}
	return out
}

// IndexInfo describes an index.
type IndexInfo struct {
	// Name is unique in a version; an index may have several segments of one name.
	Name string
	// UUID names its directory below _indices/.
	UUID string
	// Columns are what it is keyed on.
	Columns []string
	// Kind is "btree", "mem_wal" or the type URL of its details.
	Kind string
	// Fragments counts those that it covers, Unindexed those that it does not.
	Fragments, Unindexed int
	// Bytes is the size of its files, zero if it is not known.
	Bytes int64
}

// Indexes describes the indexes, those that this package cannot use too.
func (d *Dataset) Indexes() []IndexInfo {
	var out []IndexInfo
	for _, x := range d.m.Indexes {
		info := IndexInfo{Name: x.Name, UUID: x.UUID.String(), Kind: x.DetailsURL}
		switch {
		case isBTree(x):
			info.Kind = "btree"
		case x.Name == format.MemWALName:
			info.Kind = "mem_wal"
		}
		for _, id := range x.Fields {
			if f := d.fieldByID(id); f != nil {
				info.Columns = append(info.Columns, f.Name)
			}
		}
		for _, f := range d.m.Fragments {
			if x.Fragments != nil && x.Fragments.Contains(uint32(f.ID)) {
				info.Fragments++
			} else {
				info.Unindexed++
			}
		}
		for _, f := range x.Files {
			info.Bytes += f.Size
		}
		out = append(out, info)
	}
	return out
}

func (d *Dataset) fieldByID(id int32) *format.Field {
	for i := range d.m.Fields {
		if d.m.Fields[i].ID == id {
			return &d.m.Fields[i]
		}
	}
	return nil
}

func (d *Dataset) fieldByName(name string) (*format.Field, error) {
	for i := range d.m.Fields {
		if d.m.Fields[i].Name == name {
			return &d.m.Fields[i], nil
		}
	}
	return nil, fmt.Errorf("no column %q", name)
}

func (d *Dataset) fragment(id uint64) *format.Fragment {
	for i := range d.m.Fragments {
		if d.m.Fragments[i].ID == id {
			return &d.m.Fragments[i]
		}
	}
	return nil
}
