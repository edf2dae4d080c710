package format

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// UUID is a universally unique identifier.
type UUID [16]byte

// NewUUID returns a random one (version 4).
func NewUUID() UUID {
	var u UUID
	_, _ = rand.Read(u[:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// String is the usual form in lower case.
func (u UUID) String() string {
	h := hex.EncodeToString(u[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// ParseUUID reads the usual form.
func ParseUUID(s string) (u UUID, err error) {
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	if err != nil || len(b) != len(u) {
		return u, fmt.Errorf("%q is not a UUID", s)
	}
	copy(u[:], b)
	if u.String() != strings.ToLower(s) {
		return u, fmt.Errorf("%q is not a UUID", s)
	}
	return u, nil
}

// DataFileName returns a name for a new data file: a random prefix of binary
// digits, which spreads names over an object store's partitions, then hex.
func DataFileName() string {
	u := NewUUID()
	return fmt.Sprintf("%08b%08b%08b%s.lance", u[0], u[1], u[2], hex.EncodeToString(u[3:]))
}

// ReversedName is the name of the n-th object of a shard: its number as 64 binary
// digits, lowest first, and an extension with its dot.
func ReversedName(n uint64, ext string) string {
	return fmt.Sprintf("%064b%s", bits.Reverse64(n), ext)
}

// Where versions are.
const (
	VersionsDir = "_versions/"
	ManifestExt = ".manifest"
)

// ManifestKey names a version so that the newest comes first in a listing.
func ManifestKey(version uint64) string {
	return fmt.Sprintf("%s%020d%s", VersionsDir, math.MaxUint64-version, ManifestExt)
}
