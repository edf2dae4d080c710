package memwal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/foldlog/foldlog/lance"
	"github.com/foldlog/foldlog/lance/internal/format"
	"github.com/foldlog/foldlog/lance/internal/wire"
	"github.com/foldlog/foldlog/objstore"
)

const (
	root          = "_mem_wal/"
	manifestExt   = ".binpb"
	walExt        = ".arrow"
	hintName      = "version_hint.json"
	maxShardState = 64 << 20
)

// ID names a shard.
type ID = format.UUID

// NewID returns a random one.
func NewID() ID { return format.NewUUID() }

// ParseID reads the usual form of a UUID.
func ParseID(s string) (ID, error) { return format.ParseUUID(s) }

func shardDir(id ID) string { return root + id.String() + "/" }

func manifestKey(id ID, version uint64) string {
	return shardDir(id) + "manifest/" + format.ReversedName(version, manifestExt)
}

func walKey(id ID, position uint64) string {
	return shardDir(id) + "wal/" + format.ReversedName(position, walExt)
}

// The states of a shard.
const (
	statusActive = 0
	statusSealed = 1
)

// fieldNonce makes the bytes of our manifests our own, so that a put whose answer was
// lost can be told from another's. Other readers ignore it.
const fieldNonce = 1000

// generation is a small table that a shard's manifest names.
type generation struct {
	number uint64
	dir    string
	// memory, rows and keyBytes are sizes for planning, zero if they are not known.
	memory, rows, keyBytes uint64
	extra                  []byte
}

// state is one version of a shard's manifest.
type state struct {
	version     uint64
	epoch       uint64
	replayAfter uint64
	lastSeen    uint64
	// next is the number that the next generation gets.
	next        uint64
	generations []generation
	specID      uint64
	id          ID
	status      uint64
	extra       []byte
}

func parseState(b []byte) (*state, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", lance.ErrCorrupt, err)
	}
	s := &state{}
	for f := range fields.All() {
		switch f.Num {
		case 1:
			s.version = f.V
		case 2:
			s.epoch = f.V
		case 3:
			s.replayAfter = f.V
		case 4:
			s.lastSeen = f.V
		case 6:
			s.next = f.V
		case 8:
			g, err := parseGeneration(f.B)
			if err != nil {
				return nil, err
			}
			s.generations = append(s.generations, g)
		case 10:
			s.specID = f.V
		case 11:
			id, err := wire.Parse(f.B)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", lance.ErrCorrupt, err)
			}
			u, _ := id.Get(1)
			if copy(s.id[:], u.B) != len(s.id) {
				return nil, fmt.Errorf("%w: shard id of %d bytes", lance.ErrCorrupt, len(u.B))
			}
		case 15:
			s.status = f.V
		case fieldNonce:
		default:
			s.extra = append(s.extra, f.Raw...)
		}
	}
	return s, nil
}

func parseGeneration(b []byte) (generation, error) {
	fields, err := wire.Parse(b)
	if err != nil {
		return generation{}, fmt.Errorf("%w: %w", lance.ErrCorrupt, err)
	}
	g := generation{}
	for f := range fields.All() {
		switch f.Num {
		case 1:
			g.number = f.V
		case 2:
			g.dir = string(f.B)
		case 3:
			g.memory = f.V
		case 4:
			g.rows = f.V
		case 5:
			g.keyBytes = f.V
		default:
			g.extra = append(g.extra, f.Raw...)
		}
	}
	if objstore.CheckKey(g.dir) != nil || strings.Contains(g.dir, "/") {
		return g, fmt.Errorf("%w: generation in %q", lance.ErrCorrupt, g.dir)
	}
	return g, nil
}

func (s *state) message() []byte {
	m := wire.Builder(nil).Uint(1, s.version).Uint(2, s.epoch).Uint(3, s.replayAfter).Uint(4, s.lastSeen).Uint(6, s.next)
	for _, g := range s.generations {
		x := wire.Builder(nil).Uint(1, g.number).String(2, g.dir).Uint(3, g.memory).Uint(4, g.rows).Uint(5, g.keyBytes)
		m = m.Bytes(8, x.Raw(g.extra))
	}
	m = m.Uint(10, s.specID).Bytes(11, s.id.Message()).Uint(15, s.status).Raw(s.extra)
	return m.Bytes(fieldNonce, []byte(rand.Text()))
}

