package lance

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/foldlog/foldlog/objstore"
)

// VersionInfo describes a version that is still there.
type VersionInfo struct {
	// Version is its number.
	Version uint64
	// Stored is when its manifest was stored, by the store's clock.
	Stored time.Time
	// Size is the manifest's, in bytes.
	Size int64
}

// Versions lists the versions that are still there, newest first.
func (d *Dataset) Versions(ctx context.Context) ([]VersionInfo, error) {
	var out []VersionInfo
	for v, err := range listVersions(ctx, d.store) {
		if err != nil {
			return nil, fmt.Errorf("list versions: %w", err)
		}
		out = append(out, v)
	}
	return out, nil
}

// listVersions yields the versions newest first, as their names sort.
func listVersions(ctx context.Context, store objstore.Store) iter.Seq2[VersionInfo, error] {
	return func(yield func(VersionInfo, error) bool) {
		for info, err := range store.List(ctx, objstore.ListOptions{Prefix: versionsDir}) {
			if err != nil {
				yield(VersionInfo{}, err)
				return
			}
			v, ok, err := parseManifestKey(info.Key)
			if !ok && err == nil {
				continue
			}
			if !yield(VersionInfo{Version: v, Stored: info.Modified, Size: info.Size}, err) || err != nil {
				return
			}
		}
	}
}
