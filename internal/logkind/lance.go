package logkind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/foldlog/foldlog/internal/cli"
	"github.com/foldlog/foldlog/internal/serde"
	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/memwal"
	"github.com/foldlog/foldlog/objstore"
)

// lanceKind is a Lance dataset in a directory. Its events are the rows of the
// latest version, in the table's order.
type lanceKind struct{ World }

var _ Kind = lanceKind{}

// lanceParts are the directories of a dataset.
var lanceParts = []string{"_versions", "_transactions", "_deletions", "_indices", "_refs", "_mem_wal", "_pins", "data", "tree"}

func (lanceKind) Name() string { return LanceDataset }

// Identify prefers the outermost dataset: the generations of a MemWAL are
// datasets themselves, and belong to the table.
func (k lanceKind) Identify(c Candidate) (string, error) {
	if InBucket(c.Path) {
		return identifyInBucket(context.Background(), c.Path)
	}
	if c.Info == nil {
		return "", nil
	}
	log := ""
	claim := func(dir string) error {
		ok, err := holdsManifests(dir)
		if ok {
			log = dir
		}
		return err
	}
	if c.Info.IsDir() {
		if err := claim(c.Path); err != nil {
			return "", err
		}
	}
	for path := c.Path; path != filepath.Dir(path); path = filepath.Dir(path) {
		if !slices.Contains(lanceParts, filepath.Base(path)) {
			continue
		}
		if err := claim(filepath.Dir(path)); err != nil {
			return "", err
		}
	}
	return log, nil
}

// holdsManifests judges by names, so that a damaged manifest is still claimed.
func holdsManifests(dir string) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "_versions"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if info, statErr := os.Stat(filepath.Join(dir, "_versions")); statErr == nil && !info.IsDir() {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Type().IsRegular() && filepath.Ext(e.Name()) == ".manifest"
	}), err
}

// Parts has none: ls does not look into a directory that is a log.
func (lanceKind) Parts(string) []string { return nil }

// openLance opens the latest version.
func (w World) openLance(ctx context.Context, log string) (*memwal.Table, *lance.Dataset, error) {
	store, err := w.store(log)
	if err != nil {
		return nil, nil, err
	}
	table, err := memwal.Open(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	d, err := table.Base(ctx)
	return table, d, err
}

// treeSize is the files under a directory. Those that go meanwhile do not count.
func (w World) treeSize(ctx context.Context, dir string) (files, bytes, modifiedMS int64, err error) {
	if InBucket(dir) || w.Server != nil {
		return w.storeSize(ctx, dir)
	}
	err = fs.WalkDir(os.DirFS(dir), ".", func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				files++
				bytes += info.Size()
				modifiedMS = max(modifiedMS, info.ModTime().UnixMilli())
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return errors.Join(err, ctx.Err())
	})
	return files, bytes, modifiedMS, err
}

func (k lanceKind) Summarize(ctx context.Context, log string, _ SummarizeOptions) (Summary, error) {
	return k.summarizeTable(ctx, log, func(d *lance.Dataset, rows, waiting int64) string {
		text := fmt.Sprintf("version %d, %s", d.Version(), cli.Plural(rows, "row"))
		if waiting > 0 {
			text += ", " + cli.Plural(waiting, "row") + " to be merged"
		}
		return text
	})
}

// summarizeTable tells the size of a table, and in words of detail the rows that it has
// and those that wait in its shards.
func (w World) summarizeTable(ctx context.Context, log string, detail func(d *lance.Dataset, rows, waiting int64) string) (s Summary, err error) {
	if _, s.Bytes, s.ModifiedMS, err = w.treeSize(ctx, log); err != nil {
		return s, err
	}
	table, d, err := w.openLance(ctx, log)
	if err != nil {
		return s, err
	}
	shards, err := table.Shards(ctx)
	if err != nil {
		return s, err
	}
	waiting, _ := memwal.Unmerged(shards)
	s.State, s.Detail = StateGood, detail(d, d.Rows(), waiting)
	return s, nil
}

// LanceDetail is the detail of an inspection of a Lance dataset.
type LanceDetail struct {
	Version     uint64       `json:"version"`      // the latest
	Writer      string       `json:"writer"`       // the library that committed it
	Versions    int          `json:"versions"`     // that are still there
	Schema      []string     `json:"schema"`       // a column each, as "name: type"
	PrimaryKey  string       `json:"primary_key"`  // "" if there is none
	Fragments   int          `json:"fragments"`    // of the latest version
	Rows        int64        `json:"rows"`         // not deleted
	DeletedRows int64        `json:"deleted_rows"` // that its files still have
	Indexes     []LanceIndex `json:"indexes"`
	Shards      []LanceShard `json:"shards"` // of the MemWAL
}

// LanceIndex is an index of a Lance dataset, or a segment of one.
type LanceIndex struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Columns   []string `json:"columns"`
	Fragments int      `json:"fragments"` // that it covers
	Unindexed int      `json:"unindexed"` // fragments that it does not cover
	Bytes     int64    `json:"bytes"`     // 0 if not known
}