// clone returns a copy to change.
func (s *state) clone() *state {
	c := *s
	c.generations = append([]generation(nil), s.generations...)
	return &c
}

// readState reads one version of a shard's manifest.
func readState(ctx context.Context, store objstore.Store, id ID, version uint64) (*state, error) {
	key := manifestKey(id, version)
	b, err := store.Get(ctx, key, maxShardState)
	if err != nil {
		return nil, err
	}
	s, err := parseState(b)
	if err == nil && (s.version != version || s.id != id) {
		err = fmt.Errorf("%w: it says that it is version %d of shard %s", lance.ErrCorrupt, s.version, s.id)
	}
	if err != nil {
		return nil, &lance.CorruptError{Path: key, Err: err}
	}
	return s, nil
}

// latestState finds the latest version: from the hint upwards, or without one from a
// listing. A shard without a manifest is objstore.ErrNotFound.
func latestState(ctx context.Context, store objstore.Store, id ID) (*state, error) {
	at, err := hinted(ctx, store, id)
	if err != nil {
		return nil, err
	}
	s, err := readState(ctx, store, id, at)
	if errors.Is(err, objstore.ErrNotFound) {
		s, err = listedState(ctx, store, id)
	}
	if err != nil {
		return nil, err
	}
	return newest(ctx, store, s)
}

// newest follows the versions from one that was read. The last must still be there once the
// next is not: versions are removed from the oldest on, so then nothing between was.
func newest(ctx context.Context, store objstore.Store, s *state) (*state, error) {
	for {
		next, err := readState(ctx, store, s.id, s.version+1)
		if errors.Is(err, objstore.ErrNotFound) {
			if _, err = store.Stat(ctx, manifestKey(s.id, s.version)); err == nil {
				return s, nil
			}
			if errors.Is(err, objstore.ErrNotFound) {
				next, err = listedState(ctx, store, s.id)
			}
		}
		if err != nil {
			return nil, err
		}
		s = next
	}
}

// listedState reads the highest version in a listing. What goes meanwhile is not the
// highest any more.
func listedState(ctx context.Context, store objstore.Store, id ID) (*state, error) {
	for range planTries {
		at, err := listed(ctx, store, id)
		if err != nil {
			return nil, err
		}
		s, err := readState(ctx, store, id, at)
		if !errors.Is(err, objstore.ErrNotFound) {
			return s, err
		}
	}
	return nil, fmt.Errorf("shard %s: its manifests go before they are read", id)
}

// hinted returns the version that the hint names, 1 without a hint.
func hinted(ctx context.Context, store objstore.Store, id ID) (uint64, error) {
	b, err := store.Get(ctx, shardDir(id)+"manifest/"+hintName, 1<<10)
	if errors.Is(err, objstore.ErrNotFound) || errors.Is(err, objstore.ErrTooLarge) {
		return 1, nil
	}
	var hint struct {
		Version uint64 `json:"version"`
	}
	if err != nil {
		return 0, err
	}
	if json.Unmarshal(b, &hint) != nil || hint.Version == 0 {
		return 1, nil
	}
	return hint.Version, nil
}

// listed returns the highest version in a listing.
func listed(ctx context.Context, store objstore.Store, id ID) (uint64, error) {
	highest := uint64(0)
	dir := shardDir(id) + "manifest/"
	for info, err := range store.List(ctx, objstore.ListOptions{Prefix: dir}) {
		if err != nil {
			return 0, err
		}
		if v, ok := parseReversed(strings.TrimPrefix(info.Key, dir), manifestExt); ok {
			highest = max(highest, v)
		}
	}
	if highest == 0 {
		return 0, fmt.Errorf("shard %s: %w", id, objstore.ErrNotFound)
	}
	return highest, nil
}

// parseReversed reads a name of 64 binary digits, lowest first. Anything before or
// after the exact extension makes it another's file.
func parseReversed(name, ext string) (n uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, ext)
	if !ok || len(digits) != 64 {
		return 0, false
	}
	for i, c := range digits {
		switch c {
		case '1':
			n |= 1 << i
		case '0':
		default:
			return 0, false
		}
	}
	return n, true
}

// putHint tells others where to begin. It is never needed, so failing is harmless.
func putHint(ctx context.Context, store objstore.Store, id ID, version uint64) error {
	return store.Put(ctx, shardDir(id)+"manifest/"+hintName, fmt.Appendf(nil, `{"version":%d}`, version))
}
