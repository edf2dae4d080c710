package datagen

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/foldlog/foldlog/internal/fsx"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// DefaultCacheBytes is how much memory a log keeps decoded generations in.
const DefaultCacheBytes = 64 << 20

// Options configures a [Log]. The zero value is the default.
type Options struct {
	// LeaseTerm is for how long the lease of a writer, a claim or the maintenance must
	// stand unmoved before others take it; zero is objstore.DefaultLeaseTerm.
	LeaseTerm time.Duration
	// CacheBytes bounds the memory for decoded generations; zero is DefaultCacheBytes.
	CacheBytes int64
	// RetryFor is for how long what a writer does is tried again while the storage fails:
	// opening the log, appends, claims and the opening of items; zero is DefaultRetryFor,
	// negative not at all. What the storage refuses for good is never tried again.
	RetryFor time.Duration
	// OnOutage, if not nil, hears of every outage that is waited out and has lasted a
	// second: then, and again once it is over. Calls come one at a time and must not
	// call the log.
	OnOutage func(Outage)
}

// DefaultRetryFor is for how long an outage of the storage is waited out.
const DefaultRetryFor = time.Minute

func (o Options) withDefaults() Options {
	if o.LeaseTerm == 0 {
		o.LeaseTerm = objstore.DefaultLeaseTerm
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.RetryFor == 0 {
		o.RetryFor = DefaultRetryFor
	}
	return o
}

// Log is the log of one experiment. It is safe for concurrent use.
type Log struct {
	pipeline, experiment string
	table                *memwal.Table
	data                 objstore.Store // what the dataset is in
	coord                objstore.Store // where the coordination files are
	opts                 Options
	outages              outages
	views                looker
	cache                *cache
	watches              watches
	values               values
	most                 inMemory
	// merging keeps copies of events that differ, so that merging hides no fault.
	merging memwal.MergeOptions
}

// inMemory is what passes over a log keep in memory. What is more goes into temporary files.
type inMemory struct {
	weight  int64 // of the events of a part
	sorted  int   // summaries
	tallied int   // states of items
}

func (l *Log) newParts() *parts { return &parts{most: l.most.weight} }

// OpenRoot opens what logs lie in: a directory, or "s3://bucket/prefix" with the
// endpoint and the credentials of the environment (see objstore.S3Options).
func OpenRoot(root string) (objstore.Store, error) {
	rest, ok := strings.CutPrefix(root, "s3://")
	if !ok {
		return objstore.OpenLocal(root, objstore.LocalOptions{})
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	s, err := objstore.OpenS3(objstore.S3Options{Bucket: bucket})
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", root, err)
	}
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return s, nil
	}
	if err := objstore.CheckKey(prefix); err != nil {
		return nil, fmt.Errorf("open root %s: %w", root, err)
	}
	return objstore.Prefix(s, prefix), nil
}

// Open opens the log of an experiment; ErrNoLog if there is none.
func Open(ctx context.Context, root objstore.Store, pipeline, experiment string, opts Options) (*Log, error) {
	l, err := logAt(root, pipeline, experiment, opts)
	if err == nil {
		err = l.load(ctx)
	}
	return l.opened(err)
}

// Create makes the log of an experiment; ErrLogExists if there is one.
func Create(ctx context.Context, root objstore.Store, pipeline, experiment string, opts Options) (*Log, error) {
	l, err := logAt(root, pipeline, experiment, opts)
	if err == nil {
		_, err = lance.Create(ctx, l.data, Schema())
	}
	if errors.Is(err, lance.ErrExists) {
		err = fmt.Errorf("%w: %w", ErrLogExists, err)
	}
	if err == nil {
		err = l.load(ctx)
	}
	return l.opened(err)
}

// OpenOrCreate opens the log of an experiment and makes it first if there is none.
// Any number of processes may do so at once. While the storage fails it tries again for
// as long as Options.RetryFor.
func OpenOrCreate(ctx context.Context, root objstore.Store, pipeline, experiment string, opts Options) (*Log, error) {
	l, err := logAt(root, pipeline, experiment, opts)
	if err == nil {
		err = l.Outlast(ctx, func() error {
			if _, err := lance.OpenOrCreate(ctx, l.data, Schema()); err != nil {
				return err
			}
			return l.load(ctx)
		})
	}
	return l.opened(err)
}

// logAt is the log of an experiment, whose table is not opened yet.
func logAt(root objstore.Store, pipeline, experiment string, opts Options) (*Log, error) {
	l := unopened(opts)
	if err := errors.Join(CheckName(pipeline), CheckName(experiment)); err != nil {
		return l, err
	}
	dir := Path(pipeline, experiment)
	l.pipeline, l.experiment = pipeline, experiment
	l.data, l.coord = objstore.Prefix(root, dir), objstore.Prefix(root, path.Dir(dir)+"/"+coordination)
	return l, nil
}

func unopened(opts Options) *Log {
	l := &Log{opts: opts.withDefaults(), most: inMemory{partWeight, sortedAtOnce, talliedAtOnce}}
	l.outages.tell = opts.OnOutage
	return l
}

// opened is what the functions that open a log return.
func (l *Log) opened(err error) (*Log, error) {
	switch {
	case errors.Is(err, ErrName):
		return nil, fmt.Errorf("open log: %w", err)
	case err != nil:
		return nil, fmt.Errorf("open log %s/%s: %w", l.pipeline, l.experiment, err)
	}
	return l, nil
}

// OpenDir opens the log whose dataset is a directory, whatever that is called, as a
// copy may be. Its pipeline and experiment have no names.
func OpenDir(ctx context.Context, dir string, opts Options) (*Log, error) {
	return OpenDirIn(ctx, fsx.OS, dir, opts)
}

// OpenDirIn is [OpenDir] for a directory of a file system.
func OpenDirIn(ctx context.Context, fsys fsx.FS, dir string, opts Options) (*Log, error) {
	l := unopened(opts)
	var err error
	if l.data, err = objstore.OpenLocal(dir, objstore.LocalOptions{FS: fsys}); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if l.coord, err = objstore.OpenLocal(filepath.Join(filepath.Dir(dir), coordination), objstore.LocalOptions{FS: fsys}); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := l.load(ctx); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

// load opens the table.
func (l *Log) load(ctx context.Context) error {
	table, err := memwal.Open(ctx, l.data)
	if errors.Is(err, lance.ErrNotFound) {
		err = fmt.Errorf("%w: %w", ErrNoLog, err)
	}
	if err != nil {
		return err
	}
	base, err := table.Base(ctx)
	if err != nil {
		return err
	}
	if _, err := CheckSchema(base.Schema()); err != nil {
		return err
	}
	l.table, l.cache = table, newCache(l.opts.CacheBytes)
	l.merging = memwal.MergeOptions{KeepExisting: true, Differing: LightColumns(base.Schema())}
	l.views.plan = table.View
	l.watches.log = l
	return nil
}

// Pipeline and Experiment are the names that the log was opened with.
func (l *Log) Pipeline() string { return l.pipeline }

// Experiment is the name of the experiment.
func (l *Log) Experiment() string { return l.experiment }

// Table is the Lance table with its shards that the log is.
func (l *Log) Table() *memwal.Table { return l.table }