// LanceShard is a shard of the MemWAL of a Lance dataset.
type LanceShard struct {
	ID          string `json:"id"`
	Epoch       uint64 `json:"epoch"`       // the number of the latest claim
	Sealed      bool   `json:"sealed"`      // it takes no more rows
	Generations int    `json:"generations"` // that it names
	Unmerged    int    `json:"unmerged"`    // those of them that the table does not have
	Rows        int64  `json:"rows"`        // in the unmerged ones, as far as known
}

func (k lanceKind) Inspect(ctx context.Context, log string) (Inspection, error) {
	found := Inspection{Path: log, Kind: k.Name(), State: StateGood}
	table, d, err := k.openLance(ctx, log)
	if err != nil {
		return found, err
	}
	versions, err := d.Versions(ctx)
	if err != nil {
		return found, err
	}
	shards, err := table.Shards(ctx)
	if err != nil {
		return found, err
	}
	if found.Files, found.Bytes, _, err = k.treeSize(ctx, log); err != nil {
		return found, err
	}
	found.Format, found.Events, found.LastMS = "v"+d.FileVersion(), d.Rows(), serde.Millis(d.Time())
	if first, err := d.At(ctx, 1); err == nil {
		found.Program, found.FirstMS = first.Writer(), serde.Millis(first.Time())
	}
	detail := detailOf(d, len(versions), shards)
	rows, generations := memwal.Unmerged(shards)
	found.Detail = detail
	found.Counts = map[string]int64{
		"versions": int64(detail.Versions), "fragments": int64(detail.Fragments), "deleted rows": detail.DeletedRows,
		"indexes": int64(len(detail.Indexes)), "shards": int64(len(shards)), "unmerged generations": generations,
	}
	if generations > 0 {
		found.Notes = append(found.Notes, fmt.Sprintf("%s in %s of shards are not merged into the table yet; cat and tail leave them out",
			cli.Plural(rows, "row"), cli.Plural(generations, "generation")))
	}
	return found, nil
}

func detailOf(d *lance.Dataset, versions int, shards []memwal.ShardInfo) *LanceDetail {
	detail := &LanceDetail{
		Version: d.Version(), Writer: d.Writer(), Versions: versions, Schema: []string{}, PrimaryKey: d.PrimaryKey(),
		Rows: d.Rows(), Indexes: []LanceIndex{}, Shards: []LanceShard{},
	}
	for _, f := range d.Schema().Fields() {
		detail.Schema = append(detail.Schema, columnText(f))
	}
	for _, f := range d.Fragments() {
		detail.Fragments++
		detail.DeletedRows += f.Deleted
	}
	for _, x := range d.Indexes() {
		detail.Indexes = append(detail.Indexes, LanceIndex{x.Name, x.Kind, serde.NotNil(x.Columns), x.Fragments, x.Unindexed, x.Bytes})
	}
	for _, s := range shards {
		detail.Shards = append(detail.Shards, LanceShard{s.ID.String(), s.Epoch, s.Sealed, s.Generations, s.Unmerged, s.Rows})
	}
	return detail
}

func columnText(f arrow.Field) string {
	text := f.Name + ": " + f.Type.String()
	if f.Nullable {
		text += ", nullable"
	}
	return text
}

// Verify checks every version that is still listed and what the shards have beyond the
// latest.
func (k lanceKind) Verify(ctx context.Context, log string, opts VerifyOptions) (Verification, error) {
	var v Verification
	found := func(err error) { v.Faults = append(v.Faults, k.lanceFault(log, err)) }
	k.World = k.watched(ctx, log, 1, opts.Progress)
	table, d, err := k.openLance(ctx, log)
	if err == nil {
		v.Format = "v" + d.FileVersion()
		var stats lance.VerifyStats
		stats, err = table.VerifyVersions(ctx, opts.Versions, found)
		v.Events, v.Bytes = stats.Rows, stats.Bytes
	}
	if errors.Is(err, lance.ErrCorrupt) {
		found(err)
		err = nil
	}
	return v, err
}

// lanceFault names the file of a fault, as far as the error does.
func (w World) lanceFault(log string, err error) Place {
	var c *lance.CorruptError
	if errors.As(err, &c) {
		return Place{File: w.inLog(log, c.Path), What: c.Err.Error()}
	}
	return Place{File: w.NameOf(log), What: err.Error()}
}

// Copy copies the latest version and the shards. What it leaves when it fails is not a
// dataset, and is removed.
func (k lanceKind) Copy(ctx context.Context, log, dest string, opts CopyOptions) (done CopyStats, err error) {
	if opts.Salvage {
		return done, cli.WithHint(errors.New("a Lance dataset cannot be salvaged"),
			"foldlog verify lists every fault; foldlog cat prints the rows before the first one")
	}
	table, _, err := k.openLance(ctx, log)
	if err != nil {
		return done, err
	}
	if err := os.Mkdir(dest, 0o755); err != nil {
		return done, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dest))
		}
	}()
	to, err := objstore.OpenLocal(dest, objstore.LocalOptions{})
	if err != nil {
		return done, err
	}
	stats, err := table.Copy(ctx, to, lance.CopyOptions{Progress: opts.Progress})
	if err != nil {
		return done, err
	}
	_, d, err := World{}.openLance(ctx, dest)
	if err != nil {
		return done, err
	}
	return CopyStats{Events: d.Rows(), Bytes: stats.Bytes}, nil
}
