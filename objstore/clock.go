package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"
)

// Now is the time by the clock of a store, which Info.Modified is of, or by this
// machine's where that is behind: what is young by either is not taken for old. A small
// object in a directory, with its slash, is put and removed for it.
func Now(ctx context.Context, s Store, dir string) (time.Time, error) {
	key := dir + "clock-" + rand.Text()
	err := s.Put(ctx, key, nil)
	var info Info
	if err == nil {
		info, err = s.Stat(ctx, key)
	}
	if err = errors.Join(err, s.Delete(ctx, key)); err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	if here := time.Now(); here.Before(info.Modified) {
		return here, nil
	}
	return info.Modified, nil
}
